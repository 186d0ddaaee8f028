"""The config of an experiment: a line for every mistake, and JSON that reads back."""

import dataclasses
import importlib
import json
import pkgutil
import re

import pytest
from ml_collections import ConfigDict

import configs
from attention_jax.config_choices import Choices
from attention_jax.configuration import plain
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.config import data_config_class
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.tasks import translate
from attention_jax.discovery import Parts
from attention_jax.errors import ConfigError
from attention_jax.models import build_model
from attention_jax.objectives.compose import OBJECTIVES
from attention_jax.runs.config import (
    changed_fields,
    from_config_dict,
    may_change,
    present_path,
    template,
    to_plain,
)
from attention_jax.runs.size_of_text import settled
from attention_jax.training.early_stopping import watched_fields


def _values(**groups) -> ConfigDict:
    values = {
        "data": {"name": "smoke"},
        "model": {"name": "encoder_decoder"},
        "training": {"num_steps": 10},
    }
    return ConfigDict({**values, **groups})


def test_from_config_dict_fills_in_defaults():
    config = from_config_dict(_values())
    assert config.optimizer.name == "adam" and config.schedule.name == "constant"
    assert config.training.averaging.name == "none"
    assert config.objectives["nll"].weight == 1.0


def test_to_plain_reads_back_as_the_same_config():
    config = from_config_dict(
        _values(
            training={"num_epochs": 2.5, "averaging": {"name": "ema", "decay": 0.9}},
            evaluation={"splits": ("test",)},
            objectives={"nll": {"label_smoothing": 0.1}},
        )
    )
    assert from_config_dict(json.loads(json.dumps(to_plain(config)))) == config


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"training": {}}, "config.training.num_steps: expected this or num_epochs to be set"),
        ({"training": {"num_steps": 0}}, "config.training.num_steps: expected at least 1"),
        ({"training": {"num_steps": 5, "patience": 1, "evaluate_every_steps": 0}}, "patience"),
        (
            {"training": {"num_steps": 5, "averaging": {"name": "checkpoints", "count": 5}}},
            "config.training.keep_latest: expected at least averaging.count (5), found 2",
        ),
        (
            {
                "training": {
                    "num_steps": 5,
                    "patience": 3,
                    "averaging": {"name": "checkpoints", "count": 2},
                }
            },
            "config.training.patience: expected 0 where averaging.name is 'checkpoints'",
        ),
        ({"training": {"num_steps": 5, "mode": "low"}}, "expected one of 'min', 'max'"),
        (
            {"training": {"num_steps": 5, "writers": ("tensorbord",)}},
            "writers[0]: expected one of 'mlflow', 'tensorboard', 'wandb', found 'tensorbord' "
            "(did you mean 'tensorboard'?)",
        ),
        (
            {"training": {"num_steps": 5, "writers": ("wandb", "wandb")}},
            "config.training.writers: expected every one once, found ('wandb', 'wandb')",
        ),
        ({"evaluation": {"splits": ("dev",)}}, "splits[0]: expected one of train"),
        ({"objectives": {}}, "config.objectives: expected at least one"),
        ({"objectives": {"nl": {}}}, "did you mean 'nll'"),
        ({"data": {"name": "smok"}}, "did you mean 'smoke'"),
        ({"nonsense": 3}, "config.nonsense: no such field"),
        (
            {"data": {"name": "multi30k"}, "objectives": {"supervised_alignment": {}}},
            "config.data.alignment.method: expected word alignments, which an objective needs, "
            "found 'none'",
        ),
        *(
            (
                {"data": {"name": name}, "objectives": {"supervised_alignment": {}}},
                "config.data.name: expected data with links of their own, or between whose words "
                f"they can be looked for, as an objective needs them, found '{name}'",
            )
            for name in ("cmudict", "emoji")
        ),
        *(
            (
                {
                    "data": {"name": name},
                    "objectives": {"supervised_alignment": {"unaligned": "inherit_by_word"}},
                },
                "config.objectives: expected unaligned='inherit' or 'ignore' beside the links that "
                f"'{name}' brings, which are of tokens, not of words, found 'inherit_by_word'",
            )
            for name in ("formulas", "tones")
        ),
        (
            {"data": {"name": "multi30k", "alignment": {"method": "hmm"}}},
            "config.data.alignment.method: expected 'none', for no objective needs word "
            "alignments, found 'hmm'",
        ),
    ],
)
def test_from_config_dict_names_what_is_wrong(groups, words):
    with pytest.raises(ConfigError) as error:
        from_config_dict(_values(**groups))
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["formulas", "spoken_digits", "tones"])
def test_data_with_links_of_their_own_need_no_alignments(name):
    objectives = {"nll": {}, "supervised_alignment": {"unaligned": "ignore"}}
    assert from_config_dict(_values(data={"name": name}, objectives=objectives)).data.brings_links
    from_config_dict(_values(data={"name": name}))  # which nobody has to read


