"""Symmetric training: Cohn, Hoang, Vymolova, Yao, Dyer and Haffari 2016, at small size.

"Incorporating structural alignment biases into an attentional neural translation model", NAACL
2016.

Two models of `configs/cohn2016.py`, from source to target and back, which are rewarded for
agreeing on what belongs together. As in the paper they first learn by themselves; here those are
the first 1800 updates of one run, half of it for multi30k, with one learning rate for both; on a
small text of one's own, lower that (`start_steps` as below).
Symmetry from the start is --config.objectives.bilingual_symmetry.schedule.start_steps=0, two models
that do not know of each other --config.objectives.bilingual_symmetry.weight=0.

Command:  python -m launch.train --config=configs/cohn2016_symmetric.py:multi30k \
              --workdir=runs/cohn2016_symmetric
          python -m launch.translate --workdir=runs/cohn2016_symmetric --direction=reverse
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size; docs/results/coverage_vs_supervised.md has the symmetry bonus
          in models of half the width, without structural biases (Multi30k)
Time:     about an hour and a half on two CPU cores for multi30k
"""

from ml_collections import ConfigDict

from configs import cohn2016


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = cohn2016.get_config(argument)
    config.model.name = "bidirectional"
    config.objectives.reverse_nll = dict(config.objectives.nll)
    start = 200 if argument == "smoke" else 1800
    config.objectives.bilingual_symmetry = {"weight": 1.0, "schedule": {"start_steps": start}}
    config.training.metric = "loss"  # of both directions and their symmetry, always at full weight
    return config
