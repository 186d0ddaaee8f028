"""Config of the start-up measurement: the models of the speed comparison on a text of one's own.

Command:  python -m launch.train --config=experiments/benchmarks/speed/startup_config.py:rnn ...
          after the colon: rnn or transformer; the text as with any config for `parallel`
"""

from ml_collections import ConfigDict

from configs import common
from experiments.benchmarks.speed.project_model import model_fields
from experiments.benchmarks.speed.workloads import Sizes, TransformerSizes

MODELS = {"rnn": Sizes(), "transformer": TransformerSizes()}


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config of a model: words, batches of one shape, every step told."""
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section("parallel")
    config.data.update(batch_size=64, num_buckets=1)
    config.data.subwords = {"kind": "words", "size": 8000, "joint": False}
    sizes = MODELS[common.choose(argument, "rnn", tuple(MODELS))]
    config.model = {"name": "encoder_decoder", **model_fields(sizes)}
    config.objectives = {"nll": {}}
    config.optimizer = {"name": "adam", "learning_rate": 1e-4, "clip_norm": 0.0}
    config.schedule = {"name": "constant"}
    config.training = {"num_steps": 3, "log_every_steps": 1, "evaluate_every_steps": 0}
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {"splits": (), "num_heat_maps": 0}
    return config
