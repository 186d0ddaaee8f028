"""Run directory: the same files everywhere, so that every tool can read any run.

`config.json` the resolved config; `run.json` how it was made; `metrics.jsonl` one object a line;
`results.json` {split: {metric: number}}; `predictions.SPLIT.txt` one output a line, and
`predictions.SPLIT.tsv` with the columns source, output and (first) reference;
`resamples.SPLIT.npz`, scores of bootstrap resamples; `alignments.SPLIT.txt` in Pharaoh format;
`links.train.txt` likewise, the word alignments that supervise attention, if any;
`viewer.SPLIT.html`, attention to look at; `documents.SPLIT.html`, documents coloured by it;
`comparison.SPLIT.json`, differences from another run; `checkpoints/`, `vocab/`, `plots/`;
`weights.safetensors`, the parameters of a pruned run; `texts/`, the user's own text that was held
out of training; `logs/`, the output of processes that others have started; and, where asked for,
`profile/`. What another search or text gives is in a folder of `evaluations/`, with files of the
same names.
"""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attention_jax import json_files
from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.files import cut_name, is_temporary, remove_abandoned, replacing
from attention_jax.json_files import Maybe
from attention_jax.locks import locked
from attention_jax.paths import expanded
from attention_jax.runs.files import write_json, write_text

_LOCK, _UPDATE_LOCK = ".lock", ".update.lock"
_EVALUATIONS, _RECORD = "evaluations", "evaluation.json"
_LONGEST_NAME = 100
# Another process may remove the directory that we are about to lock, if it ends with a mistake.
_ATTEMPTS = 100
# Shapes of the parts of JSON files that programs read again; the rest is for people.
_SHAPES = {
    "config.json": {},
    "run.json": {
        "started": Maybe([str]),
        "finished": Maybe((str, None)),
        "texts": Maybe({str: str}),
        "hashes": Maybe({str: str}),
        "files": Maybe({str: {"path": str, "sha256": str}}),
        "writers": Maybe({str: (str, None)}),
        "evaluations": Maybe({str: {}}),
    },
    "results.json": {str: {str: (float, None)}},
    _RECORD: {str: {}},
}


