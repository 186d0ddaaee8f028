"""Python API: trains, translates, scores and shows attention, from a notebook or a script.

Of a run of `configs/quickstart.py:smoke`, which reads numbers out:

>>> from attention_jax import api
>>> run = api.load("runs/numbers")
>>> [output] = run.translate(["123"])
>>> output.text, output.tokens
('one two three', ['one', 'two', 'three', '</s>'])
>>> output.attention.shape, output.attention.argmax(-1)
((4, 4), array([0, 1, 2, 3]))
>>> [right, wrong] = run.score(["123", "123"], ["one two three", "one two two"])
>>> bool(right.log_prob > wrong.log_prob)
True
>>> run.attend("123", "one two two").weights.shape
(4, 4)
>>> figure = run.plot(output)
>>> figure.savefig("map.png")

It does what the programs of the command line do, with the same parts and the same checks; mistakes
are raised as `attention_jax.errors.UserError`.
"""

import dataclasses
import functools
import itertools
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging
from jaxtyping import Float
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from attention_jax import python_arguments
from attention_jax.analysis.attribution import (
    Attribution,
    attribute,
    check_attributable,
    check_methods,
)
from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.analysis.given_texts import GivenTexts
from attention_jax.analysis.gold_links import GoldFiles
from attention_jax.analysis.matrices import (
    CROSS_ATTENTION,
    AttentionMatrices,
    attention_matrices,
    forced_outputs,
)
from attention_jax.analysis.pictures import found_starts
from attention_jax.analysis.result_places import placed
from attention_jax.analysis.reverse import reverse_run
from attention_jax.data.examples import Split
from attention_jax.data.pictures import Canvas
from attention_jax.data.text.vocabulary import tokens_in_text
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.scoring import ScoredPair, Scorer, check_further, given_pairs
from attention_jax.decoding.translate import Translation, Translator, check_aligning
from attention_jax.devices.compilation_cache import keep_by_default
from attention_jax.errors import UserError, quoted
from attention_jax.experiment import run_experiment
from attention_jax.ops.ensemble_predictions import COMBINATIONS
from attention_jax.plotting.attended_picture import AttendedPicture
from attention_jax.plotting.canvases import attended_canvases
from attention_jax.plotting.curves import read_metrics
from attention_jax.plotting.heat_map import HeatMap, heat_map_grid
from attention_jax.python_arguments import by_argument, in_arguments
from attention_jax.quiet import quiet
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.config_file import load_config
from attention_jax.runs.ensemble import ensemble_of
from attention_jax.runs.load import TrainedRun, load_run, note_unfinished
from attention_jax.runs.run_directory import RunDirectory, read_json
from attention_jax.runs.size_of_text import settled
from attention_jax.training.preemption import Interruption

