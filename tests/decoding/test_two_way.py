"""Two-way aligners: links of both directions from one run, wherever alignments are asked for."""

import jax
import numpy as np
import pytest

from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.analysis.matrices import attention_matrices
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.decoding.attention_aligner import linked_pairs
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.word_units import forced_words, split_words
from attention_jax.errors import ConfigError
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.symmetrized_attention import agreed_links
from tests.models.test_encoders_with_decoders import build
from tests.training.two_sources import two_sources_run

ALIGNER = {"aligner": "full_context", "two_way": True}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both") / "run"
    run, task = two_sources_run(folder, transformer=False, alone=True, **ALIGNER)
    return run, task.split("test")


def between_words(opposite):
    """Weights between words of one token each: read a step later, and without either EOS."""
    read = np.concatenate([opposite[:, 1:], np.zeros((len(opposite), 1))], axis=1)[:-1, :-1]
    total = read.sum(axis=1, keepdims=True)
    return np.divide(read, total, out=np.zeros_like(read), where=total > 0)


def test_forced_decoding_has_the_weights_of_both_directions(world):
    run, split = world
    forced = forced_attention(run, split)
    for batch in make_eval_batches(split, run.config.data):
        output = jax.jit(run.model.apply)(run.params, batch)
        for row, index in enumerate(batch["index"]):
            if index >= 0:
                length, size = forced[index].weights.shape
                expected = output.outputs["opposite_alignment"][row, :size, :length]
                np.testing.assert_allclose(forced[index].opposite, expected, atol=1e-6)
                np.testing.assert_allclose(forced[index].opposite.sum(-1), 1, rtol=1e-5)
    words = forced_words(run, split, split_words(split), run.alignment_shift)
    assert run.alignment_shift == 1
    for one, each in zip(attention_matrices(run, split), forced, strict=True):
        np.testing.assert_array_equal(one.heads["opposite_alignment"], each.opposite[None])
    for one, each in zip(words, forced, strict=True):
        expected = between_words(np.float64(each.opposite))
        np.testing.assert_allclose(one.turned.linking.weights, expected, atol=1e-6)
        assert one.turned.linking is not one.turned


def test_pairs_are_linked_in_both_directions(world):
    run, split = world
    words = forced_words(run, split, split_words(split), run.alignment_shift)
    pairs = [*linked_pairs(run, split.sources, split.targets)]
    for pair, one in zip(pairs, words, strict=True):
        np.testing.assert_allclose(pair.weights.whole, one.linking.words.whole, atol=1e-6)
        turned = pair.turned
        np.testing.assert_allclose(turned.weights.whole, one.turned.linking.words.whole, atol=1e-6)
        assert turned.turned.weights is pair.weights and turned.mean_log_prob == pair.mean_log_prob
    with pytest.raises(ValueError, match="expected a pair of a two-way aligner"):
        pairs[0]._replace(opposite=None).turned  # noqa: B018


def test_gold_links_are_compared_with_both_directions(world):
    run, split = world
    golds = {number: marked_links(sure=[(0, 0), (1, 1)]) for number in range(len(split))}
    found = compare_with_gold(run, split, GoldLinks(golds))
    scores = found.scores()
    agreed = [
        agreed_links(one.linking.words, other.linking.words)
        for one, other in zip(found.forward, found.reverse, strict=True)
    ]
    counts = count_links(agreed, [golds[number] for number in sorted(golds)])
    assert scores["aer_geometric_mean"] == counts.aer
    assert {"aer", "aer_reverse", "aer_grow_diag_final_and", "aer_product"} <= scores.keys()


def test_positions_that_an_encoder_merges_are_refused():
    aligner = {"name": "full_context", "hidden_dim": 3, "attention_dim": 5}
    build("pyramidal", "luong", aligner=aligner)
    with pytest.raises(ConfigError, match="aligner.two_way: expected False beside an encoder"):
        build("pyramidal", "luong", aligner={**aligner, "two_way": True})
