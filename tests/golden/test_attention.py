"""Small cases worked out by hand, through `make_memory` and `attend` of each mechanism.

Every expected number is the value of the formula beside it, in float64; inputs are chosen such
that it can be followed with a pocket calculator.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.ops.normalizers import entmax15, masked_softmax, sparsemax

SCORES = [0.1, 0.4, 0.2, 0.9, -0.3, 0.5]


def array(values):
    return jnp.asarray(values, jnp.float32)


def attend(name, params, query, keys, values=None, mask=None, *, summary=None, **fields):
    """Runs a mechanism on one row; query `T D`, keys `S D`, values `S Dv` (the keys if None)."""
    call = {key: fields.pop(key) for key in ("positions", "mask_rows") if key in fields}
    if "mask_rows" in call:
        call["mask"] = call.pop("mask_rows")
    query, keys = array(query)[None], array(keys)[None]
    values = keys if values is None else array(values)[None]
    mask = jnp.ones(keys.shape[:2], bool) if mask is None else jnp.asarray(mask, bool)[None]
    config = MECHANISMS.config(name)(**fields)
    mechanism = build_mechanism(config, query.shape[-1], keys.shape[-1], values.shape[-1])
    params = {name: array(leaf) for name, leaf in params.items()}
    assert {key: leaf.shape for key, leaf in params.items()} == {
        key: parameter.shape for key, parameter in mechanism.parameters.items()
    }
    aux = {} if summary is None else {"summary": array(summary)[None]}
    memory = mechanism.make_memory(params, sequence(keys, mask, values=values, aux=aux))
    output, _ = mechanism.attend(params, query, memory, **call)
    return jax.tree.map(lambda leaf: leaf[0], output)


def close(found, expected, tolerance=2e-6):
    np.testing.assert_allclose(found, expected, atol=tolerance, rtol=tolerance)


# Additive: e = v . tanh(W_q q + W_k k), the last of four slots masked.
ADDITIVE = {
    "query_kernel": np.transpose([[0.5, 0], [0, 0.5], [0.5, 0.5]]),
    "key_kernel": np.transpose([[1, 0], [0, 1], [0.5, -0.5]]),
    "vector": [1, -1, 0.5],
}
ADDITIVE_KEYS = [[1, 0], [0, 1], [1, 1], [2, 2]]
ADDITIVE_MASK = [True, True, True, False]


def additive(params, query, keys):
    return attend("bahdanau", params, query, keys, mask=ADDITIVE_MASK, attention_dim=3)


def test_bahdanau():
    """e_1 = tanh(1.5) - tanh(-.5) + .5 tanh(.5), and so on; masked softmax; c = sum a h."""
    output = additive(ADDITIVE, [[1, -1]], ADDITIVE_KEYS)
    close(output.scores[0, :3], [1.59832399, -0.23105858, 0.4430311])
    close(output.weights[0], [0.6777465, 0.10878688, 0.21346661, 0])
    close(output.context[0], [0.89121312, 0.3222535])


def test_bahdanau_gradients():
    """Upstream dL/dc = [1, 2]: de = a (h . g - c . g), dv = sum de tanh, and the chain rule.

    A key's gradient has two parts, through the score and as the value that is averaged.
    """

    def loss(params, query, keys):
        return (additive(params, query, keys).context[0] * array([1, 2])).sum()

    params = {name: array(leaf) for name, leaf in ADDITIVE.items()}
    params, query, keys = jax.grad(loss, argnums=(0, 1, 2))(
        params, array([[1, -1]]), array(ADDITIVE_KEYS)
    )
    close(params["vector"], [-0.02237642, 0.33557324, -0.19112703])
    close(query[0], [0.03198502, 0.01668777])
    close(
        keys,
        [[0.54074876, 1.7124247], [0.15843883, 0.16792182], [0.34809468, 0.10296571], [0, 0]],
    )


def test_bahdanau_gradient_of_scores():
    """The same upstream, stopped at the scores: a (h . g - c . g)."""

    def loss(scores):
        weights = masked_softmax(scores, jnp.asarray(ADDITIVE_MASK))
        return (weights @ array(ADDITIVE_KEYS) * array([1, 2])).sum()

    gradient = jax.grad(loss)(array([1.59832399, -0.23105858, 0.4430311, 0.08146604]))
    close(gradient, [-0.36308243, 0.05050756, 0.31257487, 0])


def test_bahdanau_without_a_vector_is_uniform():
    params = {**ADDITIVE, "vector": [0, 0, 0]}
    close(additive(params, [[1, -1]], ADDITIVE_KEYS).weights[0], [1 / 3, 1 / 3, 1 / 3, 0])


LUONG_QUERY, LUONG_KEYS = [[1, 2]], [[1, 0], [0, 1], [1, -1]]


def test_luong_dot():
    """[1 2] . rows = [1, 2, -1]; softmax by exp(1), exp(2), exp(-1)."""
    output = attend("luong_dot", {}, LUONG_QUERY, LUONG_KEYS)
    close(output.scores[0], [1, 2, -1])
    exponentials = np.exp([1, 2, -1])
    close(output.weights[0], exponentials / exponentials.sum())


def test_luong_general():
    """[1 2] [[0 1] [2 0]] = [4 1], and its products with the rows."""
    output = attend("luong_general", {"kernel": [[0, 1], [2, 0]]}, LUONG_QUERY, LUONG_KEYS)
    close(output.scores[0], [4, 1, 3])


def test_luong_concat():
    """[1 2] . tanh(W [h; hbar]), W = [[.1 .2 .3 .4] [0 -.1 .2 -.3]]."""
    kernel = np.transpose([[0.1, 0.2, 0.3, 0.4], [0, -0.1, 0.2, -0.3]])
    params = {"kernel": kernel, "vector": [1, 2]}
    output = attend("luong_concat", params, LUONG_QUERY, LUONG_KEYS, attention_dim=2)
    close(output.scores[0], [0.66403677, -0.20793644, 0.96257419])


def test_luong_location():
    """W h = [.5 1 .75 (27)]; the fourth of four positions is masked."""
    params = {"kernel": np.transpose([[0.5, 0], [0, 0.5], [0.25, 0.25], [9, 9]])}
    output = attend(
        "luong_location", params, LUONG_QUERY, np.zeros((4, 2)),
        mask=[True, True, True, False], max_positions=4,
    )  # fmt: skip
    close(output.weights[0], [0.25427521, 0.41922895, 0.32649584, 0])


def window_keys():
    """Keys whose dot product with the query [1 0] is `SCORES`; values are the slots' indices."""
    return np.stack([SCORES, np.ones(6)], 1), np.arange(6.0)[:, None]


