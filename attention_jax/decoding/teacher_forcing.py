"""Teacher forcing of a whole split: the losses of a model on examples whose targets are known."""

from collections.abc import Iterable

import jax

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import EvalBatches, NumpyBatch, make_eval_batches
from attention_jax.devices import Strategy, process_share
from attention_jax.objectives import Objective, add_pairs
from attention_jax.objectives.metrics import means
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.divergence import check_losses
from attention_jax.types import Call, Model, Params
from attention_jax.updates.state import TrainState
from attention_jax.updates.step import EvalStep, make_eval_step

_BATCHES_IN_FLIGHT = 8


class TeacherForcing:
    """Teacher forcing over a split: the loss, and what else the objective measures."""

    def __init__(
        self,
        model: Model,
        objective: Objective,
        strategy: Strategy,
        shardings: TrainState,
        call: Call = Call(),
    ):
        """Compiles nothing yet.

        Args:
          model: The network.
          objective: The loss.
          strategy: How it is computed.
          shardings: Placement of the training state.
          call: How the network is called, such as with masks.
        """
        self._model = model
        self._objective = objective
        self._strategy = strategy
        self._eval_step: EvalStep = strategy.compile_eval_step(
            make_eval_step(model, objective, strategy.exchange(shardings), call), shardings
        )

    def __call__(self, params: Params, batches: Iterable[NumpyBatch]) -> dict[str, float]:
        """Returns the means over all batches: `loss`, `nll`, `perplexity`, `accuracy`, ...

        Raises:
          DivergenceError: If one of them is not finite.
        """
        metrics = []
        for number, batch in enumerate(batches):
            metrics.append(self._eval_step(params, self._strategy.place(batch)))
            if number >= _BATCHES_IN_FLIGHT:  # or the host runs ahead and memory fills up
                jax.block_until_ready(metrics[number - _BATCHES_IN_FLIGHT])
        values = self._objective.summary(add_pairs(metrics))
        check_losses(values)
        return values

    def names(self, params: Params, batches: Iterable[NumpyBatch]) -> list[str]:
        """Returns the names of the metrics without computing them."""
        eval_step = make_eval_step(self._model, self._objective)
        pairs = jax.eval_shape(eval_step, params, next(iter(batches)))
        return ["loss", *means({name: (1.0, 1.0) for name in pairs})]


def batches_of_process(
    split: Split, config: ExperimentConfig, strategy: Strategy
) -> EvalBatches:
    """Returns the batches of a split, of which this process has its share of rows."""
    return make_eval_batches(split, config.data, *process_share(strategy.mesh))
