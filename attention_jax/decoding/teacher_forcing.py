"""Teacher forcing of a whole split: measures a model's losses on examples with known targets."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import jax

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import EvalBatches, NumpyBatch, make_eval_batches
from attention_jax.devices import Strategy, process_share
from attention_jax.devices.mesh import replicated
from attention_jax.objectives import Objective, Pairs, add_pairs
from attention_jax.objectives.metrics import means
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.divergence import check_losses
from attention_jax.types import Batch, Call, Leaf, Model, Params
from attention_jax.updates.state import TrainState
from attention_jax.updates.step import EvalStep, Measure, make_eval_step

_BATCHES_IN_FLIGHT = 8


class TeacherForcing:
    """Teacher forcing over a split: the loss, and what else the objective measures."""

    def __init__(
        self,
        model: Model,
        objective: Objective,
        strategy: Strategy,
        shardings: TrainState,
        measures: Sequence[Measure] = (),
    ):
        """Prepares the step, which is compiled for every shape of batch when it first occurs.

        Args:
          model: The network.
          objective: The training objective, whose terms are measured.
          strategy: How the step is compiled for the devices.
          shardings: Placement of the training state on them.
          measures: What else is measured of a batch's outputs.
        """
        self._model = model
        self._measures = measures
        self._objective = objective
        self._strategy = strategy
        exchange = strategy.exchange(shardings)

        def eval_step(given: Params, batch: Batch) -> Pairs:
            call = Call(masks=given["masks"])
            step = make_eval_step(model, objective, exchange, call, measures)
            return step(given["params"], batch)

        # Masks go where parameters do, as arguments: constants would be compiled again for each.
        self._everywhere = replicated(strategy.mesh)
        placed = {"params": shardings.params, "masks": self._everywhere}
        self._eval_step: EvalStep = strategy.compile_eval_step(
            eval_step, dataclasses.replace(shardings, params=placed)
        )

    def __call__(
        self, params: Params, batches: Iterable[NumpyBatch], masks: Mapping[str, Leaf] | None = None
    ) -> dict[str, float]:
        """Returns the means over all batches: `loss`, `nll`, `perplexity`, `accuracy`, ...

        Args:
          params: The network's parameters.
          batches: The examples.
          masks: Those of `types.Call`, such as ablate heads.

        Raises:
          DivergenceError: If one of them is not finite.
        """
        masks = jax.device_put(dict(masks or {}), self._everywhere)
        given, metrics = {"params": params, "masks": masks}, []
        for number, batch in enumerate(batches):
            metrics.append(self._eval_step(given, self._strategy.place(batch)))
            # Dispatch is asynchronous: unchecked, the host would place all batches at once.
            if number >= _BATCHES_IN_FLIGHT:
                jax.block_until_ready(metrics[number - _BATCHES_IN_FLIGHT])
        values = self._objective.summary(add_pairs(metrics))
        check_losses(values)
        return values

    def names(self, params: Params, batches: Iterable[NumpyBatch]) -> list[str]:
        """Returns the names of the metrics by tracing, without computing them."""
        eval_step = make_eval_step(self._model, self._objective, measures=self._measures)
        pairs = jax.eval_shape(eval_step, params, next(iter(batches)))
        # With the names that means are added under, such as the perplexity.
        return ["loss", *means({name: (1.0, 1.0) for name in pairs})]


def batches_of_process(split: Split, config: ExperimentConfig, strategy: Strategy) -> EvalBatches:
    """Data parallelism: returns the batches of a split with this process's share of their rows."""
    return make_eval_batches(split, config.data, *process_share(strategy.mesh))
