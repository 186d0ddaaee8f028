"""Convolutional attention: Allamanis, Peng and Sutton 2016, on names of functions.

"A convolutional attention network for extreme summarization of source code", ICML 2016.

The name of a function is written from the tokens of its body, sub-token by sub-token. As in the
paper: embedded tokens themselves are attended to, by patterns of their neighbours, and the sizes
are those of its copying model. Otherwise: Python's standard library instead of eleven Java
projects, a decoder that reads its own state, too, Adam, and beam search. Copy attention is
--config.model.readout.name=convolutional_copy, and plain attention
--config.model.attention.name=bahdanau.

Command:  python -m launch.train --config=configs/allamanis2016.py --workdir=runs/allamanis2016
          after the colon: method_naming (--config.data.folder=FOLDER for Python files of one's own)
          or smoke
Expected: docs/results/allamanis2016.md; the paper's numbers are of Java
Time:     about four minutes on one CPU core, seven with copying
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "method_naming", ("method_naming", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = {
        "name": "method_naming", "batch_size": 64, "num_buckets": 8, "eval_batch_size": 64,
        "max_source_length": 200, "max_target_length": 9,
    }  # fmt: skip
    config.model = {
        "name": "encoder_decoder",
        "target_embedding_dim": 128,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 128},
                # Every annotation is the embedding of its own token.
                "encoder": {"name": "average_pooling", "width": 1, "positions": "none"},
            }
        },
        "attention": {
            "name": "convolutional",
            "hidden_dim": 32,
            "channels": 16,
            "hidden_width": 18,
            "feature_width": 19,
            "score_width": 2,
        },
        "decoder": {"name": "bahdanau", "cell": "gru", "hidden_dim": 128, "bridge": "mean"},
        "embedding_dropout": 0.4,
        "output_dropout": 0.4,
    }
    config.objectives = {"nll": {}}
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 0.75}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 15.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 400,
        "checkpoint_every_steps": 400,
    }
    config.search = {"method": "beam", "beam_size": 8, "num_hypotheses": 5}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 8}
    return common.make_smoke(config) if argument == "smoke" else config
