"""Coverage against supervised alignment: what all variants of the comparison share.

Conditional GRU with additive attention, at the size of a small corpus.
`experiments/coverage_vs_supervised.py` varies `model.attention`, the objectives, where alignments
come from, and the number of training pairs.

Command:  python -m experiments.coverage_vs_supervised --jobs=2    (all runs, then the tables)
          python -m experiments.coverage_vs_supervised --full    (the papers' order of size, for a
              GPU: `FULL` of experiments/kit/alignment_variants.py says what is larger)
          python -m launch.train --config=configs/coverage_vs_supervised.py:multi30k \
              --workdir=runs/base    (one run: the base model)
          after the colon: multi30k, tatoeba, parallel (one's own text) or smoke
Expected: see docs/results/coverage_vs_supervised.md; the full size was not measured yet
Time:     about eight minutes a run on one CPU core
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config, argument = common.experiment(argument)
    config.model = common.recurrent_model(
        encoder={"cell": "gru", "direction": "bidirectional"},
        attention={"name": "bahdanau", "attention_dim": 128},
        decoder={"name": "conditional_gru", "cell": "gru", "bridge": "mean", "readout": "tanh"},
    )
    config.model.initialization = {"name": "default"}
    config.training.evaluate_every_steps = 500
    config.evaluation.splits = ("validation", "test")
    return common.finish(config, argument)
