"""Depths of queries, keys and values: what any mechanism compares, and what it refuses."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from attention_jax.layers.attention import build_mechanism
from tests.conformance.battery import (
    ONE_SOURCE,
    SIZES,
    B,
    Case,
    D,
    Dv,
    S,
    T,
    inputs,
    one_case_each,
    small_config,
)


@one_case_each
def test_queries_and_keys_of_two_depths_are_compared_or_refused(case):
    key_dim = D + 4  # which as many heads can share
    try:
        mechanism = build_mechanism(case.config, D, key_dim, Dv, **SIZES)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    uneven = Case(case.name, case.config, lambda: mechanism)
    query, _, values, mask = inputs()
    keys = jax.ShapeDtypeStruct((B, S, key_dim), jnp.float32)
    output = jax.eval_shape(uneven.attend, uneven.params, query, keys, values, mask)
    assert output.context.shape == (B, T, mechanism.context_dim)


@pytest.mark.parametrize("name", ONE_SOURCE)
def test_depths_that_heads_cannot_share_are_rejected(name):
    if "num_heads" not in {field.name for field in dataclasses.fields(small_config(name))}:
        pytest.skip("the mechanism has no heads")
    if small_config(name).projects_heads:
        pytest.skip("its heads project, to any depth")
    for depths, what in (((7, D, Dv), "query"), ((D, 7, Dv), "key"), ((D, D, 7), "value")):
        with pytest.raises(ValueError, match=rf"num_heads: .* divisor of the {what} depth 7"):
            build_mechanism(small_config(name, num_heads=2), *depths, **SIZES)


@pytest.mark.parametrize("name", ["luong_dot", "scaled_dot"])
def test_dot_products_reject_different_depths(name):
    with pytest.raises(ValueError, match=f"one depth for {name}, found 8 and 6"):
        build_mechanism(small_config(name), 8, 6, 6)


@one_case_each
def test_arrays_that_do_not_fit_are_rejected(case):
    query, keys, values, mask = inputs()
    for arguments in ((query, keys, values, mask[:, 1:]), (query, keys[:, 1:], values, mask)):
        with pytest.raises((TypeError, ValueError)):
            jax.eval_shape(case.attend, case.params, *arguments)
