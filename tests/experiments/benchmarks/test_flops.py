"""Operations are counted from shapes: against closed forms, and against XLA's own count."""

import jax
import jax.numpy as jnp
import pytest

from experiments.benchmarks.flops import product_flops, training_flops
from experiments.benchmarks.scaling.subjects import Subject

A, B = jnp.ones((3, 5)), jnp.ones((5, 7))


def test_a_product_takes_two_operations_for_each_of_its_terms():
    assert product_flops(jnp.matmul, A, B) == 2 * 3 * 5 * 7
    assert product_flops(lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
                         jnp.ones((4, 3, 5)), jnp.ones((4, 5, 7))) == 4 * 2 * 3 * 5 * 7  # fmt: skip


def test_the_count_of_a_product_is_xlas():
    cost = jax.jit(jnp.matmul).lower(A, B).compile().cost_analysis()
    assert product_flops(jnp.matmul, A, B) == cost["flops"]


def test_what_is_inside_of_transformations_counts():
    @jax.custom_vjp
    def custom(x):
        return x @ B

    custom.defvjp(lambda x: (x @ B, None), lambda _, g: (g @ B.T,))

    def scanned(x):
        return jax.lax.scan(lambda carry, _: (carry @ (A.T @ A), None), x, length=6)[0]

    def branched(x):
        return jax.lax.cond(x.sum() > 0, lambda x: x @ B, lambda x: x[:, :1] @ B[:1], x)

    one = 2 * 3 * 5 * 7
    assert product_flops(jax.jit(lambda x: x @ B), A) == one
    assert product_flops(jax.checkpoint(lambda x: x @ B), A) == one
    assert product_flops(custom, A) == one
    assert product_flops(scanned, A) == 6 * (2 * 5 * 3 * 5 + 2 * 3 * 5 * 5)
    assert product_flops(branched, A) == one


def test_what_no_result_depends_on_does_not_count():
    assert product_flops(lambda x: (x @ B, x @ B)[0], A) == 2 * 3 * 5 * 7


def test_a_loop_of_unknown_length_is_refused():
    def loop(x):
        return jax.lax.while_loop(lambda x: x.sum() < 1e3, lambda x: x @ (A.T @ A), x)

    with pytest.raises(ValueError, match="found a while loop"):
        product_flops(loop, A)


def test_training_flops_of_the_recurrent_model():
    b, s, t, h, v = 3, 7, 4, 6, 30
    e, d = h // 2, 2 * h  # embeddings; annotations of both directions
    encoder = 2 * (s * e * 3 * h + s * h * 3 * h)
    bridge = d * h
    memory = s * d * h + s * d * h  # values by the attentional layer, and keys
    step = (
        e * 3 * h + h * 3 * h + h * 3 * h  # word, fed vector and state into the gates
        + h * h + s * h + s * h  # query; scores; context
        + h * h  # the state's half of the attentional layer
    )  # fmt: skip
    # The bias of the logits is a column of their matrix.
    forward = 2 * b * (encoder + bridge + memory + t * (step + (h + 1) * v))
    subject = Subject(batch=b, source_length=s, target_length=t, hidden=h, vocabulary=v)
    assert training_flops(subject.build(), subject.make_batch()) == 3 * forward


def test_training_flops_of_the_transformer():
    b, s, t, d, v = 3, 7, 4, 8, 30
    layer = 4 * d * d + 2 * d * 4 * d  # queries, keys, values, outputs; two of the feed-forward
    encoder = 6 * (s * layer + 2 * s * s * d)
    own = t * layer + 2 * t * t * d
    across = 2 * t * d * d + 2 * s * d * d + 2 * t * s * d
    forward = 2 * b * (encoder + 6 * (own + across) + t * (d + 1) * v)
    subject = Subject(b, s, t, d, v, model="transformer")
    assert training_flops(subject.build(), subject.make_batch()) == 3 * forward


def test_local_attention_asks_for_less_on_long_sources():
    def flops(attention, length):
        subject = Subject(2, length, 4, 8, 30, attention=attention)
        return training_flops(subject.build(), subject.make_batch())

    growth = {name: flops(name, 400) - flops(name, 200) for name in ("bahdanau", "local_p", "none")}
    assert growth["none"] < growth["local_p"] < growth["bahdanau"]
