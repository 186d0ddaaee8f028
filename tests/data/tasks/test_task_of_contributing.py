"""The task of CONTRIBUTING.md works as it stands there, from a folder of extensions."""

import pytest

from attention_jax.data import config as data_configs
from attention_jax.data.config import data_config_class
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.data.task import find_task
from attention_jax.errors import ConfigError


@pytest.fixture(scope="module")
def example(repository):
    section = (repository / "CONTRIBUTING.md").read_text().partition("## Adding a task")[2]
    return section.partition("```python\n")[2].partition("```")[0]


def test_a_task_brings_its_data_and_a_field_of_its_own(extension, example, tmp_path):
    extension("data/tasks", "plurals", example)
    data_config = data_config_class("plurals")()
    task = find_task(data_config)
    data = build_task(data_config, tmp_path / "vocab")
    batch = next(make_train_iterator(data, data_config, 0))
    weights = dict(zip(batch["index"].tolist(), batch["weight"].tolist(), strict=True))
    assert {index: weight for index, weight in weights.items() if index >= 0} == {0: 2.0, 1: 1.0}
    scores = task.scores(data.split("test"), ["mice", "dog"], data_config)
    assert scores == {"exact": 50.0} and task.metrics[0].name in scores


def test_two_data_sets_of_one_name_are_refused(extension, example):
    extension("data/tasks", "smoke", example.replace('"plurals"', '"smoke"'))
    with pytest.raises(ConfigError, match="^attention_jax.data: expected one data set called 'smo"):
        data_config_class("smoke")
    assert data_configs.DATA_SETS.config("smoke")


def test_names_of_data_sets_are_those_of_builders_and_of_tasks(extension, example):
    with pytest.raises(KeyError) as before:
        data_config_class("plural")
    mine = example.replace('"plurals"', '"plurals_of_mine"')
    extension("data/tasks", "plurals_of_mine", mine)
    with pytest.raises(KeyError) as error:
        data_config_class("plural")
    assert error.value.args[0] == sorted([*before.value.args[0], "plurals_of_mine"])
    assert {*data_configs.DATA_SETS.names()} < {*error.value.args[0]}
