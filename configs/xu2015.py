"""Soft and hard attention: Xu et al. 2015, on pictures, and on English spelling.

"Show, attend and tell: neural image caption generation with visual attention", ICML 2015.

As in the paper and its program: additive attention whose weights are sampled from, taught by
REINFORCE with a moving average as baseline and a bonus for entropy, half of the batches with the
expectation; a gate that scales what is read; an LSTM that attends before it updates and starts from
the mean annotation; a readout of state, last symbol and context; the expectation in search.
Otherwise: pictures are read by a small convolutional network that learns with everything else, in
place of VGG, or letters by a bidirectional LSTM; and smaller layers. `features` reads the 14 x 14
annotations that VGG, or another network, has made of one's own pictures.
Soft attention, which the paper compares with, other gradients, and the penalty of doubly stochastic
attention are overrides:

    --config.model.attention.score.name=bahdanau --config.objectives.reinforce=false
    --config.model.attention.score.estimator.name=gumbel_softmax --config.objectives.reinforce=false
    --config.objectives.coverage_penalty.weight=1

Command:  python -m launch.train --config=configs/xu2015.py --workdir=runs/xu2015
          after the colon: cmudict, emoji, features or pictures (one's own), formulas, smoke
Expected: docs/results/captions.md for emoji and formulas; smoke learns its task
Time:     about three minutes on one CPU core for emoji, half an hour to an hour for formulas
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    argument = common.choose(argument, "cmudict", ("cmudict", *common.PICTURES, "smoke"))
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
        "attention": {
            "name": "gated",
            "score": {
                "name": "hard",
                "score": {"name": "bahdanau", "attention_dim": 128},
                "estimator": {
                    "name": "reinforce",
                    "expectation_share": 0.5,
                    "drawn_for": "batch",
                },
                "at_test": {"name": "expectation"},
            },
        },
        "decoder": {
            "name": "bahdanau",
            "cell": "lstm",
            "hidden_dim": 256,
            "bridge": "mean",
            "readout": "tanh",
            "readout_dim": 128,
        },
        "embedding_dropout": 0.1,
        "output_dropout": 0.2,
    }
    config.objectives = {
        "nll": {},
        "reinforce": {"weight": 0.1, "returns": "mean", "baseline": "moving_average"},
        "attention_entropy": {"weight": 0.002},
    }
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 8.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 500,
    }
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 8}
    if argument in common.PICTURES:
        _read_pictures(config)
    return common.make_smoke(config) if argument == "smoke" else config


def _read_pictures(config: ConfigDict) -> None:
    """Reads pictures by pixels or by features, of the sizes that `common.data_section` has."""
    data = config.data
    if data.name == "features":
        rows, read = data.rows, {"name": "frames", "frame_dim": data.depth}
    else:
        rows = data.height // data.cell
        channels = 3 if data.colours == "rgb" else 1
        sizes = {"rows": rows, "cell": data.cell, "channels": channels}
        read = {"name": "pixels", **sizes, "filters": 16}
    config.model.sources.source = {
        "input": {**read, "embedding_dim": 128},
        "encoder": {"name": "grid", "rows": rows, "num_layers": 2},
    }
    config.training.num_epochs = 30.0
    if data.name == "formulas":
        # Made up, so there may be many: five times as many, read a third as often, teach more.
        data.num_formulas, config.training.num_epochs = 40_000, 10.0
        # Raised letters are four pixels high, and what is beside a cell belongs to other symbols.
        config.model.sources.source.input.filters = 32
        config.model.sources.source.encoder.num_layers = 1