def test_total_steps_counts_updates_or_passes():
    steps = from_config_dict(_values()).training
    epochs = dataclasses.replace(steps, num_steps=None, num_epochs=2.5)
    assert (steps.total_steps(7), epochs.total_steps(7)) == (10, 18)
    assert dataclasses.replace(epochs, num_epochs=0.29).total_steps(100) == 29  # 28.999999999999996


def test_template_has_every_field_and_changes_nothing():
    values = _values(optimizer={"name": "sgd", "momentum": 0.5})
    completed = template(values)
    assert from_config_dict(completed) == from_config_dict(values)
    assert set(completed.training.keys()) == set(plain(from_config_dict(values).training))
    assert completed.get_type is not None and completed.training.get_type("num_epochs") is float


def test_template_takes_another_name_and_drops_what_it_has_not():
    values = _values(optimizer={"name": "adam", "learning_rate": 0.25, "beta1": 0.5})
    config = from_config_dict(template(values, Choices([("optimizer.name", "sgd")])))
    assert config.optimizer.name == "sgd" and config.optimizer.learning_rate == 0.25


def test_template_takes_the_name_of_a_part_that_a_config_leaves_out():
    encoder = {"name": "self_attention", "feed_forward_dim": 8}
    values = _values(model={"name": "encoder_decoder", "sources": {"source": {"encoder": encoder}}})
    config = from_config_dict(template(values))
    assert config.model.sources["source"].encoder.self_attention is None
    path = "model.sources.source.encoder.self_attention.name"
    completed = template(values, Choices([(path, "multi_head")]))
    completed.model.sources.source.encoder.self_attention.num_heads = 2
    config = from_config_dict(completed)
    assert config.model.sources["source"].encoder.self_attention.num_heads == 2


def test_a_model_is_built_of_its_config_without_looking_up_its_parts(monkeypatch):
    model = {"name": "encoder_decoder", "predictors": {"fertility": {}}}
    config = from_config_dict(_values(model=model, objectives={"nll": {}, "global_fertility": {}}))
    looked_up, find = [], Parts.find

    def recorded(parts, name):
        looked_up.append(name)
        return find(parts, name)

    monkeypatch.setattr(Parts, "find", recorded)
    build_model(config.model, 9, 9)
    assert set(looked_up) <= {"bahdanau"}  # its mechanism


def test_changed_fields_lists_paths_with_both_values():
    old = to_plain(from_config_dict(_values()))
    new = to_plain(from_config_dict(_values(seed=3, training={"num_steps": 20})))
    assert changed_fields(old, new) == {"seed": (0, 3), "training.num_steps": (10, 20)}
    assert not changed_fields(old, old)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("training.num_steps", True),
        ("search.beam_size", True),
        ("evaluation.splits", True),
        ("seed", False),
        ("training.metric", False),
        ("training.averaging.decay", False),
        ("optimizer.learning_rate", False),
        ("searching", False),
    ],
)
def test_may_change_allows_what_no_update_depends_on(path, allowed):
    assert may_change(path) == allowed


@pytest.mark.parametrize(
    ("metric", "path", "allowed"),
    [
        ("bleu", "search.beam_size", False),
        ("bleu", "evaluation.num_validation_examples", False),
        ("bleu", "data.bleu_tokenizer", False),
        ("chrf", "data.bleu_tokenizer", True),
        ("bleu", "evaluation.splits", True),
        ("nll", "search.beam_size", True),
        ("nll", "evaluation.num_validation_examples", True),
    ],
)
def test_what_a_decoded_metric_measures_may_not_change(metric, path, allowed):
    assert may_change(path, watched_fields(metric, translate.TASK.metrics)) == allowed


