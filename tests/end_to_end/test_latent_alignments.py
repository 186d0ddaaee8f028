"""A transliteration, letter for letter: latent alignments learn it, and where from."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.quick import quick_jit

LETTERS, LONGEST, ROWS, D = 6, 5, 48, 24
V = SpecialIds.COUNT + LETTERS
ATTENTION = {
    "independent": {"name": "luong_general"},
    "segments": {"name": "bahdanau", "attention_dim": D},
}


def build(alignment):
    """A model whose slots know their own letter and place: nothing can be read elsewhere."""
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": D},
                "encoder": {"name": "concatenation", "max_positions": LONGEST + 1},
            }
        },
        "attention": ATTENTION[alignment],
        "decoder": {"name": "transducer", "cell": "gru", "hidden_dim": D},
        "readout": {"name": "marginal", "hidden_dim": D, "alignment": {"name": alignment}},
        "initialization": {"name": "default", "embedding_scale": 1.0},
    }
    return build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), V, V)


def words(seed):
    """Returns random words, whose letters are written as those three places on in the alphabet."""
    rng = np.random.default_rng(seed)
    place, lengths = np.arange(LONGEST + 1), rng.integers(2, LONGEST + 1, size=(ROWS, 1))
    letters = rng.integers(LETTERS, size=(ROWS, LONGEST + 1))
    mask = place <= lengths

    def written(letters):
        ids = np.where(place == lengths, SpecialIds.EOS, SpecialIds.COUNT + letters)
        return jnp.asarray(np.where(mask, ids, SpecialIds.PAD), jnp.int32)

    other, mask = (letters + 3) % LETTERS, jnp.asarray(mask)
    sides = {"source": written(letters), "target": written(other)}
    return {**sides, "source_mask": mask, "target_mask": mask}


@pytest.mark.parametrize("alignment", ATTENTION)
def test_letters_and_where_they_are_from_are_learnt(alignment):
    model, objective = build(alignment), build_objective({"nll": {}})
    optimizer = optax.adam(1e-2)

    @functools.partial(quick_jit, donate_argnums=(0, 1))
    def update(params, state, batch):
        gradient = jax.grad(lambda params: objective(model.apply(params, batch), batch)[0])(params)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, change), state

    params = model.init(jax.random.key(0))
    state = optimizer.init(params)
    for step in range(160):
        params, state = update(params, state, words(step))
    batch = words(-1 % 2**32)
    found = Searcher(model, SearchConfig(method="greedy")).search(params, batch, jax.random.key(0))
    target = np.asarray(batch["target"])
    written = np.asarray(found.tokens[:, 0, : target.shape[1]])
    assert (written == target).all(-1).mean() > 0.95
    output = quick_jit(model.apply)(params, batch)
    best = np.asarray(output.attention.weights.argmax(-1))[np.asarray(batch["target_mask"])]
    places = np.broadcast_to(np.arange(target.shape[1]), target.shape)
    diagonal = places[np.asarray(batch["target_mask"])]
    assert (best == diagonal).mean() > 0.95
