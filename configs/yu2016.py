"""Segment to segment neural transduction: Yu, Buys and Blunsom 2016, on English pronunciation.

"Online segment to segment neural transduction", EMNLP 2016.

The model of `configs/wu2018.py`, which decides at each letter whether to write or to read on. As in
the paper, a hidden layer scores that decision, and the sum over all alignments is exact. The source
is read in both directions; forward alone, as by the paper's online model, it is with
--config.model.sources.source.encoder.direction=forward.
Otherwise: searches sum over all slots, and so have read the whole source before they write;
`launch.translate --online` is for monotonic attention and MoChA.

Command:  python -m launch.train --config=configs/yu2016.py --workdir=runs/yu2016
          after the colon: cmudict or smoke
Expected: not measured at this size
"""

from ml_collections import ConfigDict

from configs import wu2018


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    config = wu2018.get_config(argument)
    depth = config.model.decoder.hidden_dim
    config.model.attention = {"name": "bahdanau", "attention_dim": depth}
    config.model.readout.alignment.name = "segments"
    return config
