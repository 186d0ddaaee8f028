"""Latent alignments in models: all parameters learn, and what does not fit is one line."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.layers.alignment import ALIGNMENTS
from attention_jax.layers.readout import READOUTS
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from tests.conformance.test_rows_alone import batch, compare
from tests.parameters import drawn
from tests.quick import quick_jit

V, D = 9, 8
ADDITIVE = {"name": "bahdanau", "attention_dim": D}
NONE = {"name": "none"}
OBJECTIVES = {"nll": {"label_smoothing": 0.1}, "supervised_alignment": {}}


def build(alignment="independent", **fields):
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {
            "source": {"input": {"embedding_dim": D}, "encoder": {"hidden_dim": D}},
        },
        "attention": NONE if alignment == "relative_jumps" else ADDITIVE,
        "decoder": {"name": "transducer", "hidden_dim": D},
        "readout": {"name": "marginal", "hidden_dim": 6, "alignment": {"name": alignment}},
        **fields,
    }
    return build_model(typed(MODELS.config(values["name"]), values, "config.model"), V, V)


@pytest.mark.parametrize("name", ALIGNMENTS.names())
def test_every_parameter_learns(name):
    """Of the likelihood and of links, which teach the posterior; compiled once."""
    model, objective = build(name), build_objective(OBJECTIVES)
    objective.check(model)
    params, given = drawn(model, 1), batch()

    @quick_jit
    def run(params, given):
        return jax.grad(lambda params: objective(model.apply(params, given), given)[0])(params)

    for path, leaf in jax.tree.leaves_with_path(run(params, given)):
        assert np.isfinite(leaf).all() and np.abs(leaf).max() > 1e-6, jax.tree_util.keystr(path)
    count = run._cache_size()
    run(jax.tree.map(lambda leaf: 2 * leaf, params), {**given, "target": given["target"] + 0})
    assert run._cache_size() == count


def test_bfloat16_is_close_with_float32_sums():
    model, short = build("segments"), build("segments", dtype="bfloat16")
    params, given = drawn(model, 1), batch()

    @quick_jit
    def run(params):
        outputs = (of.apply(params, given) for of in (model, short))
        return [(of.predictions.log_prob(given["target"]), of.attention.weights) for of in outputs]

    for one, other in zip(*run(params), strict=True):
        assert one.dtype == other.dtype == jnp.float32
        np.testing.assert_allclose(other, one, rtol=0.05, atol=0.1)


def test_a_row_alone_is_the_row_in_its_batch():
    """With a last slot of its own; independent alignments are tried where all readouts are."""
    compare(build("segments"), batch())


def shapes(**fields):
    readout = {"name": "marginal", "hidden_dim": 6, **fields}
    alignment = readout.get("alignment", {}).get("name", "independent")
    return jax.eval_shape(build(alignment, readout=readout).init, jax.random.key(0))


def test_every_field_changes_something():
    """The name of an alignment changes outputs, as is tested beside it; others, parameters."""
    jumps = {"name": "relative_jumps"}
    changes = {
        "hidden_dim": ({}, {"hidden_dim": 7}),
        "max_jump": ({"alignment": jumps}, {"alignment": {**jumps, "max_jump": 6}}),
    }
    fields = {field.name for field in dataclasses.fields(READOUTS.config("marginal"))}
    for name in ALIGNMENTS.names():
        fields |= {field.name for field in dataclasses.fields(ALIGNMENTS.config(name))}
    assert fields == {"name", "alignment", *changes}
    for one, other in changes.values():
        assert jax.tree.map(jnp.shape, shapes(**one)) != jax.tree.map(jnp.shape, shapes(**other))


LUONG = {"name": "luong", "hidden_dim": D, "attentional_dim": D, "input_feeding": False}
TRANSFORMER = {"name": "transformer", "num_layers": 1, "feed_forward_dim": D}
HEADS = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
TAGS = {name: {"input": {"embedding_dim": D}, "encoder": {"hidden_dim": D}}
        for name in ("source", "tags")}  # fmt: skip
BAD = [
    ({"decoder": LUONG}, "decoder.name: expected one that reads no contexts, .* found 'luong'"),
    ({"decoder": {"name": "bahdanau", "hidden_dim": D}}, "decoder.name: .* found 'bahdanau'"),
    ({"decoder": TRANSFORMER, "attention": {**HEADS, "score": {"name": "scaled_dot"}}},
     "decoder.name: expected one that reads no contexts, .* found 'transformer'"),
    ({"attention": {**HEADS, "score": {"name": "scaled_dot"}}}, "attention: expected one head"),
    ({"readout": {"name": "softmax"}}, "readout.name: .* such as 'marginal', .* found 'softmax'"),
    ({"attention": NONE}, "attention: expected one head, .* found 'none'"),
    ({"attention": {**ADDITIVE, "normalizer": "sparsemax"}}, "attention: .* softmax of its scores"),
    ({"attention": {**ADDITIVE, "num_heads": 2}}, "attention: expected one head"),
    ({"attention": {"name": "local_m"}}, "attention: .* all slots .* 'local_m' over 'luong_gen"),
    ({"attention": {"name": "coverage_vector"}}, "attention.name: .* carries nothing .* 'cover"),
    ({"attention": ADDITIVE, "alignment": "relative_jumps"}, "attention.name: expected 'none' "),
    ({"readout": {"name": "marginal", "alignment": {"name": "relative_jumps", "max_jump": 0}},
      "attention": NONE}, "readout.alignment.max_jump: expected at least 1, found 0"),
    ({"readout": {"name": "marginal", "alignment": {"name": "monotone"}}},
     r"readout.alignment.name: expected one of .* \(did you mean 'monotonic'\?\)"),
    ({"attention": {**NONE, "conditioning": "initial_state"}, "alignment": "relative_jumps",
      "decoder": {"name": "transducer", "hidden_dim": D, "bridge": "mean"}},
     "attention.conditioning: expected 'every_step' .* reads no contexts, found 'initial_state'"),
    ({"sources": TAGS}, "attention.name: .* attends to several sources for source, tags, found"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_what_does_not_fit_is_one_line(fields, message):
    with pytest.raises(ConfigError, match=f"^config.model.{message}") as caught:
        build(**fields)
    assert "\n" not in str(caught.value)


def test_a_model_without_a_source_has_none_to_sum_over():
    values = {"name": "language_model", "readout": {"name": "marginal"}}
    config = typed(MODELS.config("language_model"), values, "config.model")
    with pytest.raises(ConfigError, match="^config.model.readout.name: .* source .* found none"):
        build_model(config, V, V)
