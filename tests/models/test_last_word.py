"""Which decoders have read the last word when they attend for the next one."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.layers.decoder import DECODERS
from attention_jax.layers.readout import sums_over_slots
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from tests.parameters import drawn
from tests.quick import quick_jit

B, S, T, V, D = 2, 4, 5, 9, 6
ADDITIVE = {"name": "bahdanau", "attention_dim": D}
HEADS = {"name": "multi_head", "num_heads": 2, "head_dim": 3}
COVERED = {"name": "coverage_embedding", "attention_dim": D, "coverage_dim": 3}


def variants(name):
    """The values of a decoder's `variant`, if it has one."""
    field = DECODERS.config(name).__dataclass_fields__.get("variant")
    return [None] if field is None else list(field.metadata["choices"])


CASES = [(name, variant) for name in DECODERS.names() for variant in variants(name)]


@functools.cache
def build(name, variant, is_told=False):
    decoder = {"name": name}
    if not name.endswith("transformer"):
        decoder |= {"hidden_dim": D, "bridge": "mean"}
    if variant is not None:
        decoder["variant"] = variant
    readout = {"name": "softmax"}
    if name == "transducer":
        readout = {"name": "marginal", "hidden_dim": D}
    fields = {
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": D},
                "encoder": {"name": "recurrent", "hidden_dim": 3},
            }
        },
        "attention": COVERED if is_told else HEADS if name.endswith("transformer") else ADDITIVE,
        "decoder": decoder,
        "readout": readout,
        "initialization": {"name": "uniform", "scale": 0.7},
    }
    return build_model(typed(MODELS.config("encoder_decoder"), fields, "config.model"), V, V)


def first_row_that_knows(model, place):
    """Returns how many steps after the one that writes a word its attention first depends on it."""
    rng = np.random.default_rng(0)
    batch = {
        "source": jnp.asarray(rng.integers(4, V, (B, S)), jnp.int32),
        "source_mask": jnp.ones((B, S), bool),
        "target": jnp.asarray(rng.integers(4, V, (B, T)), jnp.int32),
        "target_mask": jnp.ones((B, T), bool),
    }
    other = {**batch, "target": batch["target"].at[:, place].set(3)}
    apply, params = quick_jit(model.apply), drawn(model, 1)
    rows = [np.asarray(apply(params, each).attention.weights) for each in (batch, other)]
    changed = np.flatnonzero(np.abs(rows[0] - rows[1]).max(axis=(0, 2)) > 1e-6)
    return int(changed[0]) - place


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_a_decoder_says_whether_its_query_has_read_the_last_word(name, variant):
    model = build(name, variant)
    expected = 1 if "last_word" in model.provides else 2
    if sums_over_slots(model.config.readout):  # attention for a word that is known itself
        expected = 0
    assert first_row_that_knows(model, 1) == expected


def test_a_mechanism_that_is_told_the_word_knows_it():
    model = build("bahdanau", "main_text", is_told=True)
    assert "last_word" in model.provides and first_row_that_knows(model, 1) == 1


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_links_are_taught_to_a_step_that_can_know_them(name, variant):
    model = build(name, variant)
    objective = build_objective({"nll": {}, "supervised_alignment": {"step": "reads"}})
    if "last_word" in model.provides:
        objective.check(model)
        return
    with pytest.raises(ConfigError, match="expected a decoder that has read the last word"):
        objective.check(model)