def test_a_task_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(SmokeConfig, "task", "spell")
    message = "data.name: expected data of a task among .*, translate_seen, found 'spell'"
    with pytest.raises(ConfigError, match=f"^config.{message}$"):
        from_config_dict(_values())


def test_a_field_that_no_batch_can_have_is_named(monkeypatch):
    monkeypatch.setattr(OBJECTIVES.config("nll"), "fields", ("gloss",), raising=False)
    message = "data with a field 'gloss', .* found those of translation: .*, source, source_mask, "
    with pytest.raises(ConfigError, match=f"^config.data.name: expected {message}"):
        from_config_dict(_values())


def test_a_plateau_needs_validations():
    training = {"num_steps": 10, "evaluate_every_steps": 0}
    values = _values(schedule={"name": "plateau"}, training=training)
    message = "config.training.evaluate_every_steps: expected more than 0"
    with pytest.raises(ConfigError, match=message):
        from_config_dict(values)


def _forms(name: str) -> list[str]:
    """Lists what a file in `configs` accepts after the colon; it says so when it refuses."""
    with pytest.raises(ValueError, match="after the colon") as refusal:
        importlib.import_module(f"configs.{name}").get_config("?")
    return re.search("expected one of (.*) after the colon", str(refusal.value))[1].split(", ")


CONFIG_FILES = sorted({module.name for module in pkgutil.iter_modules(configs.__path__)})
CONFIG_FILES.remove("common")


@pytest.mark.parametrize("name", CONFIG_FILES)
def test_every_form_of_every_config_file_is_a_config(name, tmp_path):
    (text := tmp_path / "text").write_text("a b\n" * 9)
    for argument in _forms(name):
        values = importlib.import_module(f"configs.{name}").get_config(argument)
        if values.data.name == "parallel":
            values.data.train_source = values.data.train_target = str(text)
            for files in values.data.get("further", {}).values():
                files.train = str(text)
            values = settled(values, print)
            assert not from_config_dict(values).search.min_length_ratio  # nothing is known of it
        if issubclass(data_config_class(values.data.name), OwnTables):
            values.data.train_table = "table"
        found = from_config_dict(values)
        assert from_config_dict(template(values)) == found, argument
        # One table for both sides is refused, when data are read, unless these share a vocabulary.
        is_joint = values.data.get("subwords", {}).get("joint", False)
        assert is_joint or getattr(found.model, "tie_embeddings", "none") != "all", argument


def test_configs_of_finished_runs_are_read_under_their_former_names():
    old = {"encoder": {"hidden_dim": 9}, "source_embedding_dim": 7}
    new = {"sources": {"source": {"encoder": {"hidden_dim": 9}, "input": {"embedding_dim": 7}}}}
    for name in ("bidirectional", "encoder_decoder"):
        expected = from_config_dict(_values(model={"name": name, **new}))
        assert from_config_dict(_values(model={"name": name, **old})) == expected
        assert from_config_dict(template(_values(model={"name": name, **old}))) == expected
    assert expected.model.name == "encoder_decoder"
    assert from_config_dict(_values(model={"name": "rnn_seq2seq", **old})) == expected
    with pytest.raises(ConfigError, match="model.encoder: .* it is .*model.sources.source.encoder"):
        from_config_dict(_values(model={"name": "encoder_decoder", **old, **new}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model.encoder.hidden_dim", "model.sources.source.encoder.hidden_dim"),
        ("model.source_embedding_dim", "model.sources.source.input.embedding_dim"),
        ("model.encoders", "model.encoders"),
        ("data.encoder", "data.encoder"),
    ],
)
def test_present_path_is_that_of_a_renamed_field(old, new):
    assert present_path(old) == new


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({}, "model.sources: expected at least one, such as 'source', found none"),
        ({"target": {}}, "model.sources.target: expected a name .* other than 'target'"),
        ({"a b": {}}, "model.sources.a b: expected a name of letters"),
        ({"source": {"input": {"name": "tokns"}}}, "source.input.name: expected one of .*frames"),
        ({"source": {"inpt": {}}}, "sources.source.inpt: no such field; did you mean 'input'"),
        ({"source": 3}, "sources.source: expected a group of fields, found 3"),
    ],
)
def test_sources_that_cannot_be_are_one_clear_line(sources, message):
    with pytest.raises(ConfigError, match=message) as caught:
        from_config_dict(_values(model={"name": "encoder_decoder", "sources": sources}))
    assert "\n" not in str(caught.value)
