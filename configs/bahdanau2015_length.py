"""RNNsearch against RNNencdec by sentence length, at the size of a small corpus.

Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and translate",
ICLR 2015, table 1 and the length figure. `experiments/bahdanau2015_length.py` varies
`model.attention` and the longest training source; this file is what all of its runs share. It
differs from bahdanau2015.py in size only: small layers and few updates, so that twelve runs take
about an hour and a half on two cores.

Command:  python -m experiments.bahdanau2015_length --jobs=2    (all runs, then the table)
          python -m launch.train --config=configs/bahdanau2015_length.py:multi30k \
              --workdir=runs/length    (one run: attention, sentences of all lengths)
          after the colon: multi30k, tatoeba, parallel (one's own text) or smoke
Expected: attention above the fixed vector, the more so the longer the sentence; see
          docs/results/bahdanau2015_length.md
Time:     about six minutes a run on two CPU cores
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config, argument = common.experiment(argument)
    config.model = common.recurrent_model(
        encoder={"cell": "gru_reset_before", "direction": "bidirectional"},
        attention={"name": "bahdanau", "attention_dim": 128},
        decoder={
            "name": "bahdanau",
            "cell": "gru_reset_before",
            # As in the paper: the first state is made of the backward reading's state at the first
            # word.
            "bridge": "backward",
            "readout": "maxout",
        },
    )
    config.model.initialization = {"name": "default"}
    return common.finish(config, argument)
