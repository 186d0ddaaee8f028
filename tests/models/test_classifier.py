"""The document classifier: its equations, rows alone, what a search writes, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.layers.encoder import ENCODERS
from attention_jax.models import MODELS, build_model
from attention_jax.search import SearchConfig
from attention_jax.types import Call, SpecialIds
from tests.models.test_encoders_with_decoders import D, small
from tests.parameters import drawn
from tests.quick import quick_jit

V, LABELS = 9, 3
SENTENCES, WORDS = (3, 1), ((4, 1, 2), (3,))  # of two documents, in a batch of 3 x 4
PLAIN = {"name": "concatenation", "positions": "none"}


def model(encoder=PLAIN, pooling="attention", **fields):
    level = {
        "encoder": encoder,
        "pooling": {"name": pooling, **({"attention_dim": 3} if pooling == "attention" else {})},
    }
    values = {
        "name": "classifier", "embedding_dim": D, "words": level, "sentences": level, **fields
    }  # fmt: skip
    config = typed(MODELS.config("classifier"), values, "config.model")
    return build_model(config, V, SpecialIds.COUNT + LABELS)


def batch():
    rng = np.random.default_rng(0)
    ids = np.zeros((2, 3, 4), np.int32)
    for row, lengths in enumerate(WORDS):
        for sentence, length in enumerate(lengths):
            ids[row, sentence, :length] = rng.integers(SpecialIds.COUNT, V, size=length)
    mask = np.arange(3) < np.array(SENTENCES)[:, None]
    target = np.array([[4], [6]], np.int32)
    arrays = {"source": ids, "source_mask": mask, "target": target}
    return {**{k: jnp.asarray(v) for k, v in arrays.items()}, "target_mask": jnp.ones((2, 1), bool)}


def alone(given, row):
    """Returns a document by itself, without padding."""
    sentences, words = SENTENCES[row], max(WORDS[row])
    return {
        "source": given["source"][row : row + 1, :sentences, :words],
        "source_mask": given["source_mask"][row : row + 1, :sentences],
        "target": given["target"][row : row + 1],
        "target_mask": given["target_mask"][row : row + 1],
    }


def pooled(params, values):
    """Attention with a learnt query, of one sequence in NumPy."""
    scores = np.tanh(values @ params["kernel"] + params["bias"]) @ params["query"]
    shares = np.exp(scores) / np.exp(scores).sum()
    return shares @ values, shares


def test_label_words_and_sentences_are_those_of_the_equations():
    built, given = model(), batch()
    params = drawn(built, 1)
    exact = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    output = built.apply(params, given)
    for row, lengths in enumerate(WORDS):
        sentences = []
        for place, length in enumerate(lengths):
            words = exact["source_embedding"][np.asarray(given["source"])[row, place, :length]]
            summary, shares = pooled(exact["words"]["pooling"], words)
            sentences.append(summary)
            weights = output.outputs["word_weights"][row, place]
            np.testing.assert_allclose(weights[:length], shares, rtol=1e-4)
            assert not np.asarray(weights[length:]).any()
        document, shares = pooled(exact["sentences"]["pooling"], np.array(sentences))
        weights = output.outputs["sentence_weights"][row]
        np.testing.assert_allclose(weights[: len(lengths)], shares, rtol=1e-4)
        np.testing.assert_allclose(output.attention.weights[row, 0], weights)
        logits = document @ exact["label_kernel"] + exact["label_bias"]
        expected = logits - np.log(np.exp(logits).sum())
        found = np.asarray(output.predictions.log_probs()[row, 0])
        assert (found[: SpecialIds.COUNT] == -np.inf).all()
        np.testing.assert_allclose(found[SpecialIds.COUNT :], expected, rtol=1e-4, atol=1e-5)


@functools.cache
def of_encoder(name):
    fields = {key: value for key, value in small(ENCODERS.config(name)).items()}
    built = model({"name": name, **fields})
    return built, drawn(built, 1)


@pytest.mark.parametrize("name", ENCODERS.names())
def test_a_document_alone_is_as_in_its_batch_with_every_encoder(name):
    built, params = of_encoder(name)
    given, apply = batch(), quick_jit(built.apply)
    together = apply(params, given)
    one = apply(params, alone(given, 1))
    np.testing.assert_allclose(
        one.predictions.log_probs()[0], together.predictions.log_probs()[1], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        one.outputs["word_weights"][0, 0], together.outputs["word_weights"][1, 0, :3], rtol=1e-4
    )


@pytest.mark.parametrize("pooling", ["attention", "average", "maximum"])
def test_every_parameter_learns_and_no_padding_does(pooling):
    built, given = model({"name": "recurrent", "hidden_dim": D}, pooling), batch()

    def loss(params):
        output = built.apply(params, given, Call(True, jax.random.key(0)))
        return output.predictions.cross_entropy(given["target"], given["target_mask"]).sum()

    gradient = quick_jit(jax.grad(loss))(drawn(built, 2))
    used = np.unique(np.asarray(given["source"]))[1:]  # PAD is the first
    table = np.asarray(gradient.pop("source_embedding"))
    assert np.abs(table[used]).sum(-1).all()
    assert not np.delete(table, used, axis=0).any()
    assert all(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient))


def test_words_that_are_dropped_are_read_as_unknown():
    built, given = model(word_dropout=0.5), batch()
    params = drawn(built, 1)
    one = built.apply(params, given).predictions.log_probs()
    other = built.apply(params, given, Call(True, jax.random.key(0))).predictions.log_probs()
    unknown = {**given, "source": jnp.where(given["source"] > 0, SpecialIds.UNK, 0)}
    assert not np.allclose(one[..., 4:], other[..., 4:])
    # Whatever was kept, a batch of unknown words stays what it is.
    same = [built.apply(params, unknown, call) for call in (Call(), Call(True, jax.random.key(0)))]
    np.testing.assert_array_equal(*(out.predictions.log_probs() for out in same))


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_a_search_writes_the_most_probable_label_and_ends(method):
    built, given = model(), batch()
    params = drawn(built, 1)
    expected = np.asarray(built.apply(params, given).predictions.log_probs()[:, 0])
    inputs = {name: given[name] for name in ("source", "source_mask")}
    number = 3 if method == "beam" else 1
    config = SearchConfig(
        method=method, beam_size=3, num_hypotheses=number, length_normalization="none"
    )
    found = Searcher(built, config).search(params, inputs, jax.random.key(0))
    for row in range(2):
        ranked = np.argsort(-expected[row])[:number]
        np.testing.assert_array_equal(found.tokens[row, :, 0], ranked)
        assert (np.asarray(found.tokens[row, :, 1]) == SpecialIds.EOS).all()
        assert (np.asarray(found.lengths[row]) == 2).all()
        np.testing.assert_allclose(found.log_probs[row], expected[row][ranked], rtol=1e-5)


@pytest.mark.parametrize("axis", ["rows", "sentences", "words"])
def test_a_batch_of_nothing_has_shapes_and_gradients(axis):
    given, built = batch(), model({"name": "recurrent", "hidden_dim": 2})
    sizes = {"rows": (0, 3, 4), "sentences": (2, 0, 4), "words": (2, 3, 0)}[axis]
    given["source"] = jnp.zeros(sizes, jnp.int32)
    given["source_mask"] = jnp.ones(sizes[:2], bool)
    given |= {name: given[name][: sizes[0]] for name in ("target", "target_mask")}

    def loss(params):
        output = built.apply(params, given)
        return output.predictions.cross_entropy(given["target"], given["target_mask"]).sum()

    shapes = jax.eval_shape(built.init, jax.random.key(0))
    gradient = jax.eval_shape(jax.grad(loss), shapes)
    assert jax.tree.map(jnp.shape, gradient) == jax.tree.map(jnp.shape, shapes)


def test_bfloat16_activations_keep_float32_predictions():
    built = model(dtype="bfloat16")
    output = built.apply(drawn(built, 1), batch())
    assert output.predictions.log_probs().dtype == jnp.float32
    assert output.outputs["word_weights"].dtype == jnp.float32
