"""Coverage embeddings: Mi, Sankaran, Wang and Ittycheriah 2016, at the size of small corpora.

"Coverage embedding models for neural machine translation", EMNLP 2016.

The model of `configs/bahdanau2015.py` with a learned coverage embedding for each source word type,
which every written word reduces by gates, and with the objective that wants nothing to be left of
them. The paper's other update is --config.model.attention.coverage_update=subtract; without the
objective, --config.objectives.final_coverage.weight=0. Depth of the embeddings and weight of the
objective are choices of this config.

Command:  python -m launch.train --config=configs/mi2016.py:multi30k --workdir=runs/mi2016
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size; docs/results/coverage_vs_supervised.md has coverage embeddings
          with their objective in a model of half the width (Multi30k)
Time:     about an hour on two CPU cores for multi30k
"""

from ml_collections import ConfigDict

from configs import bahdanau2015


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = bahdanau2015.get_config(argument)
    depth = config.model.attention.attention_dim
    config.model.attention = {
        "name": "coverage_embedding",
        "attention_dim": depth,
        "coverage_dim": 32,
        "coverage_update": "gru",
    }
    config.objectives.final_coverage = {"weight": 0.1}
    return config
