"""Exact hard monotonic attention: Wu and Cotterell 2019, on English pronunciation.

"Exact hard monotonic attention for character-level transduction", ACL 2019.

The model of `configs/wu2018.py`, whose alignments never go back: of order zero, where the scores of
attention from the last slot on decide. Those of order one, by jumps that depend on where the last
token was written from, are --config.model.readout.alignment.name=relative_jumps with
--config.model.attention.name=none.

Command:  python -m launch.train --config=configs/wu2019.py --workdir=runs/wu2019
          after the colon: cmudict or smoke
Expected: not measured at this size
"""

from ml_collections import ConfigDict

from configs import wu2018


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    config = wu2018.get_config(argument)
    config.model.readout.alignment.name = "monotonic"
    return config
