"""Monotonic chunkwise attention (MoChA): Chiu and Raffel 2018, on words and their pronunciations.

"Monotonic chunkwise attention", ICLR 2018.

The model of `configs/raffel2017.py` with a softmax over the last slots before each stop, so that
what was read just before it counts, too. The paper's speech recogniser has chunks of two; of other
lengths --config.model.attention.window=8, and of all that was read (monotonic infinite lookback,
Arivazhagan et al. 2019) --config.model.attention.window=None.

Command:  python -m launch.train --config=configs/chiu2018.py --workdir=runs/chiu2018
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size. The paper's own tasks are speech and summaries
Time:     about forty minutes on two CPU cores for cmudict, by those of configs/raffel2017.py
"""

from ml_collections import ConfigDict

from configs import raffel2017


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = raffel2017.get_config(argument)
    depth = config.model.attention.score.attention_dim
    config.model.attention.name = "mocha"
    config.model.attention.window = 2
    config.model.attention.chunk_score = {"name": "bahdanau", "attention_dim": depth}
    return config
