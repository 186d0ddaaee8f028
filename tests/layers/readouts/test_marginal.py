"""The readout that sums over alignments: every path and every output, one by one, in NumPy."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.alignment import ALIGNMENTS
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.readout import READOUTS, ReadoutSizes, Step
from attention_jax.ops.cross_entropy import smoothed_target
from attention_jax.search import SearchConfig, search
from attention_jax.types import AttentionOutput, SpecialIds
from tests.ops.test_lattices import J, matrix
from tests.quick import quick_jit

B, S, V, D, H, L = 2, 3, 7, 4, 5, 3
SLOTS = (3, 2)
MASK = np.arange(S) < np.asarray(SLOTS)[:, None]
NAMES = ("independent", "monotonic", "relative_jumps", "segments")
every_alignment = pytest.mark.parametrize("name", NAMES)
WORDS = [id for id in range(V) if id not in (SpecialIds.PAD, SpecialIds.BOS, SpecialIds.EOS)]
# All outputs of up to three tokens, with their EOS.
OUTPUTS = [
    (*words, SpecialIds.EOS)
    for length in range(L)
    for words in itertools.product(WORDS, repeat=length)
]


class Toy:
    """The readout over states that are a recurrence of the tokens alone, as a decoder's are.

    `log_prob` is the same in NumPy, from the definitions, path by path.
    """

    def __init__(self, name, is_tied=False):
        fields = {"max_jump": J - 1} if name == "relative_jumps" else {}
        alignment = ALIGNMENTS.config(name)(**fields)
        attention = MECHANISMS.config("none" if fields else "luong_dot")()
        mechanism = build_mechanism(attention, D, D, D)
        sizes = ReadoutSizes(V, D, D, is_tied, D, mechanism, attention)
        config = READOUTS.config("marginal")(hidden_dim=H, alignment=alignment)
        self.name, self.readout = name, READOUTS.find("marginal").build(config, sizes)
        rng = np.random.default_rng(5)
        draw = lambda parameter: rng.normal(size=parameter.shape)  # noqa: E731
        self.params = jax.tree.map(draw, dict(self.readout.parameters))
        self.embedding, self.recurrent = rng.normal(size=(V, D)), rng.normal(size=(D, D))
        self.annotations = rng.normal(size=(B, S, D)) * MASK[..., None]

    @property
    def arrays(self):
        tree = self.params, self.embedding, self.recurrent, self.annotations
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), tree)

    def source(self):
        params, _, _, annotations = self.arrays
        return self.readout.prepare(params, Encoded(annotations, jnp.asarray(MASK)), {})

    def _read(self, hidden, source, **rest):
        """Returns a step whose scores are the products of states and annotations."""
        _, embedding, _, annotations = self.arrays
        scores = hidden @ annotations.mT
        attention = AttentionOutput(hidden, jax.nn.softmax(scores), scores)
        return Step(hidden, attention, embedding, source, **rest)

    def run(self, targets, mask):
        """Teacher forcing."""
        params, embedding, recurrent, _ = self.arrays
        hidden, states = jnp.zeros((B, D)), []
        for words in (jnp.full(B, SpecialIds.BOS), *targets.T[:-1]):
            hidden = jnp.tanh(hidden @ recurrent + embedding[words])
            states.append(hidden)
        source = jax.tree.map(lambda leaf: leaf[:, None], self.source())
        return self.readout.run(params, self._read(jnp.stack(states, 1), source), targets, mask)

    def start(self):
        params, *_ = self.arrays
        carried = self.readout.init_state(params, self.source())
        state = {"hidden": jnp.zeros((B, D)), "readout": carried}
        return jax.tree.map(lambda leaf: leaf[:, None], state)

    def step(self, state, tokens):
        """One step of a search."""
        params, embedding, recurrent, _ = self.arrays
        hidden = jnp.tanh(state["hidden"] @ recurrent + embedding[tokens])
        source = jax.tree.map(lambda leaf: leaf[:, None], self.source())
        step = self._read(hidden, source, written=tokens, state=state["readout"])
        found = self.readout.step(params, step)
        state = {"hidden": hidden, "readout": found.state}
        return found.predictions, found.attention.weights, state

    def log_prob(self, row, tokens):
        """Returns (log p of a beginning of an output, posterior of its slots), path by path."""
        slots, params = SLOTS[row], self.params
        annotations, hidden, steps = self.annotations[row, :slots], np.zeros(D), []
        table = params.get("output", self.embedding)
        if "output_projection" in params:
            table = table @ params["output_projection"].T
        weights, jumps = params["output_hidden"], params["alignment"]
        for word, token in zip((SpecialIds.BOS, *tokens), tokens, strict=False):
            hidden = np.tanh(hidden @ self.recurrent + self.embedding[word])
            scores = annotations @ hidden + jumps.get("gate_bias", 0.0)
            if self.name == "relative_jumps":
                scores = annotations @ jumps["annotation"] + hidden @ jumps["features"]
                scores += jumps["bias"]
            layer = np.tanh(
                annotations @ weights["annotation"] + hidden @ weights["features"] + weights["bias"]
            )
            logits = layer @ table.T + params["output_bias"]
            if self.name == "segments":
                logits[:-1, SpecialIds.EOS] = -np.inf
            probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
            steps.append((matrix(self.name, scores), probs[:, token]))
        occupancy = np.zeros((len(tokens), slots))
        for path in itertools.product(range(slots), repeat=len(tokens)):
            ways = zip((0, *path), path, steps, strict=False)
            probability = np.prod([moves[k, i] * probs[i] for k, i, (moves, probs) in ways])
            occupancy[np.arange(len(tokens)), path] += probability
        return np.log(occupancy[0].sum()), occupancy / occupancy[0].sum()


toy = functools.cache(Toy)


def forced(name, is_tied=False):
    """Returns the toy, targets of both rows, their mask, and what teacher forcing makes of them."""
    targets = jnp.asarray([[5, 4, 3, SpecialIds.EOS], [6, SpecialIds.EOS, 0, 0]])
    mask = jnp.arange(4) < jnp.asarray([4, 2])[:, None]
    case = toy(name, is_tied)

    @quick_jit
    def everything():
        predictions, attention = case.run(targets, mask)
        smoothed = predictions.cross_entropy(targets, mask, label_smoothing=0.3)
        return predictions.log_prob(targets), predictions.log_probs(), attention, smoothed

    return case, np.asarray(targets), np.asarray(mask), jax.tree.map(np.asarray, everything())


@pytest.mark.parametrize(
    ("name", "is_tied"), [*((name, False) for name in NAMES), ("segments", True)]
)
def test_known_targets_have_the_sum_of_all_paths(name, is_tied):
    case, targets, mask, (log_prob, log_probs, attention, smoothed) = forced(name, is_tied)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1.0, rtol=1e-5)
    gold = np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(gold, log_prob, rtol=1e-5)
    for row, length in enumerate(mask.sum(-1)):
        for end in range(1, length + 1):
            expected, posterior = case.log_prob(row, targets[row, :end])
            np.testing.assert_allclose(log_prob[row, :end].sum(), expected, rtol=1e-4)
        shown = attention.weights[row]
        np.testing.assert_allclose(shown[:length, : SLOTS[row]], posterior, rtol=1e-3, atol=1e-6)
        assert not shown[length:].any() and not shown[:, SLOTS[row] :].any()
    np.testing.assert_allclose(attention.aux["prior"].sum(-1), 1.0, rtol=1e-5)
    peak, floor = smoothed_target(V, 0.3, "vocabulary")
    possible = np.where(np.isfinite(log_probs), log_probs, 0.0)
    expected = np.where(mask, -peak * log_prob - floor * possible.sum(-1), 0.0)
    np.testing.assert_allclose(smoothed, expected, rtol=1e-4, atol=1e-6)


@functools.cache
def searched(name, method, size=1):
    config = SearchConfig(
        method=method, beam_size=size, num_hypotheses=1 if method == "greedy" else size,
        max_length_factor=0, max_length_constant=L, length_normalization="none",
    )  # fmt: skip
    case, lengths = toy(name), jnp.asarray(SLOTS)
    run = quick_jit(lambda key: search(case.step, case.start(), config, lengths, L, key))
    return run(jax.random.key(0))


def texts(found, row):
    """Returns the outputs of a row with their log-probabilities, best first."""
    tokens, lengths, scores = map(np.asarray, (found.tokens, found.lengths, found.log_probs))
    outputs = [tuple(map(int, ids[:n])) for ids, n in zip(tokens[row], lengths[row], strict=True)]
    return list(zip(outputs, scores[row], strict=True))


@every_alignment
def test_a_wide_beam_finds_every_output_once(name):
    """The best by log p(y | x) first; none is there twice for two alignments, none is too long."""
    found = searched(name, "beam", len(OUTPUTS))
    for row in range(B):
        expected = {output: toy(name).log_prob(row, output)[0] for output in OUTPUTS}
        outputs = [(text, score) for text, score in texts(found, row) if text]
        assert sorted(text for text, _ in outputs) == sorted(OUTPUTS)
        for text, score in outputs:
            np.testing.assert_allclose(score, expected[text], rtol=1e-4)
        assert outputs[0][0] == max(expected, key=expected.get)


@every_alignment
def test_greedy_search_takes_the_best_token_of_all_paths(name):
    found = searched(name, "greedy")
    for row in range(B):
        output = ()
        while SpecialIds.EOS not in output:
            tokens = [SpecialIds.EOS] if len(output) == L - 1 else [*WORDS, SpecialIds.EOS]
            scores = {token: toy(name).log_prob(row, (*output, token))[0] for token in tokens}
            output += (max(scores, key=scores.get),)
        ((text, score),) = texts(found, row)
        assert text == output
        np.testing.assert_allclose(score, toy(name).log_prob(row, output)[0], rtol=1e-4)


@every_alignment
def test_samples_have_the_log_probabilities_of_all_paths(name):
    for row, outputs in enumerate(texts(searched(name, "sample", 6), row) for row in range(B)):
        assert len({text for text, _ in outputs}) > 1
        for text, score in outputs:
            assert text in OUTPUTS
            np.testing.assert_allclose(score, toy(name).log_prob(row, text)[0], rtol=1e-4)


@every_alignment
def test_a_search_shows_where_the_next_token_may_be_written_from(name):
    """Before it is chosen; and it carries no more than a few numbers for each slot."""
    case, found = toy(name), searched(name, "greedy")
    weights, lengths = np.asarray(found.weights[:, 0]), np.asarray(found.lengths[:, 0])
    for row, (slots, length) in enumerate(zip(SLOTS, lengths, strict=True)):
        np.testing.assert_allclose(weights[row, :length].sum(-1), 1.0, rtol=1e-5)
        assert not weights[row, :, slots:].any()
    carried = sum(leaf.size for leaf in jax.tree.leaves(case.start()["readout"]))
    assert carried == (0 if name == "independent" else B * (2 * S + H))