_DIRECTIONS = ("forward", "reverse")
# What the options of an evaluation are called here.
_OF_EVALUATION = {
    "source": "sources", "target": "targets", "alignment": "gold", "alignment_base": "gold_base",
    "alignment_source": "gold_sources", "alignment_target": "gold_targets",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """A translation: one output of a search.

    Attributes:
      source: The text that was read.
      text: The text that was written.
      log_prob: log p(text | source), natural logarithm.
      score: What the search ranked it by, such as the length-normalised log-probability.
      source_tokens: The S tokens that were read, EOS last; of a picture or of sound, the numbers of
        its places from 0.
      tokens: The T tokens that were written, EOS last.
      attention: How much each written token attended to each read one; all zeros where the model
        attends to nothing.
      heads: Weights of every layer and head while it is predicted, by the path of the layer, as of
        `AttentionMatrices`; empty unless they were asked for.
      further_tokens: The tokens of each further source, by its name, beside `heads`.
      canvas: The picture or the spectrogram that was read, for `Run.plot`; None for a text.
    """

    source: str
    text: str
    log_prob: float
    score: float
    source_tokens: Sequence[str]
    tokens: Sequence[str]
    attention: Float[np.ndarray, "T S"]
    heads: Mapping[str, Float[np.ndarray, "H N M"]] = dataclasses.field(default_factory=dict)
    canvas: Canvas | None = None
    further_tokens: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)


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

    @by_argument(source="further", prefix="prefixes")
    def translate(
        self,
        lines: Sequence[str],
        further: Mapping[str, Sequence[str]] = {},
        *,
        heads: bool = False,
        prefixes: Sequence[str] | None = None,
    ) -> list[Output]:
        """Translates lines of text; a language model continues them.

        Args:
          lines: Source texts. A blank one has an output without text.
          further: The lines of each further source, of a model that reads several: `{"fr": lines}`
            is what `--source=fr=FILE` is on the command line.
          heads: Whether outputs have their `heads`, for which each is forced once more.
          prefixes: What the output of each line begins with, blank where it is free; words that the
            vocabulary lacks are unknown to the model, and written as they are here. It is what
            `--prefix=FILE` is on the command line.

        Returns:
          The best output of each line, in their order.

        Raises:
          UserError: If a line is too long or cannot be read, further sources or prefixes are not
            those that the model takes, a line for each of the first, or the heads are asked for of
            a model that attends to nothing.
        """
        found = self.translate_nbest(lines, 1, further, heads=heads, prefixes=prefixes)
        return [outputs[0] for outputs in found]

    @by_argument(source="further", prefix="prefixes")
    def translate_nbest(
        self,
        lines: Sequence[str],
        nbest: int,
        further: Mapping[str, Sequence[str]] = {},
        *,
        heads: bool = False,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Output]]:
        """N-best lists: the best outputs of each line, best first.

        Raises:
          UserError: As `translate`, and if the search does not keep as many.
        """
        python_arguments.check_texts({**further, "lines": lines, "prefixes": prefixes or []})
        python_arguments.check_count(nbest=nbest)
        if heads:
            self._check_attending()
        translations = self._translator(nbest).translate(lines, further, prefixes)
        by_output = self._forced(translations, lines, further) if heads else itertools.repeat(None)
        return [self._outputs(each, by_output) for each in translations]

    def _forced(
        self,
        translations: Sequence[Translation],
        lines: Sequence[str],
        further: Mapping[str, Sequence[str]],
    ) -> Iterator[AttentionMatrices]:
        """Forces all outputs again, and yields the attention of the layers and heads to each."""
        written = [
            (number, output)
            for number, each in enumerate(translations)
            for output in each.hypotheses
        ]
        if not written:
            return
        numbers, outputs = zip(*written, strict=True)
        sources = [lines[number] for number in numbers]
        others = {name: [texts[number] for number in numbers] for name, texts in further.items()}
        split = forced_outputs(self.trained, sources, outputs, others)
        yield from attention_matrices(self.trained, split)

    def _outputs(
        self, translation: Translation, by_output: Iterator[AttentionMatrices | None]
    ) -> list[Output]:
        run, source = self.trained, translation.source
        if not translation.hypotheses:
            return [Output(source, "", 0.0, 0.0, (), (), np.zeros((0, 0)))]
        vocabulary = getattr(run, f"{run.task.input_side}_vocabulary")
        read = tokens_in_text(vocabulary, translation.source_ids, source)
        if run.attends and not run.links_tokens:
            read = [f"{place}" for place in range(translation.hypotheses[0].weights.shape[1])]
        canvas = translation.canvas
        return [
            Output(
                source, self._writer(each, source), each.log_prob, each.score, read,
                each.vocabulary(run.target_vocabulary).tokens(each.tokens),
                np.asarray(each.weights), forced.heads if forced else {}, canvas,
                forced.further_tokens if forced else {},
            )
            for each, forced in zip(translation.hypotheses, by_output, strict=False)
        ]  # fmt: skip

    @by_argument()
    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        further: Mapping[str, Sequence[str]] = {},
    ) -> list[ScoredPair]:
        """Scoring: log-probabilities of given targets, in whole and by token.

        Args:
          sources: Source texts; a language model reads none of them.
          targets: The outputs to score, one for each source.
          further: Texts of each further source, as for `translate`.

        Raises:
          UserError: If their numbers differ, or one cannot be read.
        """
        python_arguments.check_texts({**further, "sources": sources, "targets": targets})
        return self._scorer(given_pairs(self.trained, sources, targets, further))

    @by_argument(**_OF_EVALUATION)
    def evaluate(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        further: Mapping[str, Sequence[str]] = {},
        *,
        name: str = "given",
        gold: str | pathlib.Path | Sequence[str | Iterable[Sequence[int]]] | None = None,
        gold_base: int = 0,
        gold_sources: str | pathlib.Path | Sequence[str] | None = None,
        gold_targets: str | pathlib.Path | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Evaluation on given texts: returns their metrics, and writes all files of a split.

        These are in `evaluations/NAME/` of the run directory; see `launch.evaluate`.

        Args:
          sources: Source texts; a language model reads none of them.
          targets: The reference of each.
          further: Texts of each further source, as for `translate`.
          name: What to call them.
          gold: Gold links, with which attention while the targets are written is compared: a file
            of them as `--alignment` takes it; or for each pair a line as of a file, such as
            `0-0 1?1`, or its sure links `(source word, target word)`.
          gold_base: The number of a sentence's first word in them, 0 or 1.
          gold_sources: The source words that they count, with spaces between them, if others than
            those of the sources: a file, or a text for each pair.
          gold_targets: The same for the targets.

        Raises:
          UserError: If their numbers differ, one cannot be read, another text of this name was
            evaluated before, or gold links do not fit the texts or the model.
        """
        python_arguments.check_texts({**further, "sources": sources, "targets": targets})
        check_further(self.trained, further)
        links = GoldFiles.given(gold, gold_base, gold_sources, gold_targets)
        texts = GivenTexts(name, sources, targets, further)
        request = EvaluationRequest(texts=texts, gold=links)
        data = request.data_of(self.trained)
        evaluate_as_asked(
            self.trained, data, request, lambda line: _note(in_arguments(line, _OF_EVALUATION))
        )
        run = placed(self.trained, [data.split(name)], name)
        return read_json(run.directory.results)[name]

    @by_argument()
    def attend(
        self, source: str, target: str, further: Mapping[str, str] = {}
    ) -> AttentionMatrices:
        """Forced decoding: the attention of every layer and head while a target is predicted.

        Args:
          source: The source text.
          target: The output to force.
          further: The text of each further source, by its name.

        Raises:
          UserError: If the model does not attend to its source, or a text cannot be read.
        """
        self._check_attending()
        [found] = attention_matrices(self.trained, self._pair(source, target, further))
        return found

    def _check_attending(self) -> None:
        if not self.trained.links_tokens:
            raise UserError(
                f"{self.directory}: expected a model that attends to tokens of its source, "
                "found none"
            )

    @by_argument()
    def attribute(
        self,
        source: str,
        target: str,
        method: str = "integrated_gradients",
        further: Mapping[str, str] = {},
    ) -> Attribution:
        """Attribution: how much each source token counts for each token of a given target.

        Args:
          source: The source text.
          target: The output to force.
          method: `input_gradient`, `integrated_gradients`, `occlusion` or `value_norms`: a file of
            `analysis/attributions`.
          further: The text of each further source, by its name.

        Raises:
          UserError: If the method is unknown, the model reads no text, or a text cannot be read.
        """
        pair = self._pair(source, target, further)
        check_methods("method", [method])
        check_attributable("attribute", self.trained, pair, [method])
        [found] = attribute(self.trained, pair, method)
        return found

    def _pair(self, source: str, target: str, further: Mapping[str, str]) -> Split:
        python_arguments.check_text(source=source, target=target, **further)
        others = {name: [text] for name, text in further.items()}
        return given_pairs(self.trained, [source], [target], others)

    @by_argument()
    def plot(self, *shown: Output | AttentionMatrices | Attribution, columns: int = 2) -> Figure:
        """Attention heat maps: source across, target down; a notebook shows the figure.

        Beside it stands the mean over heads of the attention to each further text, if it is there.
        Where the source is a picture, it is drawn as each word has seen it; where it is sound,
        attention is drawn under its spectrogram, with lines where words begin.

        Args:
          *shown: What `translate`, `attend` or `attribute` returned.
          columns: How many heat maps stand beside each other.

        Raises:
          UserError: If there is nothing to draw, or the model attends to nothing.
        """
        check_aligning(self.trained, "plot")
        python_arguments.check_shown(shown)
        drawn = [one for one in shown if len(one.tokens)]
        if not drawn:
            raise UserError("plot: expected outputs or attention, found none with any token")
        if self.trained.draws_on_canvas:
            return attended_canvases([self._attended(one) for one in drawn])
        return heat_map_grid([each for one in drawn for each in self._heat_maps(one)], columns)

    def _attended(self, one: Output) -> AttendedPicture:
        weights = self.trained.linking_weights(one.attention)
        starts = found_starts(self.trained, one.tokens, weights)
        return AttendedPicture(one.canvas, weights, one.tokens, one.source, starts)

    def _heat_maps(self, shown: Output | AttentionMatrices | Attribution) -> Iterator[HeatMap]:
        """Yields the map of the first source and, where it is known, of each further text."""
        if isinstance(shown, Attribution):
            weights = np.asarray(shown.weights, np.float64)
            yield HeatMap(weights, shown.source_tokens, shown.tokens, shown.method)
            return
        run, is_output = self.trained, isinstance(shown, Output)
        weights = run.linking_weights(shown.attention if is_output else shown.weights)
        title = shown.source if is_output else ""
        yield HeatMap(weights, shown.source_tokens, shown.tokens, title)
        for name, tokens in shown.further_tokens.items():
            heads = shown.heads.get(f"{CROSS_ATTENTION}/{name}")
            if heads is not None and name not in run.task.beside:
                yield HeatMap(run.linking_heads(heads).mean(0), tokens, shown.tokens, name)


@by_argument()
def load(
    *paths: str | pathlib.Path,
    search: Mapping[str, Any] | None = None,
    step: int | None = None,
    ensemble: str = "log_linear",
    direction: str = "forward",
) -> Run:
    """Loads a trained run with its best parameters, or several as an ensemble.

    Args:
      *paths: The run directory, or those of runs that predict together.
      search: Fields of the search in place of those of the (first) run's: `{"beam_size": 10}`.
      step: The checkpoint to take, instead of the best one or an average.
      ensemble: How several predict together: by the geometric mean of their
        probabilities, made to add up to one again (`log_linear`), or by the arithmetic (`mean`).
      direction: `reverse` asks a model of both directions from target to source.

    Raises:
      UserError: If one is not the directory of a trained run, a field does not fit, the runs do
        not fit each other, or one goes from source to target only.
    """
    python_arguments.check_paths(paths)
    for name, given, known in (
        ("ensemble", ensemble, COMBINATIONS),
        ("direction", direction, _DIRECTIONS),
    ):
        if given not in known:
            raise UserError(f"{name}: expected {' or '.join(known)}, found {quoted(given)}")
    keep_by_default(_note)
    if search is not None:
        directory = RunDirectory(paths[0])
        directory.require()
        search = {**directory.read_config()["search"], **search}
    runs = [load_run(path, search, step) for path in paths]
    note_unfinished(*runs)
    runs = [reverse_run(run) for run in runs] if direction == "reverse" else runs
    return Run(ensemble_of(runs, ensemble))


@by_argument()
def train(
    config: ConfigDict | Mapping[str, Any] | str | pathlib.Path, workdir: str | pathlib.Path
) -> Run:
    """Trains and evaluates, or goes on where the same call was cut off.

    Args:
      config: A config such as those of `configs/`, or a plain mapping of the same form; or the name
        or path of one with what may follow the colon, as `--config` takes it: `quickstart:smoke`.
      workdir: The run directory; made if there is none, continued if it holds this run.

    Returns:
      The trained run.

    Raises:
      UserError: If the config, the data or the directory is at fault.
      KeyboardInterrupt: After Ctrl-C, once the step is saved; after a second one at once.
      SystemExit: After SIGTERM, likewise.
    """
    keep_by_default(_note)
    if isinstance(config, str | pathlib.Path):
        config = load_config(str(config))
    known = RunDirectory(workdir).read_trained_config()
    experiment = from_config_dict(settled(config, _note, known=known))
    with quiet(logging.ERROR):  # a checkpoint without a metric is no cause to warn
        run_experiment(experiment, workdir, preemption=Interruption())
    return load(workdir)


def _note(line: str) -> None:
    print(line, file=sys.stderr)
