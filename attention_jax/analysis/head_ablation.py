"""Head ablation: the loss while a head may read nothing, which a mask says."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attention_jax.data.examples import Split
from attention_jax.decoding.teacher_forcing import TeacherForcing, batches_of_process
from attention_jax.objectives import Objective
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Call

Place = tuple[str, int]  # the path of a head's module, and its number in it


def losses_without(
    run: TrainedRun, split: Split, places: Sequence[Place]
) -> Iterator[tuple[Place, float]]:
    """Yields each head and by how much the negative log-likelihood of a token grows without it.

    Args:
      run: A run with heads; of both directions it is the forward model's.
      split: What the loss is measured on.
      places: The heads. One that is the only head of its layer is left out.
    """
    batches = batches_of_process(split, run.config, run.strategy)

    def loss(masks: Mapping[str, np.ndarray]) -> float:
        objective, call = Objective(run.config.objectives), Call(masks=masks)
        measure = TeacherForcing(run.model, objective, run.strategy, run.shardings, call)
        return measure(run.params, batches)["nll"]

    whole = loss({})
    for path, head in places:
        number = sum(path == other for other, _ in places)
        if number > 1:
            others = (np.arange(number) != head)[None, :, None, None]  # 1 H 1 1
            # A mechanism without parameters has no path of its own.
            module = "decoder/attention" if path == "attention" else path
            yield (path, head), loss({module: others}) - whole
