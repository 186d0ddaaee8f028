"""Pointer sentinel: Merity, Xiong, Bradbury and Socher 2017, at the size of one small LSTM.

"Pointer sentinel mixture models", ICLR 2017.

A recurrent language model that can also point at one of the last hundred words. As in the paper:
two layers of LSTM, one softmax over window and sentinel, and the loss that teaches the pointer.
Otherwise: 256 units instead of 650, tied embeddings, Adam, and texts of five lines that each begin
from nothing, instead of one text that is read through. Without the pointer it is
--config.model.readout.name=softmax --config.objectives.pointer_loss=false.

Command:  python -m launch.train --config=configs/merity2016.py:ptb --workdir=runs/merity2016
          after the colon: ptb, texts (one's own text, --config.data.train_table=FILE) or smoke
          echo "the company said" | python -m launch.translate --workdir=runs/merity2016
          goes on from each line
Expected: not measured at this size. The paper's medium model has a perplexity of 70.9 on the test
          text, and 80.6 without the pointer
Time:     not measured
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "ptb", ("ptb", "texts", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = {
        "name": argument, "lines_per_text": 5, "batch_size": 20, "num_buckets": 8,
        "max_target_length": 256, "eval_batch_size": 32,
    }  # fmt: skip
    config.model = {
        "name": "recurrent_language_model",
        "embedding_dim": 256,
        "cell": "lstm",
        "hidden_dim": 256,
        "num_layers": 2,
        "embedding_dropout": 0.3,
        "dropout": 0.3,
        "output_dropout": 0.3,
        "tie_embeddings": True,
        "readout": {"name": "pointer_sentinel", "window": 100},
    }
    config.objectives = {"nll": {}, "pointer_loss": {"weight": 1.0}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 15.0,
        # The loss counts the pointer's own, too.
        "metric": "perplexity",
        "log_every_steps": 50,
        "evaluate_every_steps": 400,
        "checkpoint_every_steps": 400,
    }
    config.evaluation = {"splits": ("validation", "test")}
    if argument == "smoke":
        config.data = common.data_section("smoke")
        config.model.embedding_dim = config.model.hidden_dim = 32
        config.model.num_layers, config.model.readout.window = 1, 8
        for field in ("embedding_dropout", "dropout", "output_dropout"):
            config.model[field] = 0.0
        config.training.update({"num_steps": 200, "evaluate_every_steps": 100})
        config.schedule.warmup_steps = 20
        del config.training.num_epochs
    return config
