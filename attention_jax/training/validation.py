"""Validation during training: losses under teacher forcing, and scores of decoded outputs."""

import itertools
from collections.abc import Sequence

from attention_jax.data.loading import TaskData
from attention_jax.decoding.output_statistics import output_statistics
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.searcher import Searcher
from attention_jax.decoding.teacher_forcing import TeacherForcing, batches_of_process
from attention_jax.devices import Strategy
from attention_jax.errors import ConfigError
from attention_jax.objectives import Objective
from attention_jax.objectives.attention_shape import attention_shape
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.divergence import said_of
from attention_jax.types import Model, Params
from attention_jax.updates.state import TrainState


class Validation:
    """The validation split, and the compiled functions that measure it."""

    def __init__(
        self,
        config: ExperimentConfig,
        task: TaskData,
        model: Model,
        objective: Objective,
        strategy: Strategy,
        shardings: TrainState,
    ):
        """Takes the whole split for the loss and a fixed sample of it for decoding.

        Args:
          config: `evaluation.num_validation_examples` are decoded, in the way of `search`.
          task: Has the split `validation`.
          model: The network.
          objective: The loss.
          strategy: Compiles the evaluation step for the devices.
          shardings: Placement of the training state, for which the step is compiled.
        """
        split = task.split("validation")
        size = config.evaluation.num_validation_examples
        if size and config.task.continues:
            raise ConfigError(
                "config.evaluation.num_validation_examples: expected 0 for a model that reads no "
                f"source, found {size}"
            )
        self._task = config.task
        self._data_config = config.data
        self._batches = batches_of_process(split, config, strategy)
        measures = [attention_shape] if "alignment" in model.provides else []
        self._measure = TeacherForcing(model, objective, strategy, shardings, measures)
        # 0 decodes nothing, -1 the whole split; otherwise a sample that is the same every time.
        self._sample = split.sample(size) if size > 0 else split if size < 0 else None
        self._search = config.search
        self._decode = Searcher(model, config.search, seed=config.seed)
        self._text_of = OutputWriter(
            config.search, task.source_vocabulary, task.target_vocabulary,
            objective.alignment_shift, config.data.lowercase,
        )  # fmt: skip

    def __call__(self, params: Params) -> dict[str, float]:
        """Returns the teacher-forced metrics, and error rates or BLEU if examples are decoded.

        Raises:
          DivergenceError: If losses or outputs are not finite.
        """
        with said_of("validation"):
            metrics = self._measure(params, self._batches)
            if self._sample is None:
                return metrics
            found = self._decode(params, self._sample, self._data_config)
        texts = self._text_of.best(found, self._sample.sources)
        told = output_statistics(self._sample, found, texts, self._search)
        return {**metrics, **self._scores(texts), **told}

    def check(self, params: Params) -> None:
        """Measures the first batch only: a sanity check before parameters are saved as good.

        Raises:
          DivergenceError: If its loss is not finite.
        """
        with said_of("validation"):
            self._measure(params, itertools.islice(self._batches, 1))

    def metric_names(self, params: Params) -> list[str]:
        """Returns the names of the metrics; `params` may be shapes, for nothing is computed."""
        names = self._measure.names(params, self._batches)
        if self._sample is not None:
            # The references stand in for outputs: only the names of their scores are wanted.
            names += self._scores(self._sample.targets)
        return names

    def _scores(self, outputs: Sequence[str]) -> dict[str, float]:
        score = self._task.scores
        scores = {} if score is None else score(self._sample, outputs, self._data_config)
        return {name: float(value) for name, value in scores.items() if not isinstance(value, str)}
