"""What TFDS expects of the folder of every data set."""

import importlib
import re

import pytest
import tensorflow_datasets as tfds

from attention_jax.data.config import DATA_SETS

WITH_BUILDERS = [name for name in DATA_SETS.names() if "load" not in vars(DATA_SETS.config(name))]


@pytest.fixture(params=WITH_BUILDERS)
def module(request):
    name = request.param
    return importlib.import_module(f"attention_jax.data.builders.{name}.{name}_dataset_builder")


def test_folder_is_described(module):
    info = module.Builder.get_metadata()
    assert info.description.strip()
    assert all(tag.startswith(("content.", "ml.")) for tag in info.tags)


def test_checksums_are_tfds_s(module):
    for url, info in module.Builder.url_infos.items():
        assert url.endswith(info.filename)
        assert info.size > 0
        assert re.fullmatch(r"[0-9a-f]{64}", info.checksum)


def test_builder_is_named_after_its_folder(module):
    assert issubclass(module.Builder, tfds.core.GeneratorBasedBuilder)
    assert module.Builder.name == module.__name__.split(".")[-2]
