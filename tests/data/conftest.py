"""Data sets that several tests of the data layer look at."""

import pytest


@pytest.fixture(autouse=True)
def no_data_of_the_user(monkeypatch):
    """Tests see the data folder of the user only where they ask for it."""
    monkeypatch.delenv("ATTENTION_JAX_DATA", raising=False)


@pytest.fixture
def real_data(data_root, monkeypatch):
    """The folder of real data, made known to the builders."""
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(data_root))
    return data_root


@pytest.fixture(scope="session")
def dictionary():
    """The examples of CMUdict by split."""
    from attention_jax.data.builders.cmudict.cmudict_dataset_builder import Builder
    from attention_jax.data.preparation import load_examples

    return load_examples(Builder)
