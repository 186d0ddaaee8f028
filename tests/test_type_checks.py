"""Checks of annotations are shared by functions of one signature, and by no others."""

import dataclasses
import os

import jax
import jaxtyping
import numpy as np
import pytest
from jaxtyping import Float, Int, TypeCheckError

from attention_jax.ops.masks import zero_padding
from attention_jax.types import AttentionOutput
from tests import type_checks


def inner(shape, kind=Float, number=float):
    """A function within another, which is made anew by every call."""

    @type_checks.checked
    def function(x: kind[np.ndarray, shape], y: kind[np.ndarray, shape], z: number = 1):
        return x, y, z

    return function


def test_each_signature_is_checked_as_it_says():
    two, three = np.zeros(2), np.zeros(3)
    for _ in range(2):  # made, and taken again
        assert inner("2")(two, two)[2] == 1
        assert inner("3")(three, three, 2)[2] == 2
        inner("n")(two, two)
        inner("2", Int)(two.astype(int), two.astype(int))
        inner("2", number=str)(two, two, "a")
        for function, arguments in (
            (inner("2"), (three, three)), (inner("3"), (two, two)), (inner("n"), (two, three)),
            (inner("2", Int), (two, two)), (inner("2"), (two, two, "a")),
            (inner("2", number=str), (two, two, 3)),
        ):  # fmt: skip
            with pytest.raises(TypeCheckError):
                function(*arguments)


def test_what_is_returned_agrees_with_the_arguments():
    @type_checks.checked
    def shortened(x: Float[np.ndarray, "T"], by: int) -> Float[np.ndarray, "T"]:
        return x[by:]

    assert shortened(np.zeros(3), 0).shape == (3,)
    with pytest.raises(TypeCheckError, match="return value of .*shortened.*\n(.*\n)*.*T=3"):
        shortened(np.zeros(3), 1)


def test_an_axis_may_be_as_long_as_an_argument_says():
    @type_checks.checked
    def zeros(size: int, excess: int = 0) -> Float[np.ndarray, " {size}"]:
        return np.zeros(size + excess)

    assert zeros(2).shape == (2,)
    with pytest.raises(TypeCheckError, match="return value"):
        zeros(2, 1)


def test_errors_of_a_call_are_its_own():
    @type_checks.checked
    def fails(x: int) -> int:
        raise ValueError(x)

    with pytest.raises(ValueError, match="^1$"):
        fails(1)
    with pytest.raises(TypeError, match="missing"):
        fails()
    with pytest.raises(TypeCheckError, match="parameters of .*fails.*\n(.*\n)*.*'a'"):
        fails("a")


def test_fields_of_dataclasses_are_checked():
    @type_checks.checked
    @dataclasses.dataclass
    class Pair:
        first: Float[np.ndarray, "T"]
        second: Float[np.ndarray, "T"]

    @type_checks.checked
    class Twin(Pair):
        pass

    for kind in (Pair, Twin):
        assert kind(np.zeros(2), np.zeros(2)).first.shape == (2,)
        with pytest.raises(TypeCheckError):
            kind(np.zeros(2), np.zeros(3))


def test_nothing_is_checked_while_checks_are_disabled():
    jaxtyping.config.update("jaxtyping_disable", True)
    assert inner("2")(np.zeros(3), np.zeros(4))[2] == 1
    jaxtyping.config.update("jaxtyping_disable", False)


def test_the_package_is_checked():
    fast = inner("2").__code__
    assert zero_padding.__code__ is fast and AttentionOutput.__init__.__code__ is fast


def test_a_check_is_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(type_checks, "_checks", {})
    monkeypatch.setattr(type_checks, "typechecker", lambda check: made.append(check) or check)
    for _ in range(3):
        inner("2"), inner("3")
    assert len(made) == 2  # of the arguments; nothing is said of what is returned


def test_checks_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(type_checks, "_checks", {})
    monkeypatch.setattr(type_checks, "_MOST", 4)
    for size in range(9):
        inner(str(size))
    assert len(type_checks._checks) <= 4
    with pytest.raises(TypeCheckError):
        inner("7")(np.zeros(2), np.zeros(2))


def test_jax_was_imported_after_the_settings_of_tests_were_made():
    """Else programs are optimised, and the tests take several times as long to compile."""
    is_asked_for = os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] in ("1", "true")
    assert jax.config.read("jax_disable_most_optimizations") == is_asked_for
