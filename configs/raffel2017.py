"""Monotonic attention: Raffel, Luong, Liu, Weiss and Eck 2017, on words and their pronunciations.

"Online and linear-time attention by enforcing monotonic alignments", ICML 2017.

The encoder reads forward and the decoder starts from nothing, so that a trained run can write while
a word is still being read: `launch.translate --online`. As in the paper: the normalised energy with
an offset that starts below zero, noise in training, decisions afterwards. The query has read the
last symbol that was written; the paper's, which has not, is --config.model.decoder.name=bahdanau.
Otherwise: every step scores all slots, so that decoding takes no linear time.

Command:  python -m launch.train --config=configs/raffel2017.py --workdir=runs/raffel2017
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size. The paper's own tasks are speech, summaries and translation
Time:     about half an hour on two CPU cores for cmudict, by its first steps
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "cmudict", common.DATA_SETS)
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
                    "cell": "gru",
                    "hidden_dim": 256,
                    "num_layers": 2,
                    "direction": "forward",
                    "dropout": 0.1,
                },
            }
        },
        "attention": {
            "name": "monotonic",
            "score": {"name": "normed_bahdanau", "attention_dim": 256},
            "initial_bias": -1.0,
            "noise": 1.0,
        },
        "decoder": {
            "name": "conditional_gru",
            "hidden_dim": 256,
            "bridge": "zero",
            "readout": "maxout",
            "readout_dim": 256,
        },
        "embedding_dropout": 0.1,
        "output_dropout": 0.1,
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 500, "final_fraction": 0.01}
    config.training = {
        "num_epochs": 8.0,
        "averaging": {"name": "ema", "decay": 0.999},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 500,
    }
    config.search = {"method": "greedy"}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 12}
    return common.finish(config, argument)
