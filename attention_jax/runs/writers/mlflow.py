"""MLflow; server and experiment are chosen by its own `MLFLOW_*` variables.

Without `MLFLOW_TRACKING_URI` everything is in `mlflow.db` of the run's directory, to be looked at
with `mlflow ui --backend-store-uri=sqlite:///RUN/mlflow.db`. A training that is continued continues
the same run.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attention_jax.paths import plainly_named
from attention_jax.runs.writers import FAILED, FINISHED, INTERRUPTED, Opening

PACKAGE = "mlflow"
_EXPERIMENT = "attention_jax"
_STATUS = {FINISHED: "FINISHED", INTERRUPTED: "KILLED", FAILED: "FAILED"}
_MOST_AT_ONCE = 100  # parameters that a server takes in one request
_LONGEST_VALUE = 500


def open_writer(opening: Opening) -> "MLflow":
    """Starts a run of MLflow, or continues that of `opening.run_id`."""
    return MLflow(opening)


class MLflow:
    """Writes to a run of MLflow.

    Attributes:
      run_id: The run's id there.
      place: The server or the database.
    """

    def __init__(self, opening: Opening):
        from mlflow.tracking import MlflowClient

        address = os.environ.get("MLFLOW_TRACKING_URI")
        self.place = address or f"sqlite:///{opening.directory / 'mlflow.db'}"
        self._plain_name = contextlib.ExitStack()
        if not address:  # in which a question mark would begin options
            directory = self._plain_name.enter_context(plainly_named(opening.directory))
            address = f"sqlite:///{directory / 'mlflow.db'}"
        self._client = MlflowClient(tracking_uri=address)
        if opening.run_id is None:
            self.run_id = self._create(opening)
        else:
            self.run_id = opening.run_id
            self._client.update_run(self.run_id, status="RUNNING")

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(f"{split}/{name}", value, now, step) for name, value in values.items()]
        self._client.log_batch(self.run_id, metrics=metrics)

    def close(self, ending: str) -> None:
        with self._plain_name:
            self._client.set_terminated(self.run_id, _STATUS[ending])

    def _create(self, opening: Opening) -> str:
        from mlflow.entities import Param

        # `MlflowClient` reads no environment for these, unlike the module-level functions.
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _EXPERIMENT)
        experiment = self._client.get_experiment_by_name(name)
        number = (
            self._client.create_experiment(name) if experiment is None else experiment.experiment_id
        )
        run_id = self._client.create_run(number, run_name=opening.directory.name).info.run_id
        fields = [Param(path, str(v)[:_LONGEST_VALUE]) for path, v in _leaves(opening.config)]
        # Config fields go in batches, and long values are cut: servers limit both.
        for start in range(0, len(fields), _MOST_AT_ONCE):
            self._client.log_batch(run_id, params=fields[start : start + _MOST_AT_ONCE])
        return run_id


def _leaves(values: Any, path: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yields every leaf of nested mappings with its dotted path."""
    if not isinstance(values, Mapping):
        yield ".".join(path), values
        return
    for name, value in values.items():
        yield from _leaves(value, (*path, name))
