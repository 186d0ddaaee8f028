"""Other runs beside the one that is evaluated: opponents, or one of the opposite direction."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence

from attention_jax.data.examples import Split
from attention_jax.data.loading import TaskData
from attention_jax.errors import UserError
from attention_jax.layers.source import MAIN
from attention_jax.runs.config import recorded_config
from attention_jax.runs.load import TrainedRun, load_run, note_unfinished, task_of
from attention_jax.runs.named_files import Moved
from attention_jax.runs.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class OtherRun:
    """Another run and its data, which are only read.

    Attributes:
      flag: The command line's flag for it, with which messages begin.
      place: The flag's value.
      run: The run.
      task: The data of its task.
    """

    flag: str
    place: str
    run: TrainedRun
    task: TaskData

    @classmethod
    def load(
        cls,
        flag: str,
        place: str,
        moved: Moved = Moved(),
        data_of: Callable[[TrainedRun], TaskData] = task_of,
    ) -> "OtherRun":
        """Loads a run from `DIRECTORY`, or one of its checkpoints from `DIRECTORY@STEP`.

        Args:
          flag: The command line's flag for the run.
          place: The directory, or the directory and the step.
          moved: Data files that have moved since the first run; they may have for this one too.
          data_of: Function that returns a run's data, by default those that it was trained on.

        Raises:
          UserError: As `load_run` and `task_of`, with the flag's name before it; or if the model
            reads no source.
        """
        try:
            path, step = _divided(place)
            run = load_run(path, step=step, moved=moved)
            if step is None:
                note_unfinished(run)
            if run.task.continues:
                raise UserError(f"{place}: expected a model that reads a source, found none")
            return cls(flag, place, run, data_of(run))
        except UserError as error:
            raise UserError(f"{flag}: {error}") from None

    def same_split(self, split: Split) -> Split:
        """Returns this run's split of the same name.

        Raises:
          UserError: If its sources, upper and lower case ignored, or references differ from those
            of `split`.
        """
        other = self.task.split(split.name)
        # One of the runs may lowercase its sources; references have to be the same to the letter.
        self._check("sources", split.name, _lower(split.sources), _lower(other.sources))
        self._check("references", split.name, split.references, other.references)
        return other

    def opposite_split(self, split: Split) -> Split:
        """Returns this run's split of the same name, whose sources are the targets of `split`.

        Raises:
          UserError: If the sides do not correspond, upper and lower case ignored.
        """
        other = self.task.split(split.name)
        if _lower(other.sources) == _lower(split.sources):
            raise UserError(
                f"{self.flag}: expected a run of the opposite direction, found one of the same"
            )
        # Case is ignored because one of the runs may lowercase its data.
        sides = ((split.targets, other.sources), (split.sources, other.targets))
        for name, (expected, found) in zip(("sources", "targets"), sides, strict=True):
            self._check(name, split.name, _lower(expected), _lower(found))
        return other

    def _check(self, what: str, split: str, expected: Sequence, found: Sequence) -> None:
        """Raises `UserError` at the first difference."""
        if len(expected) != len(found):
            raise UserError(
                f"{self.flag}: expected {len(expected)} {what} in {split}, found {len(found)} in "
                f"{self.run.directory.path}"
            )
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            if one != other:
                raise UserError(
                    f"{self.flag}: expected the {what} {_brief(one)} in pair {number} of {split}, "
                    f"found {_brief(other)} in {self.run.directory.path}"
                )


def further_sources_of(flag: str, place: str) -> tuple[str, ...]:
    """Returns the names of what the run of a place reads beside its source, by its config alone.

    Raises:
      UserError: If it is not the directory of a run, with the flag's name before it.
    """
    try:
        directory = RunDirectory(_divided(place)[0])
        directory.require()
        config = recorded_config(directory)
    except UserError as error:
        raise UserError(f"{flag}: {error}") from None
    return tuple(name for name in getattr(config.model, "sources", ()) if name != MAIN)


def _divided(place: str) -> tuple[str, int | None]:
    """Divides `DIRECTORY@STEP`; a directory's own name may end so, and then no step is meant."""
    path, _, step = place.rpartition("@")
    is_step = bool(path) and step.isdecimal() and not os.path.isdir(place)
    return (path, int(step)) if is_step else (place, None)


def _lower(texts: Iterable[str]) -> list[str]:
    return [text.lower() for text in texts]


def _brief(texts: str | Sequence[str]) -> str:
    text = texts if isinstance(texts, str) else " | ".join(texts)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
