"""Overrides of config fields reach the config as it is used."""

import json

import pytest
from absl import flags
from ml_collections import ConfigDict

from attention_jax.config_choices import Choices
from attention_jax.errors import ConfigError
from attention_jax.runs import config as configs
from attention_jax.runs import overrides


@pytest.fixture
def override(monkeypatch):
    """Returns the experiment that `launch.train` would run with some arguments."""

    def resolve(*arguments, values=None):
        monkeypatch.setattr(flags, "FLAGS", flags.FlagValues())
        values = ConfigDict(
            values or {
                "data": {"name": "smoke"},
                "model": {"name": "encoder_decoder"},
                "optimizer": {"name": "adam", "learning_rate": 0.5, "beta2": 0.9},
                "training": {"num_steps": 3},
            }
        )  # fmt: skip
        argv = ["train", *arguments]
        completed = configs.template(values, Choices(overrides.listed(argv, "config")))
        argv = overrides.define_overrides(argv, "config", completed)
        flags.FLAGS(argv)
        return configs.from_config_dict(flags.FLAGS["config"].value)

    return resolve


def test_override_reaches_fields_that_the_file_does_not_mention(override):
    config = override("--config.training.keep_latest=7", "--config.search.beam_size=3")
    assert config.training.keep_latest == 7
    assert config.search.beam_size == 3
    assert config.optimizer.learning_rate == 0.5


def test_override_sets_what_is_none_by_default(override):
    values = {"data": {"name": "smoke"}, "model": {"name": "encoder_decoder"}, "training": {}}
    config = override("--config.training.num_epochs=1.5", values=values)
    assert (config.training.num_steps, config.training.num_epochs) == (None, 1.5)


@pytest.mark.parametrize(
    ("arguments", "lengths"),
    [
        (["--config.training.num_epochs=None"], (9, None)),
        (["--config.training.num_epochs", "None"], (9, None)),
        (["--config.training.num_epochs=2", "--config.training.num_epochs=None"], (9, None)),
        (["--config.training.num_epochs=None", "--config.training.num_epochs=2"], (9, 2.0)),
        (["--config.training.num_steps=None"], (None, 5.0)),
    ],
)
def test_override_unsets_what_may_be_none(override, arguments, lengths):
    values = {"data": {"name": "smoke"}, "model": {"name": "encoder_decoder"},
              "training": {"num_epochs": 5.0, "num_steps": 9}}  # fmt: skip
    config = override(*arguments, values=values)
    assert (config.training.num_steps, config.training.num_epochs) == lengths


def model_with(encoder):
    return {"name": "encoder_decoder", "sources": {"source": {"encoder": encoder}}}


def encoder_of(config):
    return config.model.sources["source"].encoder


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("encoder.hidden_dim=9", "sources.source.encoder.hidden_dim"),
        ("encoder.name=lstmn", "sources.source.encoder.name"),
        ("source_embedding_dim=9", "sources.source.input.embedding_dim"),
    ],
)
def test_override_of_a_former_name_is_told_the_present_one(override, old, new):
    path = old.partition("=")[0]
    expected = f"--config.model.{path}: no such field; it is --config.model.{new} now"
    with pytest.raises(ConfigError) as caught:
        override(f"--config.model.{old}", values={
            "data": {"name": "smoke"}, "training": {"num_steps": 3},
            "model": {"name": "encoder_decoder"},
        })  # fmt: skip
    assert str(caught.value) == expected


