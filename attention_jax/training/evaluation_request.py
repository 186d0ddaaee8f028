"""An evaluation with all that the command line may ask for: gold links, other runs, an aligner."""

import dataclasses
from collections.abc import Sequence

from attention_jax.data.tasks import TRANSLATION, Split, Task
from attention_jax.errors import UserError
from attention_jax.training.comparison import (
    compare_outputs,
    describe_comparison,
    format_comparison,
)
from attention_jax.training.evaluate import Evaluation, Outputs
from attention_jax.training.gold_links import GoldComparison, GoldFiles, compare_with_gold
from attention_jax.training.other_runs import OtherRun
from attention_jax.training.trained import TrainedRun


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """What is asked for; fields are named as their flags.

    Attributes:
      split: Names of splits; None for those of the run's config.
      gold: Files of gold links.
      alignment_threshold: Links from forced attention of at least this weight are scored too.
      reverse: Directory of a run of the opposite direction, to join alignments with.
      against: Directory of a run to compare outputs with.
      dropped_words: Whether an aligner looks for words that were left out.
    """

    split: Sequence[str] | None = None
    gold: GoldFiles = GoldFiles()
    alignment_threshold: float | None = None
    reverse: str | None = None
    against: str | None = None
    dropped_words: bool = False

    def check(self, task: Task, default: Sequence[str]) -> list[Split]:
        """Returns the splits, once the request is known to be possible.

        Args:
          task: The run's task.
          default: Names of splits where none are asked for.

        Raises:
          UserError: If it is not.
        """
        names = list(dict.fromkeys(default if self.split is None else self.split))
        unknown = [name for name in names if name not in task.splits]
        if unknown or not names:
            found = repr(unknown[0]) if unknown else "none"
            raise UserError(f"--split: expected one of {', '.join(task.splits)}, found {found}")
        for flag in ("reverse", "alignment_threshold"):
            if getattr(self, flag) is not None and not self.gold.links:
                raise UserError(f"--{flag}: expected --alignment beside it, found none")
        if self.dropped_words and task.kind != TRANSLATION:
            raise UserError(f"--dropped_words: expected translations, found a task of {task.kind}")
        return [task.split(name) for name in names]


def evaluate_as_asked(run: TrainedRun, task: Task, request: EvaluationRequest) -> list[str]:
    """Evaluates a run; everything that can be refused is refused before anything is written.

    Args:
      run: The run.
      task: Its task.
      request: What is asked for.

    Returns:
      Comparisons with the other run, as lines for the screen.

    Raises:
      UserError: If something that is asked for does not fit the run.
    """
    splits = request.check(task, run.config.evaluation.splits)
    links = request.gold.read(splits)
    against = OtherRun.load("--against", request.against) if request.against else None
    for split in splits if against else ():
        against.same_split(split)
    reverse = OtherRun.load("--reverse", request.reverse) if request.reverse else None
    gold = compare_with_gold(run, splits[0], links, reverse) if links else None
    evaluation, printed = Evaluation(run, task), []
    opponent = Evaluation(against.run, against.task) if against else None
    for split in splits:
        outputs = evaluation.decode(split.name)
        more = {} if gold is None else gold.scores(request.alignment_threshold)
        if request.dropped_words:
            from attention_jax.training.dropped_words import dropped_word_scores

            more |= dropped_word_scores(task.split("train"), split, outputs.texts)
        evaluation.write(outputs, more)
        others = opponent.decode(split.name) if opponent else None
        if others is not None:
            printed.append(_compare(run, against, task.kind, outputs, others))
        if evaluation.is_aligning:
            _view(run, outputs, gold, reverse, against, others)
    return printed


def _compare(
    run: TrainedRun, against: OtherRun, kind: str, outputs: Outputs, others: Outputs
) -> str:
    split = outputs.split
    metrics = compare_outputs(kind, split, outputs.texts, others.texts)
    run.directory.write_comparison(
        split.name, describe_comparison(run, against.run, split, metrics)
    )
    return format_comparison(str(against.run.directory.path), split.name, metrics)


def _view(
    run: TrainedRun,
    outputs: Outputs,
    gold: GoldComparison | None,
    reverse: OtherRun | None,
    against: OtherRun | None,
    others: Outputs | None,
) -> None:
    # Matplotlib takes a second to import, which no mistake should wait for.
    from attention_jax.training.viewing import DecodedRun, distinct_names, write_run_viewer

    present = {"reverse": reverse, "against": against}
    runs = {"": run, **{key: each.run for key, each in present.items() if each is not None}}
    names = dict(zip(runs, distinct_names(*runs.values()), strict=True))
    opponent = None
    if against is not None and others is not None:
        opponent = DecodedRun(
            names["against"], against.run, others.split, others.found, others.texts
        )
    write_run_viewer(
        DecodedRun(names[""], run, outputs.split, outputs.found, outputs.texts),
        gold=gold,
        reverse_name=names.get("reverse", ""),
        against=opponent,
    )
