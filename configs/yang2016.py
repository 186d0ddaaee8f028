"""Hierarchical attention for document classification: Yang et al. 2016, on movie reviews.

"Hierarchical attention networks for document classification", NAACL 2016: bidirectional GRUs of 50
units each way and queries of depth 100, for words and for sentences; words of depth 200. The paper
starts from word2vec vectors of its own documents and trains by SGD with momentum; here words start
at random, some are left out in training, and Adam is used, since there are 1,600 documents.

Command:  python -m launch.train --config=configs/yang2016.py --workdir=runs/yang2016
          after the colon: eraser_movies, documents (your own: --config.data.train_table=FILE) or
          smoke; --config.model.words.pooling.name=average or maximum reads without attention
Expected: docs/results/documents.md
Time:     five minutes on one CPU core
Data:     ATTENTION_JAX_DATA names a directory with the folder eraser_movies
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    argument = common.choose(argument, "eraser_movies", ("eraser_movies", "documents", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = {
        "name": argument, "batch_size": 32, "eval_batch_size": 64, "num_buckets": 5,
        "vocabulary_size": 15_000,
    }  # fmt: skip
    config.model = {
        "name": "classifier",
        "embedding_dim": 200,
        "words": level(),
        "sentences": level(),
        "word_dropout": 0.3,
        "embedding_dropout": 0.5,
        "output_dropout": 0.5,
    }
    config.objectives = {"nll": {}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 50, "final_fraction": 0.05}
    config.training = {
        "num_epochs": 8.0,
        "log_every_steps": 25,
        "evaluate_every_steps": 50,
        "checkpoint_every_steps": 100,
        "metric": "accuracy",
        "mode": "max",
    }
    config.search = {"method": "greedy"}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 0}
    return make_smoke(config) if argument == "smoke" else config


def level() -> dict:
    """Returns how words, or sentences, are read: no two levels share a mapping."""
    return {
        "encoder": {"name": "recurrent", "cell": "gru_reset_before", "hidden_dim": 50},
        "pooling": {"name": "attention", "attention_dim": 100},
    }


def make_smoke(config: ConfigDict) -> ConfigDict:
    """Shrinks a config of documents so that it trains in seconds, on made-up reviews."""
    config.data = {"name": "smoke_documents", "batch_size": 32, "num_buckets": 1}
    config.model.embedding_dim = 16
    for level in (config.model.words, config.model.sentences):
        level.encoder.hidden_dim = 16
        if "attention_dim" in level.pooling:
            level.pooling.attention_dim = 16
    config.model.word_dropout = config.model.embedding_dropout = config.model.output_dropout = 0.0
    config.optimizer = {"name": "adam", "learning_rate": 1e-2}
    config.schedule = {"name": "constant"}
    config.training = {
        "num_steps": 100,
        "log_every_steps": 25,
        "evaluate_every_steps": 50,
        "checkpoint_every_steps": 100,
    }
    return config