CENTER = 6 / (1 + np.exp(-0.2))  # 3.29900398: S sig(v . tanh(W h)), which is .2 below


def local_p(variant, share=0.2):
    """The query [1 0] predicts sig(share): tanh(W h) = .5, v = 2 share."""
    params = {"center_kernel": [[np.arctanh(0.5)], [0]], "center_vector": [2 * share]}
    keys, values = window_keys()
    return params, lambda params: attend(
        "local_p", params, [[1, 0]], keys, values, half_width=2, prediction_dim=1,
        variant=variant, score=MECHANISMS.config("luong_dot")(),
    )  # fmt: skip


def test_local_p_of_the_paper():
    """Window |s - p| <= 2, so slots 2 to 5; softmax inside times exp(-(s - p)^2 / 2)."""
    params, run = local_p("paper")
    output = run(params)
    close(output.aux["center"], [3.2990039838748677])
    close(output.weights[0], [0, 0, 0.08653952, 0.3874571, 0.09545063, 0.06391877])
    assert float(output.weights.sum()) == pytest.approx(0.633366021505, abs=2e-6)


def test_local_p_of_the_code():
    """Window floor(p) +- 2, so slots 1 to 5. The share is one that puts p = 5 sig(x) there too."""
    params, run = local_p("code", share=-np.log(5 / CENTER - 1))
    output = run(params)
    close(output.aux["center"], [3.2990039838748677])
    close(
        output.weights[0],
        [0, 0.01403931, 0.06946791, 0.31102365, 0.07662113, 0.05130955],
    )
    assert float(output.weights.sum()) == pytest.approx(0.522461551287, abs=2e-6)


