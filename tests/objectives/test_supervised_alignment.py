"""Supervised attention: golden cases, NumPy, padding."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives.alignment_rows import inherit, normalize, smooth
from attention_jax.objectives.supervised_alignment import LOSSES, Term
from attention_jax.types import AttentionOutput, ModelOutput, SpecialIds

WEIGHTS = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
LINKS = [[1, 1, 0], [0, 0, 0], [0, 0, 1]]  # the middle token is unaligned


def output_of(weights):
    return ModelOutput(None, AttentionOutput(None, jnp.asarray(weights, jnp.float32), None))


def batch_of(links, target_lengths=None, source_lengths=None):
    links = np.asarray(links, bool)
    rows, size_t, size_s = links.shape
    target_lengths = np.asarray(target_lengths or [size_t] * rows)
    source_lengths = np.asarray(source_lengths or [size_s] * rows)
    place = np.arange(size_s)
    return {
        "links": jnp.asarray(links),
        "source": jnp.asarray(np.where(place == source_lengths[:, None] - 1, SpecialIds.EOS, 5)),
        "target_mask": jnp.asarray(np.arange(size_t) < target_lengths[:, None]),
        "source_mask": jnp.asarray(place < source_lengths[:, None]),
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"unaligned": "ignore"}, 1.21407416),
        ({}, 2.41804696),
        ({"loss": "squared_error"}, 0.49),
        ({"loss": "multiplication"}, -0.37156356),
        ({"loss": "multiplication_per_token"}, 2.35915544),
        # The second row learns [1/2, 1/2, 0], the first's, and the third nothing of the second's.
        ({"unaligned": "ignore", "step": "reads"}, -0.5 * np.log(0.2 * 0.5)),
        ({"unaligned": "ignore", "step": "reads", "loss": "squared_error"}, 0.5 * 0.18),
    ],
)
def test_golden(fields, expected):
    term, batch = Term(**fields), batch_of([LINKS])
    np.testing.assert_allclose(term.total(output_of([WEIGHTS]), batch), expected, rtol=1e-6)
    assert term.count(batch) == 3


BOTH = [("writes", "cross_entropy"), ("reads", "squared_error")]


@pytest.mark.parametrize(("step", "loss"), BOTH)
def test_a_two_way_aligner_is_taught_in_both_directions(step, loss):
    """The mean of both: each source token's weights are told its own links, as in the transpose."""
    rng, term = np.random.default_rng(0), Term(loss=loss, unaligned="ignore", step=step)
    links = rng.random((2, 4, 3)) < 0.4
    links[1, 3:] = links[1, :, 2:] = False
    batch = batch_of(links, [4, 3], [3, 2])
    weights, opposite = (rng.dirichlet(np.ones(n), (2, m)) for n, m in ((3, 4), (4, 3)))
    weights[1, :, 2:] = opposite[1, 2:] = opposite[1, :, 3:] = np.nan
    weights[1, 3:] = np.nan
    taught = np.zeros_like(links) if step == "reads" else links
    if step == "reads":
        taught[:, 1:] = links[:, :-1]
    totals = []
    for found, wanted in ((weights, taught), (opposite, taught.transpose(0, 2, 1))):
        total = 0.0
        for row, lengths in enumerate(((4, 3), (3, 2)) if found is weights else ((3, 4), (2, 3))):
            for k in range(lengths[0]):
                told = wanted[row, k, : lengths[1]].astype(float)
                if told.any():
                    expected, said = told / told.sum(), found[row, k, : lengths[1]]
                    total += (
                        -np.sum(expected * np.log(said + 1e-9)) if loss == "cross_entropy"
                        else 0.5 * np.sum((said - expected) ** 2)
                    )  # fmt: skip
        totals.append(total)
    output = output_of(weights)
    one_way = term.total(output, batch)
    np.testing.assert_allclose(one_way, totals[0], rtol=1e-5)
    both = ModelOutput(None, output.attention, {"opposite_alignment": jnp.asarray(opposite)})
    np.testing.assert_allclose(term.total(both, batch), np.mean(totals), rtol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_that_attends_to_nothing_is_asked_for_nothing(loss):
    term = Term(loss=loss, unaligned="ignore")
    silent = output_of([[[0.0, 0.0, 0.0], *WEIGHTS[1:]]])
    without = batch_of([[[0, 0, 0], *LINKS[1:]]])
    total = term.total(silent, batch_of([LINKS]))
    np.testing.assert_allclose(total, term.total(output_of([WEIGHTS]), without), rtol=1e-6)


def test_cross_entropy_is_least_at_the_entropy_of_the_links():
    term, batch = Term(unaligned="ignore"), batch_of([LINKS])
    expected = term.expected(output_of([WEIGHTS]), batch)
    floor = term.total(output_of(expected), batch)
    np.testing.assert_allclose(floor, 0.69314718, rtol=1e-6)


@pytest.mark.parametrize("step", ["writes", "reads"])
def test_gradient_of_cross_entropy_is_weights_minus_links(step, numpy_rng):
    """With respect to the scores of a softmax, where a token is supervised; else zero."""
    scores = jnp.asarray(numpy_rng.normal(size=(1, 3, 3)), jnp.float32)
    term, batch = Term(unaligned="ignore", step=step), batch_of([LINKS])
    gradient = jax.grad(
        lambda scores: term.total(output_of(jax.nn.softmax(scores)), batch)
    )(scores)[0]
    weights = np.exp(scores[0]) / np.exp(scores[0]).sum(-1, keepdims=True)
    gold = np.array([[0.5, 0.5, 0], [0, 0, 0], [0, 0, 1.0]])
    if step == "reads":
        gold = np.array([[0, 0, 0], [0.5, 0.5, 0], [0, 0, 0]])
    supervised = gold.sum(-1, keepdims=True)
    np.testing.assert_allclose(gradient, supervised * weights - gold, atol=1e-6)


def test_smoothing_golden():
    links = jnp.asarray([[[False, True, False, False, False]]])
    real, words = jnp.ones((1, 5), bool), jnp.arange(5)[None] < 4
    rows = normalize(smooth(links, real, words, 1.0))
    expected = [0.25827437, 0.42582245, 0.25827437, 0.0576288]
    np.testing.assert_allclose(rows[0, 0], [*expected, 0], rtol=1e-6)  # the last token is EOS
    cut = normalize(smooth(links, jnp.arange(5)[None] < 3, jnp.arange(5)[None] < 2, 1.0))
    np.testing.assert_allclose(cut[0, 0], np.array([*expected[:2], 0, 0, 0]) / sum(expected[:2]))


def test_smoothing_keeps_the_end_apart(numpy_rng):
    """Against NumPy; column 4 is EOS of the first source, column 2 that of the second."""
    lengths, width = [5, 3], 1.3
    mask = np.arange(6) < np.array(lengths)[:, None]
    links = (numpy_rng.random((2, 3, 6)) < 0.4) & mask[:, None, :]
    links[:, 0, 1] = links[0, 1, 4] = links[1, 1, 2] = True
    expected = np.zeros(links.shape)
    for row, end in enumerate(length - 1 for length in lengths):
        distance = np.arange(end)[:, None] - np.arange(end)[None]
        kernel = np.exp(-(distance**2) / (2 * width**2))
        expected[row, :, :end] = np.einsum("ti,is->ts", links[row, :, :end], kernel)
        expected[row, :, end] = links[row, :, end]
    words = np.arange(6) < np.array(lengths)[:, None] - 1
    found = smooth(jnp.asarray(links), jnp.asarray(mask), jnp.asarray(words), width)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_unaligned_tokens_inherit_from_the_nearest_and_the_right_one_of_two():
    links = np.zeros((1, 7, 7), bool)
    links[0, 1, 0] = links[0, 3, 4] = links[0, 3, 5] = True
    found = inherit(jnp.asarray(links), jnp.asarray([[True] * 6 + [False]]))
    first, second = links[0, 1], links[0, 3]
    expected = [first, first, second, second, second, second, np.zeros(7)]
    np.testing.assert_array_equal(found[0], expected)
    nothing = inherit(jnp.zeros((1, 3, 2), bool), jnp.ones((1, 3), bool))
    assert not nothing.any()


def test_words_of_a_sentence_without_links_learn_nothing_from_its_end():
    links = np.zeros((2, 4, 4), bool)
    links[:, 2, 3] = True  # EOS, of outputs of two words, whose third row it is
    links[1, 0, 1] = True
    mask = jnp.asarray([[True, True, True, False]] * 2)
    found = np.asarray(inherit(jnp.asarray(links), mask))
    np.testing.assert_array_equal(found[0], links[0])
    assert found[1].any(axis=-1).tolist() == [True, True, True, False]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("unaligned", ["inherit", "ignore"])
@pytest.mark.parametrize("step", ["writes", "reads"])
def test_total_is_the_sum_over_sentences_whatever_padding_holds(loss, unaligned, step, numpy_rng):
    term = Term(loss=loss, unaligned=unaligned, smoothing=0.7, step=step)
    target_lengths, source_lengths = [4, 2, 0, 3], [3, 5, 0, 2]
    inside = batch_of(np.ones((4, 4, 5)), target_lengths, source_lengths)
    inside = np.einsum("bt,bs->bts", inside["target_mask"], inside["source_mask"])
    links = (numpy_rng.random((4, 4, 5)) < 0.3) & inside
    links[3] = False
    weights = numpy_rng.dirichlet(np.ones(5), (4, 4))
    weights = np.where(inside, weights, 0)
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-30)
    batch = batch_of(links, target_lengths, source_lengths)
    alone = sum(
        term.total(
            output_of(weights[row : row + 1, :t, :s]), batch_of(links[row : row + 1, :t, :s])
        )
        for row, (t, s) in enumerate(zip(target_lengths, source_lengths, strict=True))
        if t
    )
    junk = np.where(inside, weights, np.nan)

    def total(weights):
        return term.total(output_of(weights), batch)

    value, gradient = jax.value_and_grad(total)(jnp.asarray(junk, jnp.float32))
    np.testing.assert_allclose(value, alone, rtol=1e-5)
    assert np.isfinite(gradient).all() and np.abs(gradient[0]).max() > 0
    assert np.all(np.asarray(gradient)[~inside] == 0)
    assert np.all(gradient[3] == 0)  # nobody has said anything about this sentence


def test_every_field_changes_the_loss(numpy_rng):
    weights = numpy_rng.dirichlet(np.ones(4), (1, 3))
    links = [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    batch, base = batch_of([links]), Term()
    total = base.total(output_of(weights), batch)
    changes = [{"loss": name} for name in LOSSES if name != base.loss]
    for change in [*changes, {"unaligned": "ignore"}, {"smoothing": 1.0}, {"step": "reads"}]:
        other = dataclasses.replace(base, **change).total(output_of(weights), batch)
        assert abs(other - total) > 1e-4