def test_override_unsets_an_optional_part(override):
    stack = {"name": "self_attention", "self_attention": {"name": "scaled_dot"}}
    values = {"data": {"name": "smoke"}, "training": {"num_steps": 3},
              "model": model_with(stack)}  # fmt: skip
    where = "--config.model.sources.source.encoder.self_attention"
    assert encoder_of(override(values=values)).self_attention is not None
    assert encoder_of(override(f"{where}=None", values=values)).self_attention is None


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("seed=None", "config.seed: expected int, found None"),
        ("training.num_epochs=none", "--config.training.num_epochs: expected float, found 'none'"),
        ("model=None", "config.model: expected a group with a 'name', found None"),
        ("training.num_stepz=None", "num_stepz: no such field; did you mean 'num_steps'"),
        ("training.num_steps=None", "num_steps: expected this or num_epochs to be set"),
        ("search.forbid_unknown=None", "config.search.forbid_unknown: expected bool, found None"),
        ("training.initial_weights=a\udcff", r"initial_weights: expected UTF-8 text .* found 'a.u"),
        (f"training.num_steps={10**30}", "num_steps: expected a number of 64 bits, found 10000"),
        (f"training.num_epochs={10**400}", "num_epochs: expected a finite number, found inf"),
        (f"training.freezing.parameters={'(' * 500}", "expected a regular expression, found '"),
        (f"evaluation.splits={'(' * 500}", "splits.0.: expected one of train, "),
        (f"seed={'9' * 5000}", "--config.seed: expected int, found '9999.*9'"),
    ],
)
def test_override_refuses_what_no_field_can_be(override, argument, message):
    with pytest.raises(ConfigError, match=message) as error:
        override(f"--config.{argument}")
    assert len(str(error.value)) <= 500


def test_override_of_a_part_that_is_not_there_names_its_field(override):
    stack = {"name": "self_attention"}
    values = {"data": {"name": "smoke"}, "training": {"num_steps": 3},
              "model": model_with(stack)}  # fmt: skip
    where = "--config.model.sources.source.encoder.self_attention"
    with pytest.raises(ConfigError, match=f"{where}: .* such as {where}.name=scaled_dot, found"):
        override(f"{where}=scaled_dot", values=values)


def test_override_of_a_name_takes_the_other_group_and_keeps_what_fits(override):
    config = override("--config.optimizer.name=sgd", "--config.optimizer.momentum=0.25")
    assert config.optimizer.name == "sgd"
    assert (config.optimizer.learning_rate, config.optimizer.momentum) == (0.5, 0.25)


def test_a_value_may_stand_after_a_space(override):
    config = override(
        "--config.optimizer.name", "sgd", "--config.training.keep_latest", "7",
        "--config.training.num_steps=9",
    )  # fmt: skip
    assert (config.optimizer.name, config.training.keep_latest) == ("sgd", 7)
    with pytest.raises(ConfigError, match="--config.training.keep_latest: expected int, found 'x'"):
        override("--config.training.keep_latest", "x")


def test_a_field_may_be_denied_if_there_is_one(override):
    luong = "--config.model.decoder.name=luong"
    assert override(luong).model.decoder.input_feeding
    assert not override(luong, "--noconfig.model.decoder.input_feeding").model.decoder.input_feeding
    with pytest.raises(ConfigError, match="--config.data.subwords: no such field"):
        override("--noconfig.data.subwords.joint")


def test_override_makes_a_model_go_both_ways(override):
    values = {
        "data": {"name": "smoke"},
        "model": {"name": "encoder_decoder", "attention": {"name": "bahdanau", "attention_dim": 7}},
        "training": {"num_steps": 3},
    }
    config = override(
        "--config.model.name=bidirectional",
        "--config.objectives.reverse_nll.label_smoothing=0.1",
        "--config.objectives.bilingual_symmetry.weight=0.5",
        values=values,
    )
    assert (config.model.name, config.model.attention.attention_dim) == ("bidirectional", 7)
    assert set(config.objectives) == {"nll", "reverse_nll", "bilingual_symmetry"}
    assert config.objectives["bilingual_symmetry"].weight == 0.5


def test_override_of_a_nested_name(override):
    config = override("--config.training.averaging.name=ema",
                      "--config.training.averaging.decay=0.5")  # fmt: skip
    assert config.training.averaging.decay == 0.5


def test_override_of_a_tuple_and_a_bool(override):
    splits = "--config.evaluation.splits=('test', 'train')"
    config = override(splits, "--config.search.forbid_unknown")
    assert config.evaluation.splits == ("test", "train")
    assert config.search.forbid_unknown is True


