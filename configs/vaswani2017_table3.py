"""Vaswani et al. 2017, table 3, at the size of a small corpus.

"Attention is all you need", NIPS 2017. `experiments/vaswani2017_table3.py` varies heads, sizes,
dropout, label smoothing and positions; this file is its base, an eighth of the paper's in depth,
half in layers and heads. As in the paper: normalisation after each sublayer, the noam schedule,
one shared vocabulary whose embedding is the output matrix, label smoothing 0.1, dropout 0.1, beams
of four. These are compared by their score per token: under the paper's length penalty, a weaker
one, the outputs of models as small as these end too soon.

Command:  python -m experiments.vaswani2017_table3 --jobs=2    (all runs, then the table)
          python -m launch.train --config=configs/vaswani2017_table3.py:multi30k \
              --workdir=runs/table3    (one run: the base)
          after the colon: multi30k, tatoeba, parallel (one's own text) or smoke
Expected: docs/results/vaswani2017_table3.md
Time:     about sixteen minutes a run on one CPU core
"""

from ml_collections import ConfigDict

from configs import common, vaswani2017


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "multi30k", ("multi30k", "tatoeba", "parallel", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section(argument)
    depth, dropout = (32, 0.0) if argument == "smoke" else (64, 0.1)
    config.model = vaswani2017.transformer(
        num_layers=3, depth=depth, width=4 * depth, num_heads=4, dropout=dropout
    )
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 1.0, "beta2": 0.98, "epsilon": 1e-9}
    config.schedule = {"name": "noam", "model_depth": depth, "warmup_steps": 1000}
    config.training = {
        "num_steps": 4500,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 500,
    }
    config.search = {"method": "beam", "beam_size": 4}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 4}
    if argument == "smoke":
        config.model.tie_embeddings = "target"
        return config
    config.data.update({"batch_size": 64, "num_buckets": 8})
    config.data.subwords.update({"size": 4000, "joint": True})
    return config
