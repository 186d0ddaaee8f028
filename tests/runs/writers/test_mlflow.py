"""MLflow: what its client is told, and a database of its own where it is installed."""

import dataclasses
import importlib.util
import types
from typing import Any

import pytest

from attention_jax.runs.writers import FAILED, FINISHED, INTERRUPTED, Writer, mlflow


@dataclasses.dataclass
class Metric:
    key: str
    value: float
    timestamp: int
    step: int


@dataclasses.dataclass
class Param:
    key: str
    value: str


class FakeClient:
    """Remembers what the client of a tracking server is told."""

    last: Any = None

    def __init__(self, tracking_uri):
        self.uri, self.told, self.experiments = tracking_uri, [], {}
        FakeClient.last = self

    def get_experiment_by_name(self, name):
        return None

    def create_experiment(self, name):
        self.told.append(("experiment", name))
        return "7"

    def create_run(self, experiment, run_name):
        self.told.append(("run", experiment, run_name))
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="new"))

    def log_batch(self, run_id, metrics=(), params=()):
        self.told.append((run_id, [(m.key, m.value, m.step) for m in metrics], list(params)))

    def update_run(self, run_id, status):
        self.told.append((run_id, status))

    def set_terminated(self, run_id, status):
        self.told.append((run_id, status))


@pytest.fixture
def fake(install, monkeypatch):
    """The fake package."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    install("mlflow")
    install("mlflow.tracking", MlflowClient=FakeClient)
    install("mlflow.entities", Metric=Metric, Param=Param)


def test_no_sign_of_a_name_is_one_of_the_database_address(fake, opening, tmp_path):
    (tmp_path / "a?b#[1]").mkdir()
    run = dataclasses.replace(opening(), directory=tmp_path / "a?b#[1]")
    writer = mlflow.open_writer(run)
    assert writer.place == f"sqlite:///{run.directory}/mlflow.db"
    scheme, database = FakeClient.last.uri.split(":///")
    assert scheme == "sqlite" and not set(database) & set("?#[]")
    writer.close(FINISHED)


def test_a_run_is_told_config_steps_and_values(fake, opening, tmp_path):
    writer = mlflow.open_writer(opening())
    writer.write(5, "train", {"loss": 1.5})
    assert isinstance(writer, Writer)
    assert writer.place == FakeClient.last.uri == f"sqlite:///{tmp_path}/mlflow.db"
    experiment, run, fields, values = FakeClient.last.told
    assert (experiment, run) == (("experiment", "attention_jax"), ("run", "7", tmp_path.name))
    assert {param.key: param.value for param in fields[2]} == {
        "seed": "3", "model.name": "encoder_decoder", "model.decoder.hidden_dim": "8",
    }  # fmt: skip
    assert values == ("new", [("train/loss", 1.5, 5)], [])


def test_a_config_with_many_fields_goes_in_parts(fake, opening):
    config = {f"field{number}": number for number in range(205)}
    mlflow.open_writer(dataclasses.replace(opening(), config=config))
    assert [len(params) for _, _, params in FakeClient.last.told[2:]] == [100, 100, 5]


def test_a_continued_training_continues_the_run(fake, opening, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://service")
    writer = mlflow.open_writer(opening(step=5, run_id="abc"))
    assert (writer.run_id, writer.place) == ("abc", "http://service")
    assert FakeClient.last.told == [("abc", "RUNNING")]


@pytest.mark.parametrize(
    ("ending", "status"), [(FINISHED, "FINISHED"), (FAILED, "FAILED"), (INTERRUPTED, "KILLED")]
)
def test_a_run_is_told_how_training_ended(fake, opening, ending, status):
    mlflow.open_writer(opening(run_id="abc")).close(ending)
    assert FakeClient.last.told[-1] == ("abc", status)


@pytest.mark.filterwarnings("ignore")  # of a package that the tests do not depend on
@pytest.mark.skipif(
    getattr(importlib.util.find_spec("mlflow"), "origin", None) is None,
    reason="mlflow is not installed",
)
def test_a_database_of_its_own_holds_one_run_of_a_continued_training(
    opening, tmp_path, monkeypatch
):
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    first = mlflow.open_writer(opening())
    first.write(1, "train", {"loss": 1.5})
    first.close(INTERRUPTED)
    second = mlflow.open_writer(opening(step=1, run_id=first.run_id))
    second.write(2, "train", {"loss": 1.25})
    second.close(FINISHED)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    run = client.get_run(first.run_id)
    points = client.get_metric_history(first.run_id, "train/loss")
    assert [(point.step, point.value) for point in points] == [(1, 1.5), (2, 1.25)]
    assert run.info.status == "FINISHED" and run.data.params["model.decoder.hidden_dim"] == "8"
