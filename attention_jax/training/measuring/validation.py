"""Measuring a model on examples whose targets are known, while training and after it."""

import itertools
from collections.abc import Iterable, Sequence

import jax

from attention_jax.data.pipeline import EvalBatches, NumpyBatch, make_eval_batches
from attention_jax.data.tasks import Split, Task, is_lowercase
from attention_jax.errors import ConfigError
from attention_jax.objectives import Objective, add_pairs
from attention_jax.objectives.metrics import means
from attention_jax.training.config import ExperimentConfig
from attention_jax.training.measuring.decode import Decoder
from attention_jax.training.measuring.divergence import check_losses, said_of
from attention_jax.training.measuring.outputs import OutputWriter
from attention_jax.training.measuring.scoring import score_outputs
from attention_jax.training.sharding import Strategy, process_share
from attention_jax.training.updates.state import TrainState
from attention_jax.training.updates.step import EvalStep, make_eval_step
from attention_jax.types import Model, Params

_BATCHES_IN_FLIGHT = 8


class Measurement:
    """The loss and what else the objective measures, over all batches of a split."""

    def __init__(
        self, model: Model, objective: Objective, strategy: Strategy, shardings: TrainState
    ):
        """Compiles nothing yet.

        Args:
          model: The network.
          objective: The loss.
          strategy: How it is computed.
          shardings: Placement of the training state.
        """
        self._model = model
        self._objective = objective
        self._strategy = strategy
        self._eval_step: EvalStep = strategy.compile_eval_step(
            make_eval_step(model, objective, strategy.exchange(shardings)), shardings
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


class Validation:
    """The validation split, measured again and again."""

    def __init__(
        self,
        config: ExperimentConfig,
        task: Task,
        model: Model,
        objective: Objective,
        strategy: Strategy,
        shardings: TrainState,
    ):
        """Takes the whole split for the loss and a fixed sample of it for decoding.

        Args:
          config: Its `evaluation.num_validation_examples` are decoded, as `search` says.
          task: Its `validation` split is used.
          model: The network.
          objective: The loss.
          strategy: How it is computed.
          shardings: Placement of the training state.
        """
        split = task.split("validation")
        size = config.evaluation.num_validation_examples
        if size and not getattr(model, "reads_source", True):
            raise ConfigError(
                "config.evaluation.num_validation_examples: expected 0 for a model that reads no "
                f"source, found {size}"
            )
        self._task = task
        self._data_config = config.data
        self._batches = batches_of_process(split, config, strategy)
        self._measure = Measurement(model, objective, strategy, shardings)
        self._sample = split.sample(size) if size > 0 else split if size < 0 else None
        self._decode = Decoder(model, config.search, seed=config.seed)
        self._text_of = OutputWriter(
            config.search, task.source_vocabulary, task.target_vocabulary,
            objective.alignment_shift, is_lowercase(config.data),
        )  # fmt: skip

    def __call__(self, params: Params) -> dict[str, float]:
        """Returns the loss and its like, and error rates or BLEU where examples are decoded.

        Raises:
          DivergenceError: If losses or outputs are not finite.
        """
        with said_of("validation"):
            metrics = self._measure(params, self._batches)
            if self._sample is None:
                return metrics
            hypotheses = self._decode(params, self._sample, self._data_config)
        return {**metrics, **self._scores(self._text_of.best(hypotheses, self._sample.sources))}

    def check(self, params: Params) -> None:
        """Measures the first batch alone, before parameters are saved as good ones.

        Raises:
          DivergenceError: If its loss is not finite.
        """
        with said_of("validation"):
            self._measure(params, itertools.islice(self._batches, 1))

    def metric_names(self, params: Params) -> list[str]:
        """Returns the names of what is measured, given the shapes of the parameters."""
        names = self._measure.names(params, self._batches)
        if self._sample is not None:
            names += self._scores(self._sample.targets)
        return names

    def _scores(self, outputs: Sequence[str]) -> dict[str, float]:
        scores = score_outputs(self._task.kind, self._sample, outputs)
        return {name: value for name, value in scores.items() if not isinstance(value, str)}


def batches_of_process(
    split: Split, config: ExperimentConfig, strategy: Strategy
) -> EvalBatches:
    """Returns the batches of a split, of which this process has its share of rows."""
    return make_eval_batches(split, config.data, *process_share(strategy.mesh))
