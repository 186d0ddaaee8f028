"""CopyNet: Gu, Lu, Li and Li 2016, at the size of small corpora.

"Incorporating copying mechanism in sequence-to-sequence learning", ACL 2016.

As in the paper: RNNsearch with a bidirectional GRU, whose readout generates and copies under one
softmax, and whose decoder reads, beside the last word, where it was copied from.
Otherwise: smaller layers and dropout.
Without the selective read: --config.model.readout.selective_read=False

Command:  python -m launch.train --config=configs/gu2016.py:django --workdir=runs/gu2016
          after the colon: django, hearthstone, multi30k, parallel (one's own text), conll2017,
          inflections (one's own table) or smoke
Expected: docs/results/copying.md for django: 75.5 % exact match, three seeds
Time:     a quarter of an hour on one CPU core for django
"""

from ml_collections import ConfigDict

from configs import see2017


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = see2017.get_config(argument)
    encoder, depth = config.model.sources.source.encoder, config.model.decoder.hidden_dim
    encoder.cell = "gru_reset_before"
    attention_dim = config.model.attention.attention_dim
    config.model.attention = {"name": "bahdanau", "attention_dim": attention_dim}
    config.model.decoder = {
        "name": "bahdanau",
        "cell": "gru_reset_before",
        "hidden_dim": depth,
        "bridge": "mean",
        "readout": "maxout",
        "readout_dim": depth,
    }
    config.model.readout = {"name": "copynet", "selective_read": True}
    config.objectives = {"nll": {}}
    return config
