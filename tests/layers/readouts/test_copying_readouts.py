"""Readouts that copy: against NumPy, step by step as all at once, and in every search."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.prefixes import PREFIX
from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.copying import FIELDS
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.readout import READOUTS, ReadoutSizes, Step
from attention_jax.models import MODELS, build_model
from attention_jax.models.ensemble import Ensemble, name_of
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from attention_jax.types import AttentionOutput, SpecialIds
from tests.conformance.test_rows_alone import X, batch
from tests.models.test_encoders_with_decoders import D, V, build, with_readout
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.teacher_forcing import compare_steps, rescored

NAMES = ("pointer_generator", "copynet", "convolutional_copy")
each = pytest.mark.parametrize("name", NAMES)
UNK = SpecialIds.UNK


@functools.cache
def case(name, decoder="luong"):
    """A model whose outputs of the first row copy a word that only it has."""
    model = with_readout(name, decoder)
    given = batch()
    given["target"] = given["target"].at[0, :2].set(jnp.asarray([V, V]))
    return model, drawn(model, 1), given


@functools.cache
def applied(name):
    model, params, given = case(name)
    return quick_jit(model.apply)(params, given)


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


@pytest.mark.parametrize("name", ["pointer_generator", "copynet"])
def test_against_numpy(name):
    """A readout by itself, with features, attention and words that are drawn."""
    rng, (rows, length, slots) = np.random.default_rng(2), (2, 3, 4)
    attention = MECHANISMS.config("luong_dot")()
    sizes = ReadoutSizes(
        V, D, D, memory_dim=D, mechanism=build_mechanism(attention, D, D, D), attention=attention,
        slot_symbols=V,
    )  # fmt: skip
    fields = {"selective_read": False} if name == "copynet" else {}
    readout = READOUTS.find(name).build(READOUTS.config(name)(**fields), sizes)
    params = jax.tree.map(lambda part: rng.normal(size=part.shape), dict(readout.parameters))
    features, word = rng.normal(size=(2, rows, length, D))
    annotations, weights = rng.normal(size=(rows, slots, D)), rng.normal(size=(rows, length, slots))
    weights = softmax(weights)
    words = np.array([[V, 4, V, 0], [5, V + 1, V, 0]])
    logits = features @ params["output"].T + params["output_bias"]
    expected = np.zeros((rows, length, V + X))
    if name == "copynet":
        scores = features @ np.tanh(annotations @ params["copy_kernel"]).swapaxes(1, 2)
        shares = np.exp(scores) * (words > 0)[:, None]
        total = np.exp(logits).sum(-1, keepdims=True) + shares.sum(-1, keepdims=True)
        expected[..., :V], shares = np.exp(logits) / total, shares / total
    else:
        switch = params["switch"]
        logit = weights @ annotations @ switch["context"] + features @ switch["features"]
        p_gen = 1 / (1 + np.exp(-(logit + word @ switch["word"] + switch["bias"])))
        shares = (1 - p_gen) * weights * (words > 0)[:, None]
        expected[..., :V] = (1 - shares.sum(-1, keepdims=True)) * softmax(logits)
    for row, slot in zip(*np.nonzero(words), strict=True):
        expected[row, :, words[row, slot]] += shares[row, :, slot]
    arrays = jax.tree.map(jnp.asarray, (params, features, word, annotations, weights, words))
    params, features, word, annotations, weights, words = arrays
    given = {"extended_source": words, "unknown_words": jnp.ones((rows, X), bool)}
    source = readout.prepare(params, Encoded(annotations, jnp.ones((rows, slots), bool)), given)
    source = jax.tree.map(lambda leaf: leaf[:, None], source)
    output = AttentionOutput(weights @ annotations, weights, weights)
    found = readout.predict(params, Step(features, output, word, source, word=word))
    np.testing.assert_allclose(np.exp(found.log_probs()), expected, rtol=1e-4, atol=1e-6)
    assert readout.input_ids(jnp.asarray([4, V, V + 1])).tolist() == [4, UNK, UNK]


@each
def test_the_gold_score_is_of_the_copied_word(name):
    """Not of unknown, which it is fed back as."""
    output, (_, _, given) = applied(name), case(name)
    log_prob = output.predictions.log_prob(given["target"])
    log_probs = output.predictions.log_probs()
    np.testing.assert_allclose(log_prob[0, :2], log_probs[0, :2, V], rtol=1e-5)
    assert (np.abs(log_prob[0, :2] - log_probs[0, :2, UNK]) > 1e-3).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-6)


@each
def test_steps_equal_the_whole(name):
    compare_steps(*case(name), applied(name).predictions)


@each
def test_losses_of_parts_add_up_to_that_of_the_whole(name):
    """As in gradient accumulation, whose parts share the ids beyond the vocabulary."""
    model, params, given = case(name)
    objective = build_objective({"nll": {"label_smoothing": 0.1}})

    @quick_jit
    def gradient(params, part, counts):
        return jax.grad(lambda p: objective(model.apply(p, part), part, counts=counts)[0])(params)

    counts = objective.counts(given)
    whole = gradient(params, given, counts)
    parts = [
        gradient(params, jax.tree.map(lambda a: a[row : row + 1], given), counts)  # noqa: B023
        for row in range(3)
    ]
    total = jax.tree.map(lambda *leaves: sum(leaves), *parts)
    for found, leaf in zip(jax.tree.leaves(total), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(found, leaf, rtol=1e-3, atol=1e-5)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(whole["decoder"]))


def test_without_it_words_beyond_the_vocabulary_are_fed_back_as_unknown():
    """Whatever ids targets have: they have no embedding of their own."""
    given = case("pointer_generator")
    np.testing.assert_allclose(after(*given, V), after(*given, UNK), rtol=1e-6)


def after(model, params, given, word):
    """Returns log p of each next token where the first one of the first row is another word."""
    target = given["target"].at[0, 0].set(word)
    return quick_jit(model.apply)(params, {**given, "target": target}).predictions.log_probs()


@pytest.mark.parametrize("decoder", ["luong", "bahdanau", "conditional_gru"])
def test_the_selective_read_is_fed_to_the_next_step(decoder):
    """A copied word tells where it is from; unknown words of other ids are embedded alike."""
    model, params, given = case("copynet", decoder)
    assert params["decoder"]["copy_kernel"].shape[0] == model.encoder.output_dim
    copied, unknown = after(model, params, given, V), after(model, params, given, UNK)
    np.testing.assert_allclose(copied[0, 0], unknown[0, 0], rtol=1e-6)
    assert np.abs(copied[0, 1, :V] - unknown[0, 1, :V]).max() > 1e-3


def test_selective_reads_need_steps_that_follow_from_one_another():
    with pytest.raises(ConfigError, match=r"selective_read: expected False .* 'transformer'"):
        build("concatenation", "transformer", readout={"name": "copynet"})


@functools.cache
def fond_of_copying(name, seed=1):
    """Parameters that copy what they attend to wherever they can, and end by themselves."""
    model, _, given = case(name)
    params = drawn(model, seed)
    bias = params["output_bias"].at[jnp.arange(SpecialIds.COUNT, V)].add(-9.0)
    params = {**params, "output_bias": bias.at[UNK].add(-9.0)}
    if name == "pointer_generator":
        switch = {**params["switch"], "bias": params["switch"]["bias"] - 2.0}
        return model, {**params, "switch": switch}, given
    return model, params, given


SEARCHES = {
    "greedy": SearchConfig(method="greedy", min_length_ratio=0.6),
    "beam": SearchConfig(method="beam", beam_size=3, num_hypotheses=3, min_length_ratio=0.6),
    "coverage": SearchConfig(beam_size=2, coverage_penalty="gnmt", coverage_stepwise=True),
    "sample": SearchConfig(method="sample", num_hypotheses=2, top_k=5, min_length_ratio=0.6),
    "no_word_twice": SearchConfig(beam_size=3, no_repeat_ngram_size=1, min_length_ratio=0.6),
}


def those(who, fond):
    """A pointer-generator with its parameters, or both of it and CopyNet."""
    members = [fond("pointer_generator"), fond("copynet", 2)]
    if who == "alone":
        return members[0][:2]
    params = {name_of(m): params for m, (_, params, _) in enumerate(members)}
    return Ensemble(tuple(model for model, _, _ in members), who), params


def searched(who, fond, how, **further):
    """Searches; the score of an output is that of teacher forcing."""
    (model, params), given = those(who, fond), case(NAMES[0])[-1]
    inputs = {name: given[name] for name in ("source", "source_mask", *FIELDS)}
    searcher = Searcher(model, SEARCHES[how])
    found = searcher.search(params, {**inputs, **further}, jax.random.key(0))
    apply = quick_jit(model.apply)
    for rank in range(found.tokens.shape[1]):
        total, _, _ = rescored(apply, params, given, found, rank)
        exists = np.asarray(found.lengths)[:, rank] > 0
        np.testing.assert_allclose(
            np.asarray(found.log_probs)[exists, rank], total[exists], rtol=1e-3, atol=1e-4
        )
    return np.asarray(found.tokens), np.asarray(found.lengths)


@pytest.mark.parametrize(
    ("how", "who"),
    [*((how, who) for how in SEARCHES for who in ("alone", "log_linear")), ("beam", "mean")],
)
def test_every_search_copies_and_scores_what_it_has_copied(how, who):
    """The score of an output is that of teacher forcing, extended ids and n-best lists included."""
    tokens, lengths = searched(who, fond_of_copying, how)
    assert (tokens[0] == V).any() and not (tokens[1:] >= V).any() and (tokens < V + 1).all()
    if how == "no_word_twice":
        for row in range(3):
            written = tokens[row, 0, : lengths[row, 0]]
            assert len(set(written.tolist())) == len(written)


@pytest.mark.parametrize(
    ("how", "who"),
    [*((how, "alone") for how in SEARCHES), ("beam", "log_linear"), ("beam", "mean")],
)
def test_a_word_that_is_forced_can_be_one_that_only_the_source_has(how, who):
    """Twice here, which nothing that a search chooses would be where no word may be repeated."""
    prefix = jnp.asarray([[V, V, 5, 0], [0, 0, 0, 0], [5, 4, 0, 0]])
    tokens, lengths = searched(who, fond_of_copying, how, **{PREFIX.name: prefix})
    exists = lengths[0] > 0
    assert exists[0] and (tokens[0, exists, :3] == [V, V, 5]).all()
    assert (tokens[2, lengths[2] > 0, :2] == [5, 4]).all()


@functools.cache
def fond_of_unknown(name, seed=1):
    """Parameters that write the unknown word wherever they may."""
    model, _, given = case(name)
    params = drawn(model, seed)
    params = {**params, "output_bias": params["output_bias"].at[UNK].add(9.0)}
    if name == "pointer_generator":
        switch = {**params["switch"], "bias": params["switch"]["bias"] + 4.0}
        return model, {**params, "switch": switch}, given
    return model, params, given


@pytest.mark.parametrize(
    ("how", "who"),
    [("greedy", "alone"), ("beam", "alone"), ("sample", "alone"), ("beam", "log_linear")],
)
def test_unknown_is_written_only_where_the_vocabulary_lacks_nothing(how, who):
    """The first source has a word of its own, which an unknown word would stand for."""
    tokens, lengths = searched(who, fond_of_unknown, how)
    assert (lengths[0] > 1).any() and not (tokens[0] == UNK).any()
    assert (tokens[2, 0] == UNK).any()


@each
def test_transformers_copy_too(name):
    """The attention of the last layer is the pointer; positions are those of the source."""
    model, params, given = case(name, "transformer")
    output = quick_jit(model.apply)(params, given)
    probabilities = np.exp(output.predictions.log_probs())
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-6)
    assert (probabilities[0, :, V] > 0).all() and not probabilities[1:, :, V:].any()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"attention": {"name": "none"}}, "attention.name: expected one whose weights say"),
        ({"name": "bidirectional"}, "readout.name: expected one that reads no fields of its own"),
    ],
)
def test_models_without_anything_to_copy_are_refused(fields, problem):
    values = {
        "name": "encoder_decoder", "readout": {"name": "pointer_generator"},
        "decoder": {"name": "luong", "bridge": "mean", "hidden_dim": D}, **fields,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=problem):
        build_model(typed(MODELS.config(values["name"]), values, "config.model"), V, V)


def test_a_language_model_has_no_source_to_copy_from():
    values = {"name": "language_model", "readout": {"name": "copynet"}}
    with pytest.raises(ConfigError, match=r"readout.name: expected a model with a source"):
        build_model(typed(MODELS.config("language_model"), values, "config.model"), V, V)
