"""Evaluation as the command line requests it: with gold links, other runs, heads, an aligner."""

import dataclasses
from collections.abc import Callable, Sequence

from attention_jax.analysis.attributed_words import (
    AttributedWords,
    attribute_words,
    write_attributions,
)
from attention_jax.analysis.attribution import check_attributable, check_methods
from attention_jax.analysis.comparison import (
    compare_outputs,
    describe_comparison,
    format_comparison,
    other_search,
)
from attention_jax.analysis.evaluate import Evaluation, Outputs
from attention_jax.analysis.given_texts import GivenTexts
from attention_jax.analysis.gold_links import (
    GoldComparison,
    GoldFiles,
    compare_with_gold,
    format_alignment,
)
from attention_jax.analysis.heads import (
    HeadReport,
    analyse_heads,
    check_heads,
    read_heads,
    write_heads,
)
from attention_jax.analysis.other_runs import OtherRun, further_sources_of
from attention_jax.analysis.result_places import placed
from attention_jax.analysis.reverse import reverse_run, reverse_split_name, reverse_task
from attention_jax.data.examples import Split
from attention_jax.data.loading import TaskData
from attention_jax.errors import UserError
from attention_jax.runs.config import ExperimentConfig, from_config_dict, recorded_config
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.runs.named_files import Moved
from attention_jax.runs.results import format_results
from attention_jax.types import BidirectionalModel


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """The flags of an evaluation; fields have their flags' names.

    Attributes:
      split: Names of splits; None for those of the run's config.
      texts: What is evaluated in place of the run's own data, if given.
      gold: Files of gold links.
      alignment_threshold: If given, all links of at least this weight are scored too.
      alignment_shift: The step whose attention links a word, counted from the one that writes it:
        1, 0 or -1; None for the one at which the run learnt to align, usually 0.
      attribution: Attribution methods, which are compared with gold links beside attention.
      reverse: Directory of a run of the opposite direction, to symmetrise alignments with; a
        bidirectional run has its own.
      against: Directories of runs to compare outputs with, or `DIRECTORY@STEP`.
      dropped_words: Whether an aligner looks for source words that outputs leave out.
      heads: Whether every head is analysed, and shown in the viewer with its numbers.
    """

    split: Sequence[str] | None = None
    texts: GivenTexts | None = None
    gold: GoldFiles = GoldFiles()
    alignment_threshold: float | None = None
    alignment_shift: int | None = None
    attribution: Sequence[str] = ()
    reverse: str | None = None
    against: Sequence[str] = ()
    dropped_words: bool = False
    heads: bool = False

    def check(self, task: TaskData, default: Sequence[str]) -> list[Split]:
        """Checks the request against a task and returns the splits to evaluate.

        Args:
          task: The run's task.
          default: Names of the splits to use if the request names none.

        Raises:
          UserError: If a split is unknown, a flag needs another one beside it or is out of range,
            or the task has no dropped words.
        """
        if self.texts and self.split is not None:
            raise UserError("--split: expected none beside --source and --target, found one")
        default = list(task.splits) if self.texts else default
        names = self._splits(default, list(task.splits))
        self._check_flags()
        if self.dropped_words and not task.task.finds_dropped_words:
            label = task.task.label
            raise UserError(f"--dropped_words: expected translations, found a task of {label}")
        if self.dropped_words and "train" not in task.splits:
            found = ", ".join(task.splits)
            raise UserError(f"--dropped_words: expected the training text too, found {found} alone")
        return [task.split(name) for name in names]

    def check_before(self, config: ExperimentConfig) -> None:
        """Checks what can be checked of a run of this config before it is trained, gold links too.

        Raises:
          UserError: As `check`, if a method of attribution is unknown, or if gold links cannot be
            read or are of more than one split.
        """
        known = ("train", "validation", "test", *config.data.further_splits)
        names = self._splits(config.evaluation.splits, known)
        self._check_flags()
        check_methods("--attribution", self.attribution)
        self.gold.check_files(names)

    def _splits(self, default: Sequence[str], known: Sequence[str]) -> list[str]:
        """Returns the names of the splits to evaluate; UserError if one is unknown, or for none."""
        names = list(dict.fromkeys(default if self.split is None else self.split))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            found = repr(unknown[0]) if unknown else "none"
            raise UserError(f"--split: expected one of {', '.join(known)}, found {found}")
        return names

    def _check_flags(self) -> None:
        """Raises UserError if a flag needs another one beside it, or is out of range."""
        self.gold.check()
        for flag in ("reverse", "alignment_threshold", "alignment_shift", "attribution"):
            if getattr(self, flag) not in (None, (), []) and not self.gold.links:
                raise UserError(f"--{flag}: expected --alignment beside it, found none")
        if self.alignment_threshold is not None and not 0 <= self.alignment_threshold <= 1:
            raise UserError(
                f"--alignment_threshold: expected 0 to 1, found {self.alignment_threshold}"
            )

    def data_of(self, run: TrainedRun) -> TaskData:
        """Returns the data of a run on which it is evaluated."""
        if self.texts:
            return self.texts.read_by(run).data(run)
        wanted = run.config.evaluation.splits if self.split is None else self.split
        return task_of(run, [*wanted, *(["train"] if self.dropped_words else [])])

    def opposite_data_of(self, run: TrainedRun) -> TaskData:
        """Returns the data of a run of the opposite direction."""
        return self.texts.swapped().read_by(run).data(run) if self.texts else self.data_of(run)


