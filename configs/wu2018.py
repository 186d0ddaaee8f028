"""Exact hard attention: Wu, Shapiro and Cotterell 2018, on English pronunciation.

"Hard non-monotonic attention for character-level transduction", EMNLP 2018.

The paper's smaller model: a bidirectional LSTM reads, an LSTM starts from zeros and reads what has
been written, and nothing that is attended to is fed back, so that the sum over all alignments is
exact. Its soft attention of the same size is --config.model.decoder.name=luong with
--config.model.decoder.input_feeding=false, --config.model.decoder.attentional_dim=600,
--config.model.decoder.bridge=zero and --config.model.readout.name=softmax.

As in the paper: sizes, dropout, Adam at .001, gradients clipped at 5, a learning rate that is
halved whenever the validation loss has not fallen, greedy search. Otherwise: the split of the
dictionary, batches of 256 words instead of 20, and at most 20 epochs instead of 50, or fewer where
eight validations have brought nothing; the paper stops at a learning rate below .00001.

Command:  python -m launch.train --config=configs/wu2018.py --workdir=runs/wu2018
          after the colon: cmudict or smoke
Expected: not measured at this size
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    argument = common.choose(argument, "cmudict", ("cmudict", "smoke"))
    config = common.letters("cmudict", depth=100, reader_depth=200, dropout=0.2)
    config.model.attention = {"name": "luong_general"}
    config.model.decoder = {
        "name": "transducer", "cell": "lstm", "hidden_dim": 200, "bridge": "zero",
    }  # fmt: skip
    config.model.readout = {
        "name": "marginal", "hidden_dim": 600, "alignment": {"name": "independent"},
    }  # fmt: skip
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 5.0}
    config.schedule = {"name": "plateau", "reduction": 0.5, "patience": 0}
    config.training.update(num_epochs=20.0, evaluate_every_steps=450, checkpoint_every_steps=450)
    config.training.update(metric="nll", patience=8)
    config.search = {"method": "greedy"}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 12}
    return common.make_smoke(config) if argument == "smoke" else config
