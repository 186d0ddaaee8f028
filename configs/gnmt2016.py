r"""GNMT: Wu et al. 2016, at the size of small corpora and at the paper's.

"Google's neural machine translation system: bridging the gap between human and machine
translation", arXiv 1609.08144.

As in the paper: stacked LSTMs with residual connections from the third layer, the bottom encoder
layer reading both ways, additive attention asked by the bottom decoder layer's last state and told
to every decoder layer, length and coverage penalties. What the paper leaves open is as in
tensorflow/nmt: the decoder starts from the encoder's final states, of the bottom layer from those
of the backward reading. That program's later architecture, which attends with the current state
and which it found better, is --config.model.decoder.variant=gnmt_v2.

Four layers a side instead of eight, subwords instead of wordpieces, dropout, and Adam throughout.
`paper` is the full size, 8 + 8 layers of 1024 with a vocabulary of 32,000 pieces shared by both
sides, for one's own text (as `parallel`). It is the first part of that training. The second, SGD
from step 60,000 on, is a run of its own that starts from the last parameters of the first:
python -m launch.weights --workdir=runs/gnmt --step=60000 --output=gnmt.safetensors
python -m launch.train --config=configs/gnmt2016.py:paper --workdir=runs/gnmt_sgd \
    --config.data.train_source=FILE --config.data.train_target=FILE \
    --config.data.vocabularies=runs/gnmt/vocab \
    --config.training.initial_weights=gnmt.safetensors --config.training.num_steps=1140000 \
    --config.optimizer.name=sgd --config.optimizer.learning_rate=0.5
From step 1,200,000 on the paper halves the rate every 200,000 steps: a third run in the same way,
with --config.schedule.name=exponential --config.schedule.every_steps=200000
--config.schedule.staircase=true. Training for GLEU by reinforcement is not here.

The paper lays each layer on a device of its own. With --config.sharding.tensor=8 every layer of
`paper`, and every table of a vocabulary, is laid on eight devices instead, an eighth on each:
python -m launch.compile_check --config=configs/gnmt2016.py:paper --topology=cpu:8 \
    --config.sharding.tensor=8 --config.data.train_source=FILE --config.data.train_target=FILE
finds 280.9 million parameters, of which and of the optimiser's state a device holds 423 MiB; it was
compiled for Tatoeba's sentences, 128 x 49 x 48 (jax 0.10.2).

Command:  python -m launch.train --config=configs/gnmt2016.py:multi30k --workdir=runs/gnmt2016
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own), smoke or paper
Expected: multi30k 35.2 BLEU, see docs/results/configs.md: about as bahdanau2015.py's single layer.
          The paper's own corpora are WMT'14 (38.95 BLEU for English to French and 24.61 to German
          with 32,000 wordpieces, before reinforcement)
Time:     an hour on one CPU core for multi30k
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "multi30k", (*common.DATA_SETS, "paper"))
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section("parallel" if argument == "paper" else argument)
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
                    "num_layers": 4,
                    "direction": "bidirectional",
                    "bidirectional_layers": 1,
                    "residual": True,
                    "dropout": 0.2,
                },
            }
        },
        "attention": {"name": "bahdanau", "attention_dim": 256},
        "decoder": {
            "name": "gnmt",
            "cell": "lstm",
            "hidden_dim": 256,
            "num_layers": 4,
            "variant": "paper",
            "bridge": "copy_backward",
            "residual": True,
            "dropout": 0.2,
        },
        "embedding_dropout": 0.2,
        "output_dropout": 0.2,
        # Trained from words of scale 0.1, nearly every step attended to the first slot, where the
        # backward reading has seen the whole sentence.
        "initialization": {"name": "default", "embedding_scale": 1.0, "forget_bias": 1.0},
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    # A high rate: with 3e-3 the perplexity of the validation set ends at 9.1 instead of 8.8.
    config.optimizer = {"name": "adam", "learning_rate": 6e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 400, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 10.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 250,
    }
    config.search = {
        "method": "beam",
        "beam_size": 5,
        "length_normalization": "gnmt",
        "length_alpha": 0.2,
        "coverage_penalty": "gnmt",
        "coverage_beta": 0.2,
    }
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 8}
    if argument == "paper":
        return _paper(config)
    if argument == "smoke":  # whose few updates of narrow layers leave no room for dropout
        _set_dropout(config.model, 0.0)
        for side in (config.model.sources.source.encoder, config.model.decoder):
            side.num_layers = 3
    return common.finish(config, argument)


def _paper(config: ConfigDict) -> ConfigDict:
    """Enlarges the config to the paper's size and takes away what is for small data."""
    config.data.batch_size = 128
    config.data.subwords = {"kind": "bpe", "size": 32_000, "joint": True}
    model = config.model
    model.sources.source.input.embedding_dim = model.target_embedding_dim = 1024
    model.attention.attention_dim = 1024
    for side in (model.sources.source.encoder, model.decoder):
        side.hidden_dim, side.num_layers = 1024, 8
    _set_dropout(model, 0.0)
    model.initialization = {"name": "uniform", "scale": 0.04}
    config.objectives = {"nll": {}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-4, "clip_norm": 5.0}
    config.schedule = {"name": "constant"}
    config.training = {
        "num_steps": 60_000,
        "log_every_steps": 100,
        "evaluate_every_steps": 5_000,
        "checkpoint_every_steps": 1_000,
    }
    config.search.beam_size = 8
    # Rows of a layer's matrices, so that each device multiplies its units of a state by what it
    # holds of the weights.
    rows = ("input", "hidden", "context")
    config.sharding = {"rules": tuple((axis, "tensor") for axis in rows)}
    return config


def _set_dropout(model: ConfigDict, rate: float) -> None:
    model.sources.source.encoder.dropout = model.decoder.dropout = rate
    model.embedding_dropout = model.output_dropout = rate
