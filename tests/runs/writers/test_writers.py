"""Writers are found by file name, and what they need is asked for by name."""

import sys

import pytest

from attention_jax.errors import ConfigError
from attention_jax.runs import writers


def test_writers_are_the_files_of_the_package():
    assert writers.WRITERS.names() == ["mlflow", "tensorboard", "wandb"]


@pytest.mark.parametrize("name", writers.WRITERS.names())
def test_a_missing_package_is_one_line(monkeypatch, name):
    package = writers.WRITERS.find(name).PACKAGE
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as caught:
        writers.require_packages([name])
    assert f"expected the package {package} to be installed for {name!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", writers.WRITERS.names())
def test_no_package_is_imported_before_it_is_needed(monkeypatch, name):
    monkeypatch.setitem(sys.modules, writers.WRITERS.find(name).PACKAGE, None)
    monkeypatch.delitem(sys.modules, f"{writers.__name__}.{name}")
    assert writers.WRITERS.find(name).PACKAGE


def test_a_directory_of_a_packages_name_is_no_package(monkeypatch, tmp_path):
    (tmp_path / "wandb").mkdir()  # as wandb itself makes where it is used
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(ConfigError, match="found none"):
        writers.require_packages(["wandb"])
    sys.modules.pop("wandb", None)


def test_installed_packages_are_enough(install):
    install("mlflow")
    install("wandb")
    writers.require_packages(["mlflow", "wandb"])
