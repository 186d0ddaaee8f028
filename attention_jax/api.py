"""Python API: trains, translates, scores and shows attention, from a notebook or a script.

>>> from attention_jax import api
>>> run = api.load("runs/quickstart")           # doctest: +SKIP
>>> [output] = run.translate(["attention"])     # doctest: +SKIP
>>> output.text, output.attention.shape         # doctest: +SKIP
('AH0 T EH1 N SH AH0 N', (8, 10))
>>> run.plot(output)                            # doctest: +SKIP

It does what the programs of the command line do, with the same parts and the same checks; mistakes
are raised as `attention_jax.errors.UserError`.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from attention_jax.analysis.self_attention import self_attention
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.data.text.vocabulary import tokens_in_text
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.scoring import ScoredPair, Scorer, given_pairs
from attention_jax.decoding.translate import Translation, Translator, check_aligning
from attention_jax.errors import UserError
from attention_jax.experiment import run_experiment
from attention_jax.plotting.curves import read_metrics
from attention_jax.plotting.heat_map import HeatMap, heat_map_grid
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import TrainedRun, load_run
from attention_jax.runs.run_directory import RunDirectory, read_json

CROSS_ATTENTION = "attention"


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """A translation: one output of a search.

    Attributes:
      source: The text that was read.
      text: The text that was written.
      log_prob: log p(text | source), natural logarithm.
      score: What the search ranked it by, such as the length-normalised log-probability.
      source_tokens: The S tokens that were read, EOS last.
      tokens: The T tokens that were written, EOS last.
      attention: How much each written token attended to each read one; all zeros where the model
        attends to nothing.
    """

    source: str
    text: str
    log_prob: float
    score: float
    source_tokens: Sequence[str]
    tokens: Sequence[str]
    attention: Float[np.ndarray, "T S"]


@dataclasses.dataclass(frozen=True, eq=False)
class Attention:
    """Attention of forced decoding: what a model attends to while it predicts a given target.

    Attributes:
      source_tokens: The S tokens of the source, EOS last.
      tokens: The T tokens of the target, EOS last.
      weights: Cross-attention, `T S`, the mean over heads where there are several.
      heads: Weights of every layer and head by the path of the layer: `attention`, `H T S`, where
        cross-attention has heads (of several layers side by side); self-attention, `H N N`.
    """

    source_tokens: Sequence[str]
    tokens: Sequence[str]
    weights: Float[np.ndarray, "T S"]
    heads: Mapping[str, Float[np.ndarray, "H N M"]]


class Run:
    """A trained run, loaded once; what is asked of it is compiled when it is asked first."""

    def __init__(self, trained: TrainedRun):
        """Takes a run of `attention_jax.runs.load`."""
        self.trained = trained
        self._translators: dict[int, Translator] = {}

    @property
    def directory(self) -> pathlib.Path:
        """The run directory."""
        return self.trained.directory.path

    @property
    def config(self) -> ConfigDict:
        """The config that it was trained with, as its `config.json` has it."""
        return ConfigDict(self.trained.directory.read_config())

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The metrics of the evaluated splits, by split; empty before an evaluation."""
        return read_json(self.trained.directory.results) or {}

    @property
    def metrics(self) -> Any:
        """The learning curves: what training logged, as `plotting.curves.read_metrics` has it."""
        return read_metrics(self.trained.directory.metrics)

    @functools.cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.trained)

    def _translator(self, nbest: int) -> Translator:
        # Kept by the length of the lists, for each compiles a search of its own.
        if nbest not in self._translators:
            self._translators[nbest] = Translator(self.trained, nbest=nbest)
        return self._translators[nbest]

    @functools.cached_property
    def _writer(self) -> OutputWriter:
        run = self.trained
        return OutputWriter(
            run.config.search, run.source_vocabulary, run.target_vocabulary,
            run.alignment_shift, run.config.data.lowercase,
        )  # fmt: skip

    def translate(self, lines: Sequence[str]) -> list[Output]:
        """Translates lines of text; a language model continues them.

        Args:
          lines: Source texts. A blank one has an output without text.

        Returns:
          The best output of each line, in their order.

        Raises:
          UserError: If a line is too long or cannot be read.
        """
        return [outputs[0] for outputs in self.translate_nbest(lines, 1)]

    def translate_nbest(self, lines: Sequence[str], nbest: int) -> list[list[Output]]:
        """N-best lists: the best outputs of each line, best first.

        Raises:
          UserError: As `translate`, and if the search does not keep as many.
        """
        _check_texts("lines", lines)
        return [self._outputs(each) for each in self._translator(nbest).translate(lines)]

    def _outputs(self, translation: Translation) -> list[Output]:
        run, source = self.trained, translation.source
        if not translation.hypotheses:
            return [Output(source, "", 0.0, 0.0, (), (), np.zeros((0, 0)))]
        vocabulary = getattr(run, f"{run.task.input_side}_vocabulary")
        read = tokens_in_text(vocabulary, translation.source_ids, source)
        return [
            Output(
                source, self._writer(each, source), each.log_prob, each.score, read,
                each.vocabulary(run.target_vocabulary).tokens(each.tokens),
                np.asarray(each.weights),
            )
            for each in translation.hypotheses
        ]  # fmt: skip

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[ScoredPair]:
        """Scoring: log-probabilities of given targets, in whole and by token.

        Args:
          sources: Source texts; a language model reads none of them.
          targets: The outputs to score, one for each source.

        Raises:
          UserError: If their numbers differ, or one cannot be read.
        """
        _check_texts("sources", sources)
        _check_texts("targets", targets)
        return self._scorer(given_pairs(self.trained, sources, targets))

    def attend(self, source: str, target: str) -> Attention:
        """Forced decoding: the attention of every layer and head while a target is predicted.

        Raises:
          UserError: If the model does not attend to its source, or a text cannot be read.
        """
        run = self.trained
        if not run.links_tokens:
            raise UserError(
                f"{run.directory.path}: expected a model that attends to its source, found none"
            )
        pair = given_pairs(run, [source], [target])
        [forced] = forced_attention(run, pair)
        heads = {layer: found[0].weights for layer, found in self_attention(run, pair).items()}
        if forced.heads is not None:
            heads[CROSS_ATTENTION] = forced.heads
        return Attention(
            tokens_in_text(run.source_vocabulary, pair.source_ids[0], pair.sources[0]),
            extended(run.target_vocabulary, pair.own_words[0]).tokens(pair.target_ids[0]),
            forced.weights, heads,
        )  # fmt: skip

    def plot(self, *shown: Output | Attention, columns: int = 2) -> Figure:
        """Attention heat maps: source across, target down; a notebook shows the figure.

        Args:
          *shown: What `translate` or `attend` returned.
          columns: How many stand beside each other.

        Raises:
          UserError: If there is nothing to draw, or the model attends to nothing.
        """
        check_aligning(self.trained, "plot")
        maps = [_heat_map(one) for one in shown if len(one.tokens)]
        if not maps:
            raise UserError("plot: expected outputs or attention, found none with any token")
        return heat_map_grid(maps, columns)


