"""A Transformer language model of a corpus' target side, with the parts of later papers.

Pre-norm with RMSNorm, SwiGLU, rotary positions, and query heads in groups; each is one field to
change back: `--config.model.decoder.norm=layer`, `.activation=relu`, `.norm_order=post`.

Command:  python -m launch.train --config=configs/transformer_lm.py:multi30k --workdir=runs/lm
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
          echo "Ein Mann" | python -m launch.translate --workdir=runs/lm --search.method=sample
          goes on from each line; an empty line begins with nothing. A text begins with words of
          the target side: German here, phonemes with cmudict
Expected: perplexity of validation and test in results.json
Time:     about half an hour on two CPU cores for multi30k
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "multi30k", common.DATA_SETS)
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section(argument)
    config.model = {
        "name": "language_model",
        "embedding_dim": 256,
        "attention": {
            "name": "multi_head",
            "num_heads": 4,
            "num_memory_heads": 2,
            "head_dim": 64,
            "refinements": {"rope": {}},
        },
        "decoder": {
            "num_layers": 4,
            "feed_forward_dim": 688,
            "activation": "swiglu",
            "norm": "rms",
            "norm_order": "pre",
            "positions": "none",
            "dropout": 0.2,
        },
    }
    config.objectives = {"nll": {}}
    config.optimizer = {"name": "adamw", "learning_rate": 1e-3, "weight_decay": 0.05}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 400, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 10.0,
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 250,
    }
    config.evaluation = {"splits": ("validation", "test")}
    if argument == "smoke":
        config.data = common.data_section("smoke")
        config.model.embedding_dim, config.model.decoder.num_layers = 32, 2
        config.model.decoder.feed_forward_dim = config.model.attention.head_dim = 16
        config.model.decoder.dropout = 0.0
        config.training.update({"num_steps": 200, "evaluate_every_steps": 100})
        config.schedule.warmup_steps = 20
        del config.training.num_epochs
    return config
