"""Mechanisms that carry what has been attended to, against loops in NumPy float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS

B, T, S, DQ, DK, DV, DA = 2, 4, 5, 3, 4, 2, 6
SIZES = {"source_vocabulary_size": 8, "word_dim": 2}
LENGTHS = (5, 3)
CASES = {
    "coverage_vector": {},
    "linguistic_coverage": {},
    "linguistic_coverage fertility": {"max_fertility": 2.0},
    "neural_coverage tanh": {"cell": "tanh", "coverage_dim": 2},
    "neural_coverage gru": {"cell": "gru", "coverage_dim": 3},
    "coverage_embedding gru": {"coverage_update": "gru", "coverage_dim": 2},
    "coverage_embedding subtract": {"coverage_update": "subtract", "coverage_dim": 3},
    "location_aware": {"filters": 2, "reach": 1},
    "structural_bias": {},
    "structural_bias position": {"markov": False, "fertility": False},
    "structural_bias boundary": {"boundary": True},
    "structural_bias markov": {"position": False, "fertility": False, "reach": 2},
    "structural_bias fertility": {"position": False, "markov": False, "reach": 0},
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Reference:
    """One sentence: what is carried, and what it adds to the hidden layer of each slot."""

    def __init__(self, name, fields, params, keys, ids):
        self.name, self.fields, self.params, self.keys = name.split()[0], fields, params, keys
        size = len(keys)
        self.previous, self.sum = np.zeros(size), np.zeros(size)
        self.vectors = np.zeros((size, fields.get("coverage_dim", 0)))
        if self.name == "coverage_embedding":
            self.vectors = params["coverage_table"][ids]
        self.fertility = np.ones(size)
        if "max_fertility" in fields:
            self.fertility = fields["max_fertility"] * sigmoid(keys @ params["fertility_vector"])

    def added(self, slot, step):
        p, size = self.params, len(self.keys)
        if self.name in ("neural_coverage", "coverage_embedding"):
            return self.vectors[slot] @ p["coverage_kernel"]
        if self.name == "location_aware":
            reach = self.fields["reach"]
            found = np.zeros(self.fields["filters"])
            for offset in range(-reach, reach + 1):
                if 0 <= slot + offset < size:
                    found += self.previous[slot + offset] * p["location_filters"][offset + reach]
            return found @ p["location_kernel"] + p["bias"]
        if self.name != "structural_bias":
            bias = p.get("bias", 0)
            return self.sum[slot] * p["coverage_kernel"][0] + bias
        total = np.zeros(DA)
        if "position_kernel" in p:
            first = self.fields.get("boundary", 0)
            psi = np.log([1 + step, 1 + slot + first, 1 + size + first])
            total += psi @ p["position_kernel"]
        reach = self.fields.get("reach", 1)
        for kernel, values in (("markov_kernel", self.previous), ("fertility_kernel", self.sum)):
            if kernel in p:
                window = [
                    values[place] if 0 <= place < size else 0.0
                    for place in range(slot - reach, slot + reach + 1)
                ]
                total += window @ p[kernel]
        return total

    def update(self, weights, query):
        p = self.params
        self.previous, self.sum = weights, self.sum + weights / self.fertility
        if self.name != "neural_coverage":
            return
        for slot, old in enumerate(self.vectors.copy()):
            entering = (
                weights[slot] * p["coverage_weight"]
                + self.keys[slot] @ p["coverage_key"]
                + query @ p["coverage_query"]
            )
            if self.fields["cell"] == "tanh":
                self.vectors[slot] = np.tanh(old @ p["coverage_recurrent"] + entering)
            else:
                self.vectors[slot] = self.gated(old, entering)

    def observe(self, word):
        """The word written after the last update; there is none before the first."""
        if self.name != "coverage_embedding":
            return
        word = word @ self.params["coverage_word"]
        for slot, (old, weight) in enumerate(zip(self.vectors.copy(), self.previous, strict=True)):
            if self.fields["coverage_update"] == "subtract":
                self.vectors[slot] = old - weight * word
            else:
                self.vectors[slot] = self.gated(old, word + weight * self.params["coverage_weight"])

    def gated(self, old, entering):
        depth, recurrent = len(old), self.params["coverage_recurrent"]
        gates = entering[: 2 * depth] + old @ recurrent[:, : 2 * depth]
        reset, keep = np.split(sigmoid(gates), 2)
        new = np.tanh(entering[2 * depth :] + (reset * old) @ recurrent[:, 2 * depth :])
        return keep * old + (1 - keep) * new


def attend(name, fields, params, query, keys, values, ids, words):
    reference, contexts, rows = Reference(name, fields, params, keys, ids), [], []
    for step in range(T):
        if step:
            reference.observe(words[step])
        scores = []
        for slot in range(len(keys)):
            hidden = query[step] @ params["query_kernel"] + keys[slot] @ params["key_kernel"]
            hidden = np.tanh(hidden + reference.added(slot, step))
            scores.append(hidden @ params["vector"])
        weights = np.exp(scores) / np.exp(scores).sum()
        reference.update(weights, query[step])
        rows.append(weights)
        contexts.append(weights @ values)
    return np.asarray(contexts), np.asarray(rows)


class Case:
    """A mechanism with parameters and inputs, in float64; the second source is the shorter one."""

    def __init__(self, name, rng):
        self.name, self.fields = name, CASES[name]
        config = MECHANISMS.config(name.split()[0])(attention_dim=DA, **self.fields)
        self.mechanism = build_mechanism(config, DQ, DK, DV, **SIZES)
        self.params = {
            key: 0.7 * rng.normal(size=parameter.shape)
            for key, parameter in sorted(self.mechanism.parameters.items())
        }
        self.query, self.keys = rng.normal(size=(B, T, DQ)), rng.normal(size=(B, S, DK))
        self.values = rng.normal(size=(B, S, DV))
        self.ids = rng.integers(0, SIZES["source_vocabulary_size"], size=(B, S))
        self.words = rng.normal(size=(B, T, SIZES["word_dim"]))

    def output(self, params):
        """Returns what the mechanism puts out with these parameters."""
        f32 = lambda array: jnp.asarray(array, jnp.float32)  # noqa: E731
        mask = jnp.asarray(np.arange(S) < np.asarray(LENGTHS)[:, None])
        single = {key: f32(value) for key, value in params.items()}
        aux = {"source_ids": jnp.asarray(self.ids)}
        sources = sequence(f32(self.keys), mask, values=f32(self.values), aux=aux)
        memory = self.mechanism.make_memory(single, sources)
        observed = {"written_word": f32(self.words)}
        return self.mechanism.attend(single, f32(self.query), memory, observed=observed)[0]

    def reference(self, params):
        """Returns the context and the weights of each sentence, without padding."""
        return [
            attend(
                self.name, self.fields, params, self.query[row], self.keys[row, :length],
                self.values[row, :length], self.ids[row, :length], self.words[row],
            )
            for row, length in enumerate(LENGTHS)
        ]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mechanism_equals_the_equations(name, numpy_rng):
    case = Case(name, numpy_rng)
    output = case.output(case.params)
    for row, (context, weights) in enumerate(case.reference(case.params)):
        real = slice(0, LENGTHS[row])
        np.testing.assert_allclose(output.context[row], context, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(output.weights[row, :, real], weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_gradients_flow_through_what_is_carried(name, numpy_rng):
    """Of the last query alone: all it owes to earlier weights is in what is carried to it."""
    case = Case(name, numpy_rng)
    wanted = numpy_rng.normal(size=DV)
    direction = {key: numpy_rng.normal(size=value.shape) for key, value in case.params.items()}

    def along(step):
        moved = {key: value + step * direction[key] for key, value in case.params.items()}
        return case.reference(moved)[0][0][-1] @ wanted

    expected = (along(1e-6) - along(-1e-6)) / 2e-6
    params = {key: jnp.asarray(value, jnp.float32) for key, value in case.params.items()}
    gradient = jax.jit(jax.grad(lambda params: case.output(params).context[0, -1] @ wanted))(params)
    found = sum((np.asarray(gradient[key]) * direction[key]).sum() for key in direction)
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_structural_bias_rejects_fields_without_effect():
    config = MECHANISMS.config("structural_bias")
    with pytest.raises(ValueError, match="expected one of them, found none; attention without"):
        config(position=False, markov=False, fertility=False)
    with pytest.raises(ValueError, match="boundary: expected position beside it, found none"):
        config(position=False, boundary=True)
    with pytest.raises(ValueError, match="reach: expected markov or fertility beside it, found 2"):
        config(markov=False, fertility=False, reach=2)


@pytest.mark.parametrize(
    ("logit", "dtype", "rtol"),
    [(-5, "float32", 1e-5), (-45, "float32", 1e-4), (-70, "float32", 1e-4), (-45, "bfloat16", 0.02),
     (-12, "float16", 0.01)],
)  # fmt: skip
def test_gradient_of_a_fertility_close_to_zero(logit, dtype, rtol):
    """One word's coverage of each slot is w (1 + exp(-logit)) / 2: finite, and so is its gradient.

    The kernel is as small as the coverage is large, so that what is learned of it is not.
    """
    config = MECHANISMS.config("linguistic_coverage")(attention_dim=1, max_fertility=2.0)
    mechanism = build_mechanism(config, 1, 2, 1)
    scale, depth = np.exp(float(logit)), jnp.dtype(dtype)
    array = lambda value: jnp.asarray(value, depth)  # noqa: E731
    params = {
        "query_kernel": array([[1.0]]), "key_kernel": array([[0.0], [0.5]]),
        "coverage_kernel": array([[scale]]), "vector": array([1.0]),
        "fertility_vector": array([float(logit), 0.0]),
    }  # fmt: skip
    keys, query = array([[[1.0, 0.0], [1.0, 2.0]]]), array(np.zeros((1, 2, 1)))

    def second_scores(params):
        values, mask = jnp.ones((1, 2, 1), depth), jnp.ones((1, 2), bool)
        memory = mechanism.make_memory(params, sequence(keys, mask, values=values))
        return mechanism.attend(params, query, memory)[0].scores[0, 1].sum().astype(jnp.float32)

    gradient = jax.grad(second_scores)(params)
    assert all(np.isfinite(leaf.astype(jnp.float32)).all() for leaf in gradient.values())
    small = float(params["coverage_kernel"][0, 0])
    first = np.tanh([0.0, 1.0])
    weights = np.exp(first) / np.exp(first).sum()
    covered = weights * (1 + 1 / scale) / 2
    slope = 1 - np.tanh(np.asarray([0.0, 1.0]) + covered * small) ** 2
    expected = (-slope * small * weights / scale / 2).sum()
    np.testing.assert_allclose(float(gradient["fertility_vector"][0]), expected, rtol=rtol)


@pytest.mark.parametrize("logit", [-88.0, -104.0, -1e4])
def test_a_fertility_of_zero_covers_a_slot_at_once(logit):
    """It has no inverse; the coverage stays finite, and with it every gradient."""
    config = MECHANISMS.config("linguistic_coverage")(attention_dim=1, max_fertility=2.0)
    mechanism = build_mechanism(config, 1, 1, 1)
    params = {
        name: jnp.full(parameter.shape, logit if name == "fertility_vector" else 0.5)
        for name, parameter in mechanism.parameters.items()
    }
    ones = jnp.ones((1, 3, 1))

    def total(params):
        memory = mechanism.make_memory(params, sequence(ones, jnp.ones((1, 3), bool)))
        return (mechanism.attend(params, ones, memory)[0].scores ** 2).sum()

    value, gradient = jax.value_and_grad(total)(params)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() for leaf in gradient.values())