def load(
    path: str | pathlib.Path,
    *,
    search: Mapping[str, Any] | None = None,
    step: int | None = None,
) -> Run:
    """Loads a trained run with its best parameters.

    Args:
      path: The run directory.
      search: Fields of the search in place of those of the run's config: `{"beam_size": 10}`.
      step: The checkpoint to take, instead of the best one or an average.

    Raises:
      UserError: If it is not the directory of a trained run, or a field does not fit.
    """
    if search is not None:
        directory = RunDirectory(path)
        directory.require()
        search = {**directory.read_config()["search"], **search}
    return Run(load_run(path, search, step))


def train(config: ConfigDict | Mapping[str, Any], workdir: str | pathlib.Path) -> Run:
    """Trains and evaluates, or goes on where the same call was cut off.

    Args:
      config: A config such as those of `configs/`, or a plain mapping of the same form.
      workdir: The run directory; made if there is none, continued if it holds this run.

    Returns:
      The trained run.

    Raises:
      UserError: If the config, the data or the directory is at fault.
    """
    run_experiment(from_config_dict(ConfigDict(config)), workdir)
    return load(workdir)


def _check_texts(name: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise UserError(f"{name}: expected a list of texts, found one text, {texts!r:.80}")


def _heat_map(shown: Output | Attention) -> HeatMap:
    is_output = isinstance(shown, Output)
    weights = shown.attention if is_output else shown.weights
    title = shown.source if is_output else ""
    return HeatMap(np.asarray(weights, np.float64), shown.source_tokens, shown.tokens, title)
