"""A config that trains in a second or two, for tests of the trainer."""

from ml_collections import ConfigDict

from attention_jax.runs.config import ExperimentConfig, from_config_dict


def tiny_config(**training) -> ExperimentConfig:
    """Returns the config with these settings of `training`, 12 steps and an average by default."""
    evaluation = training.pop("evaluation", {"splits": ("test",), "num_heat_maps": 0})
    learning_rate = training.pop("learning_rate", 0.02)
    model = {
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
    values = {
        "data": {
            "name": "smoke",
            "batch_size": 16,
            "num_buckets": 1,
            "max_train_examples": 64,
            "eval_batch_size": 128,
        },
        "model": model,
        "optimizer": {"name": "adam", "learning_rate": learning_rate},
        "training": {"num_steps": 12, "averaging": {"name": "ema", "decay": 0.5}, **training},
        "search": {"method": "greedy"},
        "evaluation": evaluation,
    }
    return from_config_dict(ConfigDict(values))
