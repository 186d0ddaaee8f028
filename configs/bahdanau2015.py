"""RNNsearch: Bahdanau, Cho and Bengio 2015, at the size of small corpora.

"Neural machine translation by jointly learning to align and translate", ICLR 2015.

As in the paper: bidirectional GRU that resets before the product, additive attention with the
previous state as query, maxout readout, beam search with a minimum length. The paper's
initialisation is `--config.model.initialization.name=bahdanau2015`.
Otherwise: smaller layers, subwords, dropout and label smoothing against overfitting, and Adam
instead of Adadelta, which needs many more updates (`--config.optimizer.name=adadelta
--config.optimizer.learning_rate=1`).

Command:  python -m launch.train --config=configs/bahdanau2015.py:multi30k \
              --workdir=runs/bahdanau2015
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke;
          multi30k_lowercased is the corpus as most papers score it
Expected: docs/results/configs.md for multi30k and tatoeba; the paper's own corpus is WMT'14
          (26.75 BLEU for sentences of up to 50 words)
Time:     about twenty minutes on one CPU core for multi30k, an hour for tatoeba
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "multi30k", (*common.DATA_SETS, common.LOWERCASED))
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
                    "cell": "gru_reset_before",
                    "hidden_dim": 256,
                    "direction": "bidirectional",
                },
            }
        },
        "attention": {"name": "bahdanau", "attention_dim": 256},
        "decoder": {
            "name": "bahdanau",
            "cell": "gru_reset_before",
            "hidden_dim": 512,
            # As in the paper: the first state is made of the backward reading's state at the first
            # word.
            "bridge": "backward",
            "readout": "maxout",
            "readout_dim": 256,
        },
        "embedding_dropout": 0.2,
        "output_dropout": 0.3,
        "initialization": {"name": "default"},
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 400, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 10.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 250,
    }
    config.search = {"method": "beam", "beam_size": 5, "min_length_ratio": 0.5}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 8}
    return common.finish(config, argument)