def further_sources(against: Sequence[str], reverse: str | None) -> set[str]:
    """Returns the names of what other runs read beside their source, by the flags that name them.

    Raises:
      UserError: If one is not the directory of a run.
    """
    places = [("--against", place) for place in against]
    places += [("--reverse", reverse)] if reverse else []
    return {name for flag, place in places for name in further_sources_of(flag, place)}


FLAGS = tuple(
    field.name
    for field in dataclasses.fields(EvaluationRequest)
    if field.name not in ("gold", "texts")
)


def evaluate_as_asked(
    run: TrainedRun,
    task: TaskData,
    request: EvaluationRequest,
    note: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Evaluation: carries out a request for a run.

    The whole request is checked before anything is decoded or written.

    Args:
      run: The run.
      task: Its task.
      request: What to evaluate, and with what to compare it.
      note: Called at once with a line about what may be a mistake.

    Returns:
      Comparisons with gold links and with the other runs, then the results of the splits, as lines
      for the screen.

    Raises:
      UserError: If something requested does not fit the run.
    """
    splits = request.check(task, run.config.evaluation.splits)
    run = placed(run, splits, request.texts.name if request.texts else "")
    if run.task.continues:
        return _measured(run, task, splits, request)
    links = request.gold.read(splits, note)
    opponents = _opponents(run, splits, request)
    reverse = _reverse(run, task, request) if links else None
    if request.heads:
        check_heads(run, splits[0])
    gold = attributed = None
    if links:
        methods = list(dict.fromkeys(request.attribution))
        if methods:
            check_attributable("--attribution", run, splits[0], methods)
        gold = compare_with_gold(run, splits[0], links, reverse, request.alignment_shift)
        if methods:
            attributed = attribute_words(run, splits[0], gold, methods)
    evaluation, printed = Evaluation(run, task), []
    rivals = [Evaluation(opponent.run, opponent.task) for opponent in opponents]
    for split in splits:
        outputs = evaluation.decode(split.name)
        more = _against_gold(gold, attributed, request.alignment_threshold)
        labels = attributed.labels if attributed else {}
        printed += [format_alignment(split.name, more, labels)] if more else []
        if request.dropped_words:
            more |= _dropped_words(task, outputs)
        evaluation.write(outputs, more, {} if gold is None else gold.statistics())
        if attributed:
            write_attributions(run, split, attributed)
        # Without --heads the viewer still shows what an earlier evaluation has measured of them.
        heads = _heads(run, split, gold) if request.heads else read_heads(run, split)
        others = [rival.decode(split.name) for rival in rivals]
        if opponents:
            printed += _compare(run, opponents, outputs, others)
        if evaluation.is_shown:
            _view(run, outputs, gold, attributed, reverse, opponents, others, heads)
    names = [split.name for split in splits]
    return [*printed, format_results(run.directory, run.task.shown, names, run.task.table)]


def _measured(
    run: TrainedRun, task: TaskData, splits: Sequence[Split], request: EvaluationRequest
) -> list[str]:
    """Evaluates a language model by its perplexity: it has no outputs to compare or to draw."""
    for flag in ("against", "reverse", "dropped_words"):
        if getattr(request, flag):
            raise UserError(f"--{flag}: expected a model that reads a source, found none")
    if request.gold.links:
        raise UserError("--alignment: expected a model that reads a source, found none")
    # The config that training saved against the one that the command line may have changed.
    saved = run.directory.read_config()
    if saved is not None and run.config.search != from_config_dict(saved).search:
        raise UserError(
            "--search: expected no override for a model that reads no source, of which nothing is "
            "searched, found one"
        )
    if request.heads:
        check_heads(run, splits[0])
    evaluation = Evaluation(run, task)
    for split in splits:
        evaluation.measure(split.name)
        if request.heads:
            _heads(run, split)
    return [format_results(run.directory, run.task.shown, [split.name for split in splits])]


def _opponents(
    run: TrainedRun, splits: Sequence[Split], request: EvaluationRequest
) -> list[OtherRun]:
    """Loads the runs to compare with, of which all need to have the same splits."""
    opponents = [
        OtherRun.load("--against", place, _moved(run), request.data_of)
        for place in request.against
    ]
    for split in splits:
        for opponent in opponents:
            opponent.same_split(split)
    return opponents


def _dropped_words(task: TaskData, outputs: Outputs) -> dict[str, float]:
    """Scores what outputs, and references, leave out of their sources."""
    # Imported where it is used: aligners are seldom needed.
    from attention_jax.analysis.dropped_words import dropped_word_scores

    split = outputs.split
    compared = {"dropped_words": outputs.texts, "reference_dropped_words": split.targets}
    return dropped_word_scores(task.split("train"), split.sources, compared)


def _reverse(run: TrainedRun, task: TaskData, request: EvaluationRequest) -> OtherRun | None:
    """Returns the run of the opposite direction: the one requested, or half of a bidirectional."""
    if request.reverse:
        load = OtherRun.load
        return load("--reverse", request.reverse, _moved(run), request.opposite_data_of)
    if not isinstance(run.model, BidirectionalModel):
        return None
    opposite = reverse_task(task)
    # Filed under the forward names, by which `OtherRun.opposite_split` looks for them.
    splits = {name: opposite.split(reverse_split_name(name)) for name in task.splits}
    opposite = dataclasses.replace(opposite, splits=splits)
    return OtherRun("--reverse", str(run.directory.path), reverse_run(run), opposite)


def _moved(run: TrainedRun) -> Moved:
    """Returns the data files that overrides moved away from where the saved config has them."""
    return Moved.between(recorded_config(run.directory), run.config)


def _against_gold(
    gold: GoldComparison | None, attributed: AttributedWords | None, threshold: float | None
) -> dict[str, float]:
    """Returns the scores of attention and of attributions; nothing without gold links."""
    scores = {} if gold is None else gold.scores(threshold)
    return scores | (attributed.scores(threshold) if attributed else {})


def _compare(
    run: TrainedRun,
    opponents: Sequence[OtherRun],
    outputs: Outputs,
    others: Sequence[Outputs],
) -> list[str]:
    """Tests a run's outputs against those of each opponent; writes the results, returns lines."""
    split, lines, found = outputs.split, [], []
    for opponent, its in zip(opponents, others, strict=True):
        metrics = compare_outputs(run, split, outputs.texts, its.texts)
        found.append(describe_comparison(run, opponent.run, split, metrics))
        lines.append(format_comparison(opponent.place, split.name, metrics))
        lines += other_search(run, opponent.run)
    run.directory.write_comparisons(split.name, found)
    return lines


def _heads(run: TrainedRun, split: Split, gold: GoldComparison | None = None) -> list[HeadReport]:
    """Analyses the heads of a run, and writes their table and the viewers of self-attention."""
    # Imported here because Matplotlib takes a second, for which no error should wait.
    from attention_jax.analysis.self_attention_views import write_self_attention_viewers

    heads = analyse_heads(run, split, gold)
    write_heads(run, split, heads)
    write_self_attention_viewers(run.directory.path.name, run, split, heads)
    return heads


def _view(
    run: TrainedRun,
    outputs: Outputs,
    gold: GoldComparison | None,
    attributed: AttributedWords | None,
    reverse: OtherRun | None,
    opponents: Sequence[OtherRun],
    others: Sequence[Outputs],
    heads: Sequence[HeadReport],
) -> None:
    """Writes the attention viewer of the run beside its opponents."""
    # Imported here because Matplotlib takes a second, for which no error should wait.
    from attention_jax.analysis.viewing import DecodedRun, distinct_names, write_run_viewer

    runs = [run, *(opponent.run for opponent in opponents)]
    # The opposite run comes last, and takes part only in finding names that differ.
    names = distinct_names(*runs, *([] if reverse is None else [reverse.run]))
    decoded = [
        DecodedRun(name, its_run, its.split, its.found, its.readable)
        for name, its_run, its in zip(names[: len(runs)], runs, [outputs, *others], strict=True)
    ]
    write_run_viewer(
        decoded[0],
        gold=gold,
        attributed=attributed,
        reverse_name="" if reverse is None else names[-1],
        against=decoded[1:],
        heads=heads,
    )
