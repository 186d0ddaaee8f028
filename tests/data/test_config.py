import pytest

from attention_jax.configuration import plain, typed
from attention_jax.data.builders.cmudict import Config as CmudictConfig
from attention_jax.data.builders.multi30k import Config as Multi30kConfig
from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.builders.tatoeba import Config as TatoebaConfig
from attention_jax.data.config import SubwordsConfig, data_config_class
from attention_jax.errors import ConfigError


@pytest.mark.parametrize(
    "config",
    [
        CmudictConfig(batch_size=3),
        Multi30kConfig(source_language="cs", subwords=SubwordsConfig(size=77, joint=True)),
        TatoebaConfig(source_language="de", target_language="en"),
        ParallelConfig(train_table="a.tsv", test_source="b", test_target="c"),
        SmokeConfig(),
    ],
    ids=lambda config: config.name,
)
def test_configs_survive_being_plain(config):
    assert data_config_class(config.name) is type(config)
    assert typed(type(config), plain(config)) == config


def test_data_config_class_lists_the_names():
    with pytest.raises(KeyError) as error:
        data_config_class("cmu")
    assert error.value.args[0] == [
        "cmudict", "conll2017", "django", "documents", "emoji", "emoji_names", "eraser_movies",
        "features", "formulas", "hearthstone", "imported", "inflections", "method_naming",
        "multi30k", "parallel", "pictures", "pronunciations", "ptb", "recordings", "seen_texts",
        "sigmorphon2021", "smoke", "smoke_code", "smoke_documents", "smoke_pictures",
        "spoken_digits", "tatoeba", "texts", "tones",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (CmudictConfig, {"batch_size": 0}, r"data\.batch_size: expected at least 1"),
        (CmudictConfig, {"batch_unit": "token"}, r"data\.batch_unit: .*did you mean 'tokens'"),
        (CmudictConfig, {"lowercase": True}, r"data\.lowercase: no such field"),
        (Multi30kConfig, {"source_language": "es"}, r"data\.source_language: expected one of"),
        (Multi30kConfig, {"source_language": "de"}, r"data\.target_language: expected another"),
        (TatoebaConfig, {"source_language": "de"}, r"data\.target_language: expected another"),
        (Multi30kConfig, {"subwords": {"kind": "bp"}}, r"data\.subwords\.kind: .*mean 'bpe'"),
        (
            Multi30kConfig,
            {"min_train_source_words": 9, "max_train_source_words": 5},
            r"data\.max_train_source_words: expected at least min_train_source_words \(9\)",
        ),
        (ParallelConfig, {}, r"data\.train_source: expected a file"),
        (ParallelConfig, {"train_source": "a"}, r"data\.train_target: expected a file"),
        (
            ParallelConfig,
            {"train_source": "a", "train_target": "b", "train_table": "c"},
            r"data\.train_table: expected either a table or two files",
        ),
        (
            ParallelConfig,
            {"train_table": "a", "test_target": "b"},
            r"data\.test_source: expected a file, found none",
        ),
    ],
)
def test_mistakes_are_named(cls, values, message):
    with pytest.raises(ConfigError, match=message):
        typed(cls, values, "data")
