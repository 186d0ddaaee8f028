"""Listen, attend and spell: Chan, Jaitly, Le and Vinyals 2016, at small size.

"Listen, attend and spell: a neural network for large vocabulary conversational speech recognition",
ICASSP 2016.

As in the paper: 40 log-mel bands every 10 ms, a pyramid of bidirectional LSTMs that halves their
number at every level, an LSTM that is given the last symbol and the last context, content-based
attention from its new state, and a readout of state and context.
Otherwise: the two networks that queries and annotations pass before they are compared are linear,
for digits a symbol is a word (`--config.data.spelling=characters` spells them), layers are smaller,
and there is dropout, Adam, and a beam without a language model. Scheduled sampling at the paper's
rate, and `location_aware` attention, which sees where it has been, are overrides:

    --config.model.scheduled_sampling=0.1
    --config.model.attention.name=location_aware

Command:  python -m launch.train --config=configs/chan2016.py --workdir=runs/chan2016
          after the colon: digits (strings of spoken digits), recordings (one's own, with
          --config.data.train_table=TABLE of `file<TAB>text` lines) or smoke (dialled numbers)
Expected: not measured
Time:     not measured
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    argument = common.choose(argument, "digits", ("digits", "recordings", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section("tones" if argument == "smoke" else argument)
    config.data.spelling = "characters" if argument == "recordings" else "words"
    config.model = {
        "name": "encoder_decoder",
        "target_embedding_dim": 64,
        "sources": {
            "source": {
                "input": {"name": "frames", "frame_dim": 40, "embedding_dim": 64},
                "encoder": {
                    "name": "pyramidal",
                    "cell": "lstm",
                    "hidden_dim": 96,
                    "levels": 3,
                    "dropout": 0.2,
                },
            }
        },
        "attention": {"name": "luong_general"},
        "decoder": {"name": "speller", "cell": "lstm", "hidden_dim": 128, "readout_dim": 128},
        "embedding_dropout": 0.1,
        "output_dropout": 0.2,
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_steps": 3000,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 500,
        "metric": "wer",
    }
    # An output has a symbol for every few frames at most.
    config.search = {"method": "beam", "beam_size": 4, "max_length_factor": 0.2}
    config.evaluation = {"splits": ("test",), "num_validation_examples": -1, "num_heat_maps": 8}
    if argument == "digits":
        config.evaluation.splits = ("validation", "test", "new_speaker")
    return _smoke(config) if argument == "smoke" else config


def _smoke(config: ConfigDict) -> ConfigDict:
    """Shrinks the config so that it learns to write down dialled numbers in seconds."""
    source = config.model.sources.source
    source.input.embedding_dim = config.model.target_embedding_dim = 32
    source.encoder.hidden_dim, source.encoder.levels = 32, 2
    source.encoder.dropout = config.model.embedding_dropout = config.model.output_dropout = 0.0
    config.model.decoder.hidden_dim = config.model.decoder.readout_dim = 48
    config.objectives = {"nll": {}}
    config.optimizer = {"name": "adam", "learning_rate": 5e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 20}
    config.training = {
        "num_steps": 600,
        "log_every_steps": 50,
        "evaluate_every_steps": 300,
        "checkpoint_every_steps": 300,
    }
    return config
