"""Parts of the Transformer: which fit one another, and what is said of those that do not."""

import copy
import dataclasses

import jax
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.models import MODELS, build_model
from attention_jax.types import Call
from tests.models.tiny_transformer import BASE, OWN, PARTS, B, T, V, batch, config_of


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder": {"alignment_layer": 2}}, "alignment_layer: expected less than num_layers"),
        ({"decoder": {"alignment_head": 2}}, "alignment_head: expected less than .* 2 heads"),
        ({"encoder": {"max_positions": 9}}, "max_positions: expected only with learned positions"),
        (
            {"attention": {"score": {"name": "local_p"}}},
            r"model.attention.score.name: .* 'local_p' over 'luong.* length .*; decoder.self_at",
        ),
        (
            {"attention": {"score": {"name": "linguistic_coverage"}}},
            "'linguistic_coverage', which carries coverage; encoder.self_attention may be another",
        ),
        (
            {"decoder": {"self_attention": {"name": "none"}}},
            "decoder.self_attention.name: .* 'none', which does not choose between positions$",
        ),
        (
            {"attention": {"refinements": {"rope": {}, "soft_cap": {}}},
             "encoder": OWN, "decoder": OWN},
            "model.attention.refinements: expected none that compare positions .*, found 'rope'$",
        ),
        (
            {"attention": {"head_dim": 3, "refinements": {"rope": {}}}},
            "model.attention.head_dim: expected an even depth for 'rope', found 3",
        ),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_rejected(changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build_model(config_of(**changes), V, V)
    assert str(caught.value).startswith("config.model.") and "\n" not in str(caught.value)


def test_positions_are_compared_where_one_stack_attends_as_the_model_says():
    for part in PARTS:
        changes = {"attention": {"refinements": {"relative_positions": {}}}, part: OWN}
        model = build_model(config_of(**changes), V, V)
        sides = {"encoder": model.sources[0].encoder, "decoder": model.decoder}
        names = {name: set(sides[name].parameters["layer_0"]["self_attention"]) for name in PARTS}
        assert {name for name in PARTS if "distance_keys" in names[name]} == {*PARTS} - {part}
    config = config_of(**changes)
    recurrent = ENCODERS.config("recurrent")()
    source = dataclasses.replace(config.sources["source"], encoder=recurrent)
    alone = dataclasses.replace(config, sources={"source": source})
    with pytest.raises(ConfigError, match="model.attention.refinements: .* 'relative_positions'$"):
        build_model(alone, V, V)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("attention", "message"),
    [
        ({"name": "scaled_dot", "num_heads": 4}, "num_heads: .* divisor of the query depth 6, fo"),
        ({"num_heads": 1, "refinements": {"talking_heads": {}}}, "num_heads: expected more than"),
        ({"head_dim": 3, "refinements": {"rope": {}}}, "head_dim: expected an even depth"),
        ({"score": {"name": "bahdanau"}, "refinements": {"rope": {}}}, "score.name: expected dot"),
        (
            {"score": {"name": "luong_concat"}, "num_memory_heads": 1},
            "num_memory_heads: expected as many as num_heads for 'luong_concat', found 1",
        ),
        (
            {"score": {"name": "local_m"}, "refinements": {"sliding_window": {}}},
            "refinements: expected a score over all slots for 'sliding_window'",
        ),
        (
            {"score": {"name": "coverage_vector"}, "refinements": {"sliding_window": {}}},
            "score.name: .* 'coverage_vector', which carries coverage$",
        ),
    ],
)
def test_faults_of_self_attention_name_its_fields(part, attention, message):
    own = {"name": "multi_head", **attention}
    with pytest.raises(ConfigError, match=rf"^config\.model\.{part}\.self_attention\.{message}"):
        build_model(config_of(**{part: {"self_attention": own}}), V, V)


def _config_with(place, mechanism):
    """The base config with a mechanism of one head at one of the three places of attention."""
    values = copy.deepcopy(BASE)
    stacks = {"encoder": values["sources"]["source"]["encoder"], "decoder": values["decoder"]}
    heads, part = values["attention"], place.partition(".")[0]
    if place == "attention":
        values["attention"] = {"name": mechanism}
        for stack in PARTS:
            stacks[stack]["self_attention"] = heads
    else:
        stacks[part]["self_attention"] = {"name": mechanism}
    return typed(MODELS.config("encoder_decoder"), values, "config.model")


@pytest.mark.parametrize("mechanism", MECHANISMS.names())
@pytest.mark.parametrize("place", ["attention", "encoder.self_attention", "decoder.self_attention"])
def test_any_mechanism_serves_anywhere_or_is_refused(place, mechanism):
    """Those without parameters, too, of which a tree of parameters knows nothing."""
    try:
        model = build_model(_config_with(place, mechanism), V, V)
    except ConfigError as error:
        assert str(error).startswith("config.model.")
        assert mechanism not in ("scaled_dot", "luong_dot", "bahdanau")
        return

    def everything(rng, batch):
        params = model.init(rng)
        memory, state = model.start(params, batch, T)
        logits = model.step(params, memory, state, batch["target"][:, :1])[0].logits
        return model.apply(params, batch, Call(True, rng)).predictions.logits, logits

    trained, searched = jax.eval_shape(everything, jax.random.key(0), batch())
    assert trained.shape == (B, T, V) and searched.shape[-1] == V
