"""Functions of parts are called as they say, and what they return is refused where it is wrong."""

import re

import jax
import jax.numpy as jnp
import pytest

from attention_jax.errors import PartError
from attention_jax.ops.attend import AttentionSpec, Tracker, attend, make_memory
from attention_jax.ops.normalizers import softmax_normalizer

B, T, S, D = 2, 3, 4, 5


def dots(params, query, memory, state, positions):
    return query @ memory.keys.mT


def answered(spec):
    keys, mask = jnp.ones((B, S, D)), jnp.ones((B, S), bool)

    def run(query, keys, mask):
        return attend(spec, {}, query, make_memory(spec, {}, keys, keys, mask))

    return jax.eval_shape(run, jnp.ones((B, T, D)), keys, mask)


def few(params, query):
    return query


def zeros(params, memory):
    return jnp.zeros(B)


def turned(*arguments):
    return dots(*arguments).mT


def summed(*arguments):
    return dots(*arguments).sum(-1)


def only_weights(params, scores, *arguments, **named):
    return scores


def summed_weights(params, scores, *arguments, **named):
    return scores.sum(-1), {}


def failing(*arguments, **named):
    return 1 + None


ONE = (("one", Tracker(zeros, few)),)


@pytest.mark.parametrize(
    ("parts", "name", "message"),
    [
        ({"score": few}, "few", "few\\(\\) takes 2 positional arguments but 5 were given"),
        ({"prepare": few}, "few", "few\\(\\) takes 2 positional arguments but 3 were given"),
        ({"normalizer": few}, "few", "few\\(\\) got an unexpected keyword argument"),
        ({"score": turned}, "turned", "expected scores .* = \\(3, 4\\), .* found shape .2, 4, 3"),
        ({"score": summed}, "summed", "expected scores .* = \\(3, 4\\), .* found shape .2, 3."),
        ({"normalizer": only_weights}, "only_weights", "expected weights and a dict .* found one "),
        ({"normalizer": summed_weights}, "summed_weights", "expected weights of the scores' shape"),
        ({"trackers": ONE, "reads": ("one",)}, "few", "few\\(\\) takes 2 .* but 5 were given"),
    ],
)
def test_what_does_not_fit_is_one_line_with_its_place(parts, name, message):
    with pytest.raises(PartError) as found:
        answered(AttentionSpec(**{"score": dots, **parts}))
    assert re.match(rf".*/test_part_calls.py:\d+, {name}: {message}", str(found.value))


def test_an_error_of_the_function_itself_stays_what_it_is():
    with pytest.raises(TypeError, match="unsupported operand"):
        answered(AttentionSpec(failing))


def test_what_fits_is_let_through():
    output, _ = answered(AttentionSpec(dots, softmax_normalizer))
    assert output.weights.shape == (B, T, S)
