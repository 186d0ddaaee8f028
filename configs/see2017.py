"""Pointer-generator with coverage: See, Liu and Manning 2017, at the size of small corpora.

"Get to the point: summarization with pointer-generator networks", ACL 2017.

As in the paper: a bidirectional LSTM, additive attention with a coverage vector, a decoder whose
input has the context of the step before, a switch between the vocabulary and the attention, and a
coverage loss that is added for the last steps only. The other data sets than the paper's have words
that no vocabulary has, too: names in code.
Otherwise: Adam with dropout instead of Adagrad. Only the loss begins late; the coverage vector is
there from the first step on, where the paper adds it with the loss to a model trained without.
Without coverage: --config.model.attention.name=bahdanau --config.objectives.coverage_loss=false

Command:  python -m launch.train --config=configs/see2017.py:django --workdir=runs/see2017
          after the colon: django, hearthstone, multi30k, parallel (one's own text), conll2017,
          inflections (one's own table) or smoke
Expected: docs/results/copying.md for django without coverage: 75.7 % exact match, three seeds
Time:     a quarter of an hour on one CPU core for django
"""

from ml_collections import ConfigDict

from configs import common

# When the coverage loss begins, and how long training takes, in updates.
STEPS = {"django": (3600, 4500), "hearthstone": (1600, 2000), "smoke": (200, 400)}
_OTHERS = (4000, 5000)


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    choices = (*common.CODE, "multi30k", "parallel", *common.INFLECTIONS, "smoke")
    argument = common.choose(argument, "django", choices)
    late, num_steps = STEPS.get(argument, _OTHERS)
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section(argument)
    config.model = {
        "name": "encoder_decoder",
        "target_embedding_dim": 128,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 128},
                "encoder": {
                    "name": "recurrent",
                    "cell": "lstm",
                    "hidden_dim": 128,
                    "direction": "bidirectional",
                },
            }
        },
        "attention": {"name": "coverage_vector", "attention_dim": 256},
        "decoder": {
            "name": "luong",
            "cell": "lstm",
            "hidden_dim": 256,
            "attentional_dim": 256,
            "input_feeding": True,
            "bridge": "mean",
        },
        "readout": {"name": "pointer_generator"},
        "embedding_dropout": 0.2,
        "output_dropout": 0.3,
    }
    config.objectives = {"nll": {}, "coverage_loss": {"schedule": {"start_steps": late}}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 2.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_steps": num_steps,
        "log_every_steps": 50,
        "evaluate_every_steps": num_steps // 5,
        "checkpoint_every_steps": num_steps // 5,
    }
    config.search = {"method": "beam", "beam_size": 5, "forbid_unknown": True}
    config.evaluation = {
        "splits": ("validation", "test"), "num_validation_examples": 500, "num_heat_maps": 4,
    }  # fmt: skip
    return adapted(config, argument)


def adapted(config: ConfigDict, argument: str) -> ConfigDict:
    """Adapts a config of copying to a data set: what its tokens are, and what is watched."""
    if argument == "smoke":
        config = common.make_smoke(config)
        config.data = {"name": "smoke_code", "batch_size": 64, "num_buckets": 1}
        config.training.metric, config.training.mode = "nll", "min"
    elif argument in (*common.CODE, *common.INFLECTIONS):
        config.training.metric, config.training.mode = "exact_match", "max"
    else:  # names and numbers of texts are copied as words
        config.data.subwords = {"kind": "words", "size": 8000, "joint": False}
        config.training.metric, config.training.mode = "bleu", "max"
    if argument in common.INFLECTIONS:
        config.data.tags = "apart"
        config.model.sources.source.input.name = "tagged"
    return config
