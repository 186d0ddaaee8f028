"""Soft, hard and monotonic attention on inflection and pronunciation: what all systems share.

`experiments/hard_vs_soft.py` varies the attention, the language and how much there is to train on.
Letters of a lemma are read by a bidirectional LSTM, with the tags beside each of them; the decoder
is Luong's. The plain file is soft attention with input feeding.

Command:  python -m experiments.hard_vs_soft --jobs=2    (all runs, then the tables)
          python -m launch.train --config=configs/hard_vs_soft.py:conll2017 \
              --workdir=runs/turkish --config.data.language=turkish    (one run)
          after the colon: conll2017, inflections (one's own table), sigmorphon2021,
          pronunciations (one's own) or smoke
Expected: docs/results/hard_vs_soft.md
Time:     a few minutes a run on one CPU core for 1,000 pairs; six for the pronunciations of a
          language, eight for the English ones
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    choices = (*common.INFLECTIONS, *common.PRONUNCIATIONS[1:], "smoke")
    argument = common.choose(argument, "conll2017", choices)
    config = common.letters(argument, depth=128, reader_depth=128, dropout=0.3)
    config.model.attention = {"name": "luong_general"}
    config.model.decoder = {
        "name": "luong",
        "cell": "lstm",
        "hidden_dim": 256,
        "attentional_dim": 256,
        "input_feeding": True,
        "bridge": "mean",
    }
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 5.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 100, "final_fraction": 0.02}
    config.training.update(num_epochs=100.0, evaluate_every_steps=400, checkpoint_every_steps=400)
    # A form counts if it is right as a whole, which the loss of its letters tells but roughly.
    is_form = argument in common.INFLECTIONS
    config.training.metric = "exact_match" if is_form else "wer"
    config.training.mode = "max" if is_form else "min"
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {
        "splits": ("validation", "test"), "num_validation_examples": 1000, "num_heat_maps": 4,
    }  # fmt: skip
    return common.make_smoke(config) if argument == "smoke" else config
