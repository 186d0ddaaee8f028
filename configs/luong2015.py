"""Global and local attention: Luong, Pham and Manning 2015, at the size of small corpora.

"Effective approaches to attention-based neural machine translation", EMNLP 2015.

As in the paper: stacked LSTMs, the source read backward, the decoder started with the encoder's
final states, general attention with the current state as query, h~ = tanh(W_c [c; h]), input
feeding, uniform initialisation. Otherwise: two smaller layers, subwords, and Adam instead of SGD
with halving (`--config.optimizer.name=sgd --config.optimizer.learning_rate=1
--config.schedule.name=luong2015`).

Another mechanism is one override, such as --config.model.attention.name=luong_dot, local_m,
local_p, luong_concat, luong_location, scaled_dot or bahdanau.

Command:  python -m launch.train --config=configs/luong2015.py:multi30k --workdir=runs/luong2015
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: docs/results/configs.md for multi30k, where ten epochs are short for an encoder that
          reads in one direction and starts from small random weights: its loss was still
          falling. The paper's own corpus is WMT'14 (19.0 BLEU for local-p (general) with input
          feeding)
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
        "name": "encoder_decoder",
        "target_embedding_dim": 256,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 256},
                "encoder": {
                    "name": "recurrent",
                    "cell": "lstm",
                    "hidden_dim": 256,
                    "num_layers": 2,
                    # The paper reverses the source instead; annotations are the same, in the order
                    # of the text.
                    "direction": "backward",
                    "dropout": 0.2,
                },
            }
        },
        "attention": {"name": "luong_general"},
        "decoder": {
            "name": "luong",
            "cell": "lstm",
            "hidden_dim": 256,
            "num_layers": 2,
            "attentional_dim": 256,
            "input_feeding": True,
            "bridge": "copy",
            "dropout": 0.2,
        },
        "embedding_dropout": 0.2,
        "output_dropout": 0.2,
        "initialization": {"name": "uniform", "scale": 0.1},
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 5.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 400, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 10.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 250,
    }
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 8}
    return common.finish(config, argument)
