"""Hard monotonic attention by STEPs: Aharoni and Goldberg 2017.

"Morphological inflection generation with hard monotonic attention", ACL 2017.

As in the paper: a bidirectional LSTM reads the letters of a lemma; an LSTM is given the last symbol
and the one annotation that a pointer is on, and writes a letter or a STEP, which moves the pointer
to the next. Where STEPs stand in training is told by an alignment of the letters.
Otherwise: the alignment is an HMM's or IBM model 1's (`--config.data.oracle_steps=ibm1`) in place
of a Bayesian one-to-one aligner; tags stand beside the embedded letters, not in the decoder's
input; there is one layer instead of two, dropout, beam search, and a single model instead of an
ensemble of five.

Command:  python -m launch.train --config=configs/aharoni2017.py:conll2017 \
              --workdir=runs/aharoni2017 --config.data.language=turkish
          after the colon: conll2017, inflections (one's own table), sigmorphon2021,
          pronunciations (one's own), cmudict or smoke
Expected: docs/results/hard_vs_soft.md
Time:     a few minutes on one CPU core for 1,000 pairs
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    choices = (*common.INFLECTIONS, *common.PRONUNCIATIONS, "smoke")
    argument = common.choose(argument, "conll2017", choices)
    config = common.letters(argument, depth=128, reader_depth=128, dropout=0.3)
    config.model.attention = {"name": "step_pointer"}
    config.model.decoder = {
        "name": "bahdanau",
        "cell": "lstm",
        "hidden_dim": 256,
        "bridge": "mean",
        "readout": "tanh",
        "readout_dim": 256,
    }
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 5.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 100, "final_fraction": 0.02}
    config.training.update(evaluate_every_steps=250, checkpoint_every_steps=250)
    config.training.num_epochs = 100.0 if argument != "cmudict" else 4.0
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 8}
    if argument == "smoke":
        config = common.make_smoke(config)
    config.data.oracle_steps = "hmm"
    return config
