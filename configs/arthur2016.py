"""Translation lexicons: Arthur, Neubig and Nakamura 2016, at the size of small corpora.

"Incorporating discrete translation lexicons into neural machine translation", EMNLP 2016.

The model of `configs/luong2015.py`, whose attention also weighs what each source word may be
translated by; the lexicon is estimated from the training text by IBM Model 1. As in the paper:
words, frequent ones only, and eps = 0.001. Interpolation is --config.model.readout.name=
lexicon_linear, a dictionary of one's own --config.data.lexicon.file=FILE (lines `source target
probability`), and no lexicon at all --config.model.readout.name=softmax with
--config.data.lexicon.method=none.

Command:  python -m launch.train --config=configs/arthur2016.py:multi30k --workdir=runs/arthur2016
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size; `python -m experiments.arthur2016` compares the readouts. The
          paper's gains are of two BLEU on KFTT and BTEC, whose texts are not used here
Time:     not measured; configs/luong2015.py takes about half an hour on two CPU cores for multi30k
"""

from ml_collections import ConfigDict

from configs import luong2015


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = luong2015.get_config(argument)
    if "subwords" in config.data:
        config.data.subwords.kind = "words"
    config.data.lexicon = {"method": "ibm1"}
    config.model.readout = {"name": "lexicon_bias", "epsilon": 1e-3}
    return config
