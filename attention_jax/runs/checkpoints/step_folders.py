"""The folders of checkpoints: one for each step, and what their names and marker files say.

A folder is of a completed step once the storage library's marker of a commit is in it; before, its
saving is under way or was interrupted. One of ours marks an interim step. A damaged step loses its
plain number, so that neither the library nor we take it for a checkpoint.
"""

import contextlib
import dataclasses
import pathlib
import shutil

from attention_jax.errors import CheckpointError
from attention_jax.runs.checkpoints import manifest

COMMITTED = "commit_success.txt"
ITEMS = ("state", "data", "config", "host")
_INTERIM = "interim.txt"
_BESIDE = "beside those that count\n"
_TIMES = "_CHECKPOINT_METADATA"  # changed once more while a step is committed; never read
_ASIDE = ".damaged"


@dataclasses.dataclass(frozen=True)
class StepFolders:
    """The steps of one run as folders of a directory, which need not be there yet."""

    directory: pathlib.Path

    def path(self, step: int, *names: str) -> pathlib.Path:
        """Returns where a step is, or a file of it."""
        return self.directory.joinpath(str(step), *names)

    def all(self) -> list[int]:
        """Returns the steps that have a folder, oldest first."""
        if not self.directory.is_dir():
            return []
        names = [path.name for path in self.directory.iterdir() if path.is_dir()]
        return sorted(int(name) for name in names if name.isdigit())

    def completed(self) -> list[int]:
        """Returns the steps whose saving was completed, damaged or not, oldest first."""
        return [step for step in self.all() if self.path(step, COMMITTED).exists()]

    def unfinished(self) -> list[int]:
        """Returns the steps whose saving is under way or was interrupted, oldest first."""
        # Listed first: a step that is committed in the meantime is not taken for an unfinished one.
        steps = self.all()
        completed = self.completed()
        return [step for step in steps if step not in completed]

    def interim(self) -> set[int]:
        """Returns the completed steps that only an interruption asked for."""
        return {step for step in self.completed() if self.path(step, _INTERIM).exists()}

    def damaged(self) -> list[str]:
        """Returns the names of the folders that were set aside, sorted."""
        return sorted(path.name for path in self.directory.glob(f"*{_ASIDE}"))

    def make_interim(self, step: int) -> None:
        """Marks a completed step as an interim one."""
        self.path(step, _INTERIM).write_text(_BESIDE)
        manifest.add_to_manifest(self.path(step), _INTERIM)

    def seal(self, step: int, is_interim: bool) -> None:
        """Adds the manifest to a step whose files are written, just before it is committed."""
        if is_interim:
            self.path(step, _INTERIM).write_text(_BESIDE)
        manifest.write_manifest(self.path(step), except_for=(_TIMES,))

    def damage(self, step: int) -> str | None:
        """Compares a step's files with its manifest; returns the first difference, or None.

        Raises:
          CheckpointError: If this is no checkpoint of ours.
        """
        try:
            return manifest.find_damage(self.path(step))
        except FileNotFoundError:
            missing = [name for name in ITEMS if not self.path(step, name).is_dir()]
            if missing:
                raise CheckpointError(
                    f"{self.path(step)} is not a checkpoint of this program: "
                    f"it has no {missing[0]!r}"
                ) from None
            return f"{manifest.NAME} is missing"

    def set_aside(self, step: int) -> None:
        """Renames a damaged step: it can be examined, and the step be saved again."""
        aside = self.directory / f"{step}{_ASIDE}"
        with contextlib.suppress(OSError):  # in a directory we may only read
            shutil.rmtree(aside, ignore_errors=True)
            self.path(step).rename(aside)
