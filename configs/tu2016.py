"""Coverage: Tu, Lu, Liu, Liu and Li 2016, at the size of small corpora.

"Modeling coverage for neural machine translation", ACL 2016.

The model of `configs/bahdanau2015.py` with linguistic coverage and fertility. The paper's other
models are overrides: --config.model.attention.max_fertility=0 for coverage without fertility,
--config.model.attention.name=neural_coverage for neural coverage (with its `coverage_dim` and
`cell`). Where the paper starts from a trained baseline, this config starts from nothing.

Command:  python -m launch.train --config=configs/tu2016.py:multi30k --workdir=runs/tu2016
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size; docs/results/coverage_vs_supervised.md has linguistic coverage,
          with and without fertility, and neural coverage in a model of half the width (Multi30k)
Time:     about forty minutes on two CPU cores for multi30k
"""

from ml_collections import ConfigDict

from configs import bahdanau2015


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = bahdanau2015.get_config(argument)
    depth = config.model.attention.attention_dim
    config.model.attention = {
        "name": "linguistic_coverage",
        "attention_dim": depth,
        "max_fertility": 2.0,
    }
    return config
