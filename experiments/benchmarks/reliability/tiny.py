r"""A training that takes seconds and has everything in its state that a training can have.

Command:  python -m launch.train --workdir=runs/tiny \
            --config=experiments/benchmarks/reliability/tiny.py
Expected: nothing worth knowing; the drill compares its bits
Time:     about ten seconds
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the config that the drill trains."""
    config = ConfigDict()
    config.seed = 0
    config.data = {
        "name": "smoke",
        "batch_size": 16,
        "num_buckets": 1,
        "max_train_examples": 256,
        "eval_batch_size": 512,
    }
    config.model = {
        "name": "encoder_decoder",
        "target_embedding_dim": 8,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 8},
                "encoder": {"hidden_dim": 8},
            }
        },
        "attention": {"name": "bahdanau", "attention_dim": 8},
        "decoder": {"name": "bahdanau", "hidden_dim": 8, "readout_dim": 8},
        "output_dropout": 0.1,
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 0.01}
    config.schedule = {"name": "constant"}
    config.training = {
        "num_steps": 60,
        "averaging": {"name": "ema", "decay": 0.9},
        "max_gradient_ratio": 20.0,
        # Saving and validating often, so that faults fall into all kinds of work.
        "log_every_steps": 10,
        "evaluate_every_steps": 25,
        "checkpoint_every_steps": 7,
    }
    config.search = {"method": "greedy"}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 0}
    return config