def test_override_of_an_objective(override):
    config = override("--config.objectives.nll.label_smoothing=0.25")
    assert config.objectives["nll"].label_smoothing == 0.25


def test_override_adds_an_objective_and_suggests_the_nearest(override):
    config = override("--config.objectives.coverage_loss.weight=0.5")
    assert set(config.objectives) == {"nll", "coverage_loss"}
    with pytest.raises(ConfigError, match="supervised_alignmnt: .* mean 'supervised_alignment'"):
        override("--config.objectives.supervised_alignmnt.weight=0.5")


def test_override_adds_and_leaves_out_objectives_by_their_names(override):
    config = override("--config.objectives.coverage_loss=true")
    assert set(config.objectives) == {"nll", "coverage_loss"}
    config = override("--config.objectives.coverage_loss=true", "--config.objectives.nll=false")
    assert set(config.objectives) == {"coverage_loss"}
    for text, message in (
        ("objectives.nll", "--config.objectives.nll: expected true, false, or one of its fields"),
        ("objectives.nil=true", "--config.objectives.nil: no such field; did you mean 'nll'"),
        ("objectives.nll=false", "config.objectives: expected at least one of .*bilingual_s"),
        ("objectives=None", "--config.objectives: expected NAME=true .* with one of .*bi"),
    ):
        with pytest.raises(ConfigError, match=message):
            override(f"--config.{text}")


def test_override_adds_a_refinement_and_suggests_the_nearest(override):
    values = {
        "data": {"name": "smoke"},
        "model": {"name": "encoder_decoder", "attention": {"name": "multi_head"}},
        "training": {"num_steps": 3},
    }
    config = override("--config.model.attention.refinements.rope.base=50.0", values=values)
    assert dict(config.model.attention.refinements)["rope"].base == 50.0
    with pytest.raises(ConfigError, match="refinements.ropes: .* did you mean 'rope'"):
        override("--config.model.attention.refinements.ropes.base=50.0", values=values)


@pytest.mark.parametrize(("added", "base"), [("rope=true", 10_000.0), ("rope.base=9.0", 9.0)])
def test_override_refines_heads_that_only_it_names(override, added, base):
    stack = {"name": "self_attention", "num_layers": 1}
    values = {"data": {"name": "smoke"}, "training": {"num_steps": 3},
              "model": model_with(stack)}  # fmt: skip
    where = "--config.model.sources.source.encoder.self_attention"
    config = override(f"{where}.name=multi_head", f"{where}.refinements.{added}", values=values)
    assert dict(encoder_of(config).self_attention.refinements)["rope"].base == base


def test_override_adds_and_leaves_out_whole_refinements(override):
    attention = {"name": "multi_head", "refinements": {"rope": {"base": 9.0}, "qk_norm": {}}}
    values = {
        "data": {"name": "smoke"},
        "model": {"name": "encoder_decoder", "attention": attention},
        "training": {"num_steps": 3},
    }
    where = "--config.model.attention.refinements"
    config = override(f"{where}.rope=false", f"{where}.alibi=true", values=values)
    assert set(config.model.attention.refinements) == {"alibi", "qk_norm"}
    config = override(f"{where}.rope={{}}", f"{where}.qk_norm=None", values=values)
    assert dict(config.model.attention.refinements)["rope"].base == 9.0
    assert set(config.model.attention.refinements) == {"rope"}
    for text, message in (
        (f"{where}={{}}", "refinements: expected NAME=true .* behind it, with one of alibi, "),
        (f"{where}.rope=4", "refinements.rope: expected true, false, or one of its fields .* '4'"),
        (f"{where}.ropes=true", "refinements.ropes: .* did you mean 'rope'"),
        ("--config.model.decoder.refinements.rope=true", "decoder.refinements: no such field"),
    ):
        with pytest.raises(ConfigError, match=message):
            override(text, values=values)


def test_plain_config_is_json_and_reads_back(override):
    config = override("--config.training.averaging.name=ema")
    text = json.dumps(configs.to_plain(config))
    assert configs.from_config_dict(json.loads(text)) == config
