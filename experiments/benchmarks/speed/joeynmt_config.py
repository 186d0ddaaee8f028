"""JoeyNMT's configs: its model with the sizes of the comparison, and a whole run of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.benchmarks.speed.workloads import Sizes


def model_config(sizes: Sizes) -> dict[str, Any]:
    """Returns its recurrent model with additive attention and input feeding."""
    common = {
        "type": "recurrent",
        "rnn_type": "gru",
        "hidden_size": sizes.hidden,
        "num_layers": 1,
        "dropout": 0.0,
        "embeddings": {"embedding_dim": sizes.embedding, "scale": False},
    }
    return {
        "initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "embed_initializer": "normal",
        "embed_init_weight": 0.1,
        "encoder": {**common, "bidirectional": True},
        "decoder": {
            **common,
            "hidden_dropout": 0.0,
            "attention": "bahdanau",
            "input_feeding": True,
            "init_hidden": "bridge",
        },
    }


def run_config(
    sizes: Sizes, text: Path, folder: Path, *, batch: int, steps: int, width: int, longest: int
) -> Mapping[str, Any]:
    """Returns the config of a training on a text of words, and of translating with it.

    Args:
      sizes: Of the model.
      text: The training text, without the suffixes `source` and `target`.
      folder: Of the run.
      batch: Sentences in a batch.
      steps: Updates.
      width: Of the beam.
      longest: Most tokens of an output.
    """
    sides = {
        side: {"lang": lang, "level": "word", "voc_limit": sizes.vocabulary}
        for side, lang in (("src", "source"), ("trg", "target"))
    }
    return {
        "name": "startup",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {"train": str(text), "dev": str(text), "dataset_type": "plain", **sides},
        "model": model_config(sizes),
        "training": {
            "optimizer": "adam", "learning_rate": 1e-4, "learning_rate_min": 0.0,
            # Its default schedule asks for an argument that PyTorch no longer knows.
            "scheduling": "exponential", "batch_size": batch, "epochs": 1, "updates": steps,
            "logging_freq": 1, "validation_freq": 1000, "overwrite": True,
        },
        "testing": {
            "beam_size": width, "beam_alpha": 1.0, "max_output_length": longest, "batch_size": 1,
        },
    }  # fmt: skip
