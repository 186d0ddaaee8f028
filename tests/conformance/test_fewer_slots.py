"""A memory of fewer slots than the source has tokens, in every objective and every search.

Behind a pyramid, slot s stands for tokens 2 s and 2 s + 1. What is summed over the source is summed
over slots, of which padding is none, and one that stands for EOS alone is no word.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.layers.predictor import PREDICTORS
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.objectives.compose import OBJECTIVES
from attention_jax.objectives.supervised_alignment import Term as SupervisedAlignment
from attention_jax.objectives.term import needs_of
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.parameters import drawn
from tests.pyramid import pyramid_in
from tests.quick import quick_jit
from tests.sources import in_source

V, D = 11, 6
LENGTHS, TARGET_LENGTHS = np.array([5, 4, 1]), np.array([4, 2, 3])
# By hand: real slots of each row, and those that stand for more than EOS.
REAL = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]], bool)
WORDS = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], bool)
FIELDS = {
    "target_embedding_dim": D,
    "input": {"embedding_dim": D},
    "encoder": {"name": "halving", "hidden_dim": D},
    "attention": {"name": "bahdanau", "attention_dim": D},
    "decoder": {"name": "luong", "hidden_dim": D, "attentional_dim": D, "bridge": "mean"},
}


@pytest.fixture(scope="module", autouse=True)
def pyramid(tmp_path_factory):
    with pyramid_in(tmp_path_factory.mktemp("extension")):
        yield


def build(name="encoder_decoder", **fields):
    values = in_source({**FIELDS, **fields})
    return build_model(typed(MODELS.config(name), values, "config.model"), V, V)


def batch(size=5):
    rng = np.random.default_rng(0)
    place = np.arange(size)
    real = place < LENGTHS[:, None]
    words = np.zeros((3, size), int)
    words[:, :5] = rng.integers(SpecialIds.COUNT, V, size=(3, 5))
    source = np.where(place == LENGTHS[:, None] - 1, SpecialIds.EOS, words) * real
    target_mask = np.arange(4) < TARGET_LENGTHS[:, None]
    links = np.zeros((3, 4, size), bool)
    links[:, :, :5] = rng.random((3, 4, 5)) < 0.5
    return {
        "source": jnp.asarray(source, jnp.int32),
        "source_mask": jnp.asarray(real),
        "target": jnp.asarray(rng.integers(SpecialIds.COUNT, V, (3, 4)), jnp.int32),
        "target_mask": jnp.asarray(target_mask),
        "links": jnp.asarray(links & real[:, None] & target_mask[..., None]),
    }


@functools.cache
def started():
    """The model with all predictors, and what it gives for the batch and for one padded further."""
    model = build(predictors={name: {} for name in PREDICTORS.names()})
    params, apply = drawn(model, 1), quick_jit(model.apply)
    return model, [(apply(params, given), given) for given in (batch(), batch(8))]


def test_slots_are_told_from_the_tokens_that_they_stand_for():
    _, ((output, _), _) = started()
    slots = output.outputs["slots"]
    np.testing.assert_array_equal(slots.mask, REAL)
    np.testing.assert_array_equal(slots.is_word, WORDS)
    assert slots.spans[0].tolist() == [[0, 2], [2, 4], [4, 5]]
    assert output.attention.weights.shape == (3, 4, 3)


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_every_objective_is_measured_over_slots_or_refused(name):
    model, outputs = started()
    objective = build_objective({name: {}})
    (term,) = objective.terms.values()
    missing = [key for key in needs_of(term) if key not in model.provides]
    if missing:
        others = {"reverse_nll": {}} if "reverse" in missing else {}
        with pytest.raises(ConfigError, match=rf"^config\.objectives\.{name}: ") as caught:
            build_objective({name: {}, **others}).check(model)
        assert "\n" not in str(caught.value)
        return
    totals = [term.total(output, given) for output, given in outputs]
    assert np.isfinite(totals[0]) and totals[0] != 0
    np.testing.assert_allclose(*totals, rtol=1e-5)  # padding is no slot
    np.testing.assert_array_equal(*(term.count(given) for _, given in outputs))


def test_both_directions_have_no_symmetry_of_slots_and_tokens():
    both = build("bidirectional")
    build_objective({"nll": {}, "reverse_nll": {}}).check(both)
    objective = build_objective({"nll": {}, "reverse_nll": {}, "bilingual_symmetry": {}})
    with pytest.raises(ConfigError, match="bilingual_symmetry: .* a slot for each token, found"):
        objective.check(both)


def test_coverage_embeddings_want_one_word_type_for_each_slot():
    message = "^config.model.attention.name: .*'coverage_embedding'.* no slot of encoder 'halving'"
    with pytest.raises(ConfigError, match=message):
        build(attention={"name": "coverage_embedding", "attention_dim": D, "coverage_dim": 2})


@pytest.mark.parametrize("with_boundaries", [True, False])
def test_coverage_penalty_against_numpy(with_boundaries):
    _, ((output, given), _) = started()
    objective = build_objective({"coverage_penalty": {"with_boundaries": with_boundaries}})
    (term,) = objective.terms.values()
    received = (np.asarray(output.attention.weights) * given["target_mask"][..., None]).sum(1)
    counts = REAL if with_boundaries else WORDS
    expected = ((1 - received) ** 2)[counts].sum()
    np.testing.assert_allclose(term.total(output, given), expected, rtol=1e-5)


def test_links_are_those_of_any_token_of_a_slot():
    _, ((output, given), _) = started()
    links = np.asarray(given["links"])
    linked = np.stack([links[..., :2].any(-1), links[..., 2:4].any(-1), links[..., 4]], axis=-1)
    found = SupervisedAlignment(unaligned="ignore").expected(output, given)
    expected = linked / np.maximum(linked.sum(-1, keepdims=True), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def searches():
    """Yields every method with every coverage penalty that it takes, and all other options."""
    choices = {name: SearchConfig.__dataclass_fields__[name].metadata["choices"]
               for name in ("method", "coverage_penalty")}  # fmt: skip
    for method, penalty in itertools.product(*choices.values()):
        for stepwise in (False, True):
            fields = {"coverage_stepwise": True} if stepwise else {}
            try:
                yield SearchConfig(
                    method=method, coverage_penalty=penalty, beam_size=2, min_length_ratio=0.6,
                    no_repeat_ngram_size=2, forbid_unknown=True, top_k=5, **fields,
                )  # fmt: skip
            except ValueError:  # a penalty compares hypotheses, of which greedy search has one
                continue


def test_every_penalty_and_every_method_is_searched_with():
    tried = list(searches())
    assert {config.method for config in tried} == {"greedy", "beam", "sample"}
    assert {config.coverage_penalty for config in tried} == {"none", "gnmt", "summary"}
    assert any(config.coverage_stepwise for config in tried)


@pytest.mark.parametrize("config", list(searches()), ids=lambda config: (
    f"{config.method}-{config.coverage_penalty}{'-stepwise' * config.coverage_stepwise}"
))  # fmt: skip
def test_every_search_scores_words_of_slots(config):
    """The penalty again, by NumPy, of the attention that is shown, which is to tokens."""
    model, params = build(), drawn(build(), 1)
    given = {name: batch()[name] for name in ("source", "source_mask")}
    found = Searcher(model, config).search(params, given, jax.random.key(0))
    weights, lengths = np.asarray(found.weights[:, 0]), np.asarray(found.lengths[:, 0])
    assert weights.shape[-1] == 5 and (lengths >= np.floor(0.6 * LENGTHS) + 1).all()
    slots = np.stack([weights[..., :2].sum(-1), weights[..., 2:4].sum(-1), weights[..., 4]], -1)
    np.testing.assert_allclose(slots.sum((1, 2)), lengths, rtol=1e-5)
    covered = slots.sum(1)
    terms = {
        "none": np.zeros_like(covered),
        "gnmt": np.log(np.clip(covered, 1e-10, 1)),
        "summary": 1 - np.maximum(covered, 1),
    }[config.coverage_penalty]
    expected = found.log_probs[:, 0] / lengths
    expected += config.coverage_beta * np.where(WORDS, terms, 0).sum(-1)
    np.testing.assert_allclose(found.scores[:, 0], expected, rtol=1e-4, atol=1e-5)
