"""Places of results: a folder for each search and each text, so that none replaces another.

What the config says is in the run directory itself; anything else in `evaluations/NAME/`, where
NAME has the text's name and the fields of the search that differ: `newstest,beam_size=10`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from attention_jax.configuration import plain
from attention_jax.data.examples import Split
from attention_jax.errors import UserError
from attention_jax.runs.config import recorded_config
from attention_jax.runs.length_limits import recorded_limits, with_limits
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.named_files import located
from attention_jax.runs.run_inputs import TEXTS, recorded_inputs


def placed(run: TrainedRun, splits: Sequence[Split], text: str = "") -> TrainedRun:
    """Returns the run, with the place for results of its search and of its data.

    Args:
      run: The run, searched in any way.
      splits: What is evaluated.
      text: Name of the text, if it is none of the run's own data.

    Raises:
      UserError: If another text of the same name has its results there.
    """
    name = ",".join(filter(None, [text or _other_text(run, splits), *_differences(run)]))
    if not name:
        return run
    directory = run.directory.evaluation(name)
    for split in splits:
        known = directory.recorded_evaluation(split.name).get("text", split.fingerprint)
        if known != split.fingerprint:
            raise UserError(
                f"--name: expected another than {split.name!r}, for {directory.outputs} holds "
                "results of another text"
            )
    return dataclasses.replace(run, directory=directory)


def _differences(run: TrainedRun) -> list[str]:
    """Lists fields of the search that differ from those of the run's config."""
    config = located(recorded_config(run.directory), run.directory)
    saved = plain(with_limits(config.search, recorded_limits(run.directory)))
    now: dict[str, Any] = plain(run.config.search)
    return [f"{name}={now[name]}" for name in now if now[name] != saved[name]]


def _other_text(run: TrainedRun, splits: Sequence[Split]) -> str:
    """Names a text that has taken the place of a split of the run's config."""
    known = recorded_inputs(run.directory)[TEXTS]
    known = known if isinstance(known, dict) else {}
    changed = [
        f"{split.name}_{split.fingerprint[:8]}"
        for split in splits
        if known.get(split.name, split.fingerprint) != split.fingerprint
    ]
    return ",".join(changed)
