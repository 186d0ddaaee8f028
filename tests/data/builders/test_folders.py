"""What TFDS expects of the folder of every data set."""

import importlib
import importlib.util
import re

import pytest
import tensorflow_datasets as tfds

from attention_jax.data.config import DATA_SETS, DataConfig


def builder_of(name):
    return f"attention_jax.data.builders.{name}.{name}_dataset_builder"


WITH_BUILDERS = [name for name in DATA_SETS.names() if importlib.util.find_spec(builder_of(name))]


@pytest.fixture(params=WITH_BUILDERS)
def module(request):
    return importlib.import_module(builder_of(request.param))


@pytest.mark.parametrize("name", sorted({*DATA_SETS.names()} - {*WITH_BUILDERS}))
def test_a_data_set_without_a_builder_loads_itself(name):
    assert DATA_SETS.config(name).load is not DataConfig.load


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