def test_local_p_gradient_of_the_center():
    """dc/dp = sum a_s (s - p) s = .15948460468, and only the Gaussian carries it.

    With p = 5 sig(x), x = v tanh(W h) and tanh(W h) = .5: dp/dv = 5 sig(x) (1 - sig(x)) .5.
    """
    params, run = local_p("code", share=-np.log(5 / CENTER - 1))
    gradient = jax.grad(lambda params: run(params).context.sum())(
        {key: array(leaf) for key, leaf in params.items()}
    )
    share = CENTER / 5
    expected = 0.15948460468 * 5 * share * (1 - share) * 0.5
    close(gradient["center_vector"], [expected])


def test_local_m():
    """Position 1, D = 2: slots -1 to 3, of which 0 to 3 exist."""
    keys, values = window_keys()
    output = attend(
        "local_m", {}, [[1, 0]], keys, values, half_width=2,
        score=MECHANISMS.config("luong_dot")(), positions=jnp.asarray([1]),
    )  # fmt: skip
    close(output.weights[0], [0.17603865, 0.23762732, 0.1945528, 0.39178122, 0, 0])


def test_local_m_beyond_the_source_is_empty():
    keys, values = window_keys()
    output = attend(
        "local_m", {}, [[1, 0]], keys, values, half_width=2,
        score=MECHANISMS.config("luong_dot")(), positions=jnp.asarray([8]),
    )  # fmt: skip
    close(output.weights[0], np.zeros(6))
    close(output.context[0], [0])


def test_scaled_dot_with_a_causal_mask():
    """Rows of [1 0], [0 1], [1 1] with one another over sqrt(2): .7071, 1.4142."""
    rows = [[1, 0], [0, 1], [1, 1]]
    output = attend(
        "scaled_dot", {}, rows, rows, [[1, 2], [3, 4], [5, 6]],
        mask_rows=jnp.tril(jnp.ones((3, 3), bool)),
    )  # fmt: skip
    close(
        output.weights,
        [[1, 0, 0], [0.33023845, 0.66976155, 0], [0.24825508, 0.24825508, 0.50348984]],
    )
    close(output.context, [[1, 2], [2.3395231, 3.3395231], [3.51046953, 4.51046953]])


def test_none_at_every_step_is_the_summary():
    """Cho et al.: one slot, weight one, whatever is asked; a mean where there is no summary."""
    keys, mask = [[1, 2], [3, 4], [9, 9]], [True, True, False]
    output = attend("none", {}, [[5], [7]], keys, mask=mask, summary=[8, 9])
    close(output.weights, [[1], [1]])
    close(output.context, [[8, 9], [8, 9]])
    close(attend("none", {}, [[5]], keys, mask=mask).context, [[2, 3]])


def test_none_in_the_initial_state_has_no_context():
    """Sutskever et al.: contexts have no depth."""
    output = attend("none", {}, [[5]], [[1, 2]], conditioning="initial_state")
    assert output.context.shape == (1, 0)


@pytest.mark.parametrize(
    ("function", "weights", "gradient"),
    [
        # tau = (1 + .8 - 1) / 2 = .4; g minus its mean over the support {1, 2}
        (sparsemax, [0.6, 0.4, 0], [-0.5, 0.5, 0]),
        # max(z / 2 - tau, 0)^2; s g - s (s . g) / sum(s), with s the weights' square root
        (
            entmax15,
            [0.52924789, 0.39374904, 0.07700306],
            [-0.52695774, 0.17297115, 0.35398659],
        ),
        # exp(z) / sum; a (g - a . g)
        (
            masked_softmax,
            [0.44937753, 0.3679192, 0.18270327],
            [-0.32954011, 0.09811458, 0.23142553],
        ),
    ],
)
def test_normalizers(function, weights, gradient):
    """z = [1 .8 .1], g = [1 2 3]."""
    mask = jnp.ones(3, bool)
    found, pullback = jax.vjp(lambda scores: function(scores, mask), array([1, 0.8, 0.1]))
    close(found, weights)
    close(pullback(array([1, 2, 3]))[0], gradient)


def test_sparsemax_of_a_clear_winner_is_one_hot():
    close(sparsemax(array([3, 0, 0]), jnp.ones(3, bool)), [1, 0, 0])