class RunDirectory:
    """The paths of a run's files, and atomic writes of the small ones."""

    def __init__(self, path: str | pathlib.Path, *, writes: bool = True, evaluated: str = ""):
        """Names the directory; nothing is touched.

        Args:
          path: The directory.
          writes: Whether this process writes; of several processes, only the first does.
          evaluated: Name of the folder of `evaluations/` that outputs and results are in, the
            directory itself if empty.
        """
        self.writes = writes
        self.path = expanded(path).absolute()
        self.evaluated = evaluated
        folder = self.path / _EVALUATIONS / as_file_name(evaluated)
        self.outputs = folder if evaluated else self.path
        self.config = self.path / "config.json"
        self.run = self.path / "run.json"
        self.metrics = self.path / "metrics.jsonl"
        self.results = self.outputs / "results.json"
        self.checkpoints = self.path / "checkpoints"
        self.weights = self.path / "weights.safetensors"
        self.vocabularies = self.path / "vocab"
        self.texts = self.path / "texts"
        self.links = self.path / "links.train.txt"
        self.plots = self.outputs / "plots"
        self.logs = self.path / "logs"
        self.profile = self.path / "profile"

    def predictions(self, split: str) -> pathlib.Path:
        """Returns the path of the best outputs for a split, one a line."""
        return self.outputs / f"predictions.{split}.txt"

    def prediction_table(self, split: str) -> pathlib.Path:
        """Returns the path of the table of a split's sources, outputs and references."""
        return self.outputs / f"predictions.{split}.tsv"

    def resamples(self, split: str) -> pathlib.Path:
        """Returns the path of the scores of bootstrap resamples of a split."""
        return self.outputs / f"resamples.{split}.npz"

    def alignments(self, split: str) -> pathlib.Path:
        """Returns the path of the alignments of a split's outputs, in Pharaoh format."""
        return self.outputs / f"alignments.{split}.txt"

    def viewer(self, split: str, side: str = "") -> pathlib.Path:
        """Returns the path of the page of cross-attention, or of one side's self-attention."""
        return self.outputs / ".".join(["viewer", split, *filter(None, [side]), "html"])

    def page(self, split: str) -> pathlib.Path:
        """Returns the path of the page of a split's documents, coloured by weights."""
        return self.outputs / f"documents.{split}.html"

    def pages(self, split: str) -> tuple[pathlib.Path, ...]:
        """Returns the paths of the pages of a split that are made to be looked at first."""
        return self.page(split), self.viewer(split)

    def heads(self, split: str) -> pathlib.Path:
        """Returns the path of the table of measurements of every attention head."""
        return self.outputs / f"heads.{split}.tsv"

    def attributions(self, split: str) -> pathlib.Path:
        """Returns the path of the attributions of a split's references, as NumPy arrays."""
        return self.outputs / f"attributions.{split}.npz"

    def comparison(self, split: str) -> pathlib.Path:
        """Returns the path of the comparison of a split's outputs with those of another run."""
        return self.outputs / f"comparison.{split}.json"

    def evaluation(self, name: str) -> "RunDirectory":
        """Returns the same run with outputs and results in a folder of `evaluations/`.

        Args:
          name: What was evaluated, in words; added to what this directory is of already.
        """
        name = ",".join(filter(None, [self.evaluated, name]))
        return RunDirectory(self.path, writes=self.writes, evaluated=name)

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Makes the directory if needed, and locks it against other trainings for the block.

        If the block begins a new run, and a user's mistake ends it before training, the directory
        is removed again.

        Raises:
          RunDirectoryError: If it cannot be written, holds something else, or is in use.
        """
        if not self.writes:
            yield
            return
        with self._locked():
            # Asked under the lock: before it, another process might just have been making the run.
            is_new = not self.config.exists()
            # Left by a process that was killed while it wrote; nobody else writes here now.
            for folder in (self.path, self.plots):
                remove_abandoned(folder)
            try:
                yield
            except UserError:
                if is_new and not self.is_trained:
                    self._remove()
                raise

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Makes the directory and takes its lock, trying again if others remove it meanwhile."""
        with contextlib.ExitStack() as lock:
            for attempt in range(_ATTEMPTS):
                # One look: between two, another claim may remove what is a directory.
                if self.path.is_file():
                    raise RunDirectoryError(f"{self.path}: expected a directory, found a file")
                try:
                    self.path.mkdir(parents=True, exist_ok=True)
                    self._refuse_foreign()
                    # Without waiting: a second training in one directory is a mistake, not a turn
                    # to be taken.
                    lock.enter_context(locked(self.path / _LOCK, wait=False))
                    break
                except BlockingIOError:
                    raise RunDirectoryError(
                        f"{self.path}: another process is training here"
                    ) from None
                except OSError as error:
                    # Removed between mkdir and lock, or being removed while mkdir tries.
                    is_removed = isinstance(error, FileNotFoundError | FileExistsError)
                    if not is_removed or attempt == _ATTEMPTS - 1:
                        raise _unwritable(self.path, error) from None
            yield

    def _refuse_foreign(self) -> None:
        """Refuses a directory that holds other files but no run (RunDirectoryError)."""
        foreign = sorted(self._names())
        # Looked at again, for another process may have begun a run since.
        if foreign and self.config.name not in foreign and not self.config.exists():
            raise RunDirectoryError(
                f"{self.path}: expected a new directory or a run, found one with "
                f"{foreign[0]!r} and no config.json"
            )

    def require(self) -> None:
        """Raises RunDirectoryError if this is not the directory of a run."""
        if not os.path.isdir(self.path):
            raise RunDirectoryError(f"{self.path}: expected the directory of a run, found none")
        if not os.path.exists(self.config):
            raise RunDirectoryError(f"{self.path}: not the directory of a run, no config.json")

    @property
    def is_trained(self) -> bool:
        """Whether a training got as far as a line of metrics or a checkpoint."""
        is_measured = self.metrics.exists() and self.metrics.stat().st_size > 0
        return is_measured or (self.checkpoints.is_dir() and any(self.checkpoints.iterdir()))

    @property
    def is_pruned(self) -> bool:
        """Whether the run has kept its parameters alone; see `pruning`."""
        return self.weights.exists()

    def forget(self) -> None:
        """Removes what is left of a training that never began, for example for want of a file."""
        if self.writes:
            for folder in (self.vocabularies, self.texts):
                shutil.rmtree(folder, ignore_errors=True)
            self.links.unlink(missing_ok=True)
            self.run.unlink(missing_ok=True)
            self.metrics.unlink(missing_ok=True)

    def _remove(self) -> None:
        """Removes a run that never began, and its directory unless something else is in it.

        If other files are there, `config.json` stays and marks the directory as a run's, in which
        the next training may begin.
        """
        self.forget()
        if self._names() == [self.config.name]:
            # The lock last, so that nobody takes the half-removed directory meanwhile.
            for path in (self.config, self.path / _UPDATE_LOCK, self.path / _LOCK):
                path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def read_config(self) -> dict[str, Any] | None:
        """Returns the content of `config.json`, or None if there is none yet."""
        return read_json(self.config)

    def read_trained_config(self) -> dict[str, Any] | None:
        """Returns the content of `config.json` of a run that was trained; None before that."""
        return self.read_config() if self.is_trained else None

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Writes `config.json`."""
        self._write(self.config, config)

    def add_to_run(self, **facts: Any) -> None:
        """Adds facts to `run.json`, replacing older ones of the same name."""
        self._update(self.run, lambda known: {**known, **facts})

    def add_to_group(self, group: str, **facts: Any) -> None:
        """Adds facts to one of the groups of `run.json`, such as `evaluations`."""
        self._update(self.run, lambda known: {**known, group: {**known.get(group, {}), **facts}})

    def record_evaluation(self, split: str, how: Mapping[str, Any]) -> None:
        """Records how the outputs and results of a split were made, replacing an older record."""
        if self.outputs == self.path:
            self.add_to_group(_EVALUATIONS, **{split: how})
        else:
            self._update(self.outputs / _RECORD, lambda known: {**known, split: how})

    def recorded_evaluation(self, split: str) -> Mapping[str, Any]:
        """Returns what `record_evaluation` wrote for a split; nothing if it was not evaluated."""
        if self.outputs == self.path:
            return (read_json(self.run) or {}).get(_EVALUATIONS, {}).get(split, {})
        return (read_json(self.outputs / _RECORD) or {}).get(split, {})

    def add_results(self, split: str, metrics: Mapping[str, Any]) -> None:
        """Puts the metrics of a split into `results.json`, replacing its older ones.

        If these are of another `step`, files that not every evaluation writes are removed, since
        they would describe the old parameters.
        """

        def update(known: Mapping[str, Any]) -> dict[str, Any]:
            if known.get(split, {}).get("step") != metrics.get("step"):
                for path in self._seldom_written(split):
                    with writing(path):
                        path.unlink(missing_ok=True)
            return {**known, split: dict(metrics)}

        self._update(self.results, update)

    def write_lines(self, path: pathlib.Path, lines: Iterable[str]) -> None:
        """Writes lines of text to one of the run's files."""
        if self.writes:
            with writing(path):
                write_text(path, "".join(f"{line}\n" for line in lines))

    def write_table(self, path: pathlib.Path, rows: Iterable[Iterable[str]]) -> None:
        """Writes rows as tab-separated values; tabs within a cell become spaces."""
        self.write_lines(path, ("\t".join(" ".join(c.split("\t")) for c in row) for row in rows))

    def write_comparisons(self, split: str, comparisons: Sequence[Mapping[str, Any]]) -> None:
        """Writes `comparison.SPLIT.json`, a list with an object for each other run."""
        self._write(self.comparison(split), comparisons)

    @contextlib.contextmanager
    def plot(self, name: str) -> Iterator[pathlib.Path]:
        """Yields a temporary path to draw to; the finished plot is then moved to `plots/`."""
        with writing(self.plots / name), replacing(self.plots / name) as path:
            yield path

    def _seldom_written(self, split: str) -> list[pathlib.Path]:
        pages = [self.viewer(split, side) for side in ("encoder", "decoder")]
        # Of further sources; a split's name is never a pattern, see `GivenTexts`.
        pages += self.outputs.glob(self.viewer(split, "encoder_*").name)
        plot = self.plots / f"heads.{split}.png"
        tables = [self.comparison(split), self.heads(split), self.attributions(split)]
        return [*tables, plot, *pages]

    def _write(self, path: pathlib.Path, value: Any) -> None:
        if self.writes:
            with writing(path):
                write_json(path, value)

    def _update(
        self, path: pathlib.Path, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> None:
        """Changes a JSON file under a lock, so that no other process's change is lost."""
        if not self.writes:
            return
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.path / _UPDATE_LOCK, remove=True):
                write_json(path, change(read_json(path) or {}))

    def _names(self) -> list[str]:
        # Files that a launcher or another process makes before there is a run.
        own = (_LOCK, _UPDATE_LOCK, self.logs.name)
        return [n for n in os.listdir(self.path) if n not in own and not is_temporary(n)]


def read_json(path: pathlib.Path, shape: json_files.Shape | None = None) -> Any:
    """Reads a JSON file and checks its shape; None if there is no such file.

    Args:
      path: The file.
      shape: The expected shape; by default that of the run's file of this name.

    Raises:
      RunDirectoryError: If the file cannot be read, is not JSON, or holds something else.
    """
    shape = _SHAPES.get(path.name, object) if shape is None else shape
    try:
        return json_files.read_json(path, shape, RunDirectoryError)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
    """Turns an OSError in the block, which writes a file of the run, into `RunDirectoryError`."""
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from None


def as_file_name(name: str) -> str:
    """Returns a name without what file systems do not like, told from others by a hash then."""
    allowed = re.sub(r"[^\w=,.+-]", "_", name)
    kept = cut_name(allowed, _LONGEST_NAME)
    if kept == name and name.strip("."):
        return name
    return f"{kept}_{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _unwritable(path: pathlib.Path, error: OSError) -> RunDirectoryError:
    return RunDirectoryError(f"{path} cannot be written: {error.strerror or error}")
