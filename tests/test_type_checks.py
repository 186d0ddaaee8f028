"""Checks of annotations are shared by functions of one signature, and by no others."""

import numpy as np
import pytest
from jaxtyping import Float, Int, TypeCheckError, jaxtyped

from tests import type_checks


def inner(shape, kind=Float, number=float):
    """A function within another, which is made anew by every call."""

    @jaxtyped(typechecker=type_checks.checked)
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


def test_a_check_is_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(type_checks, "_checks", {})
    monkeypatch.setattr(type_checks, "_make", lambda function: made.append(function) or function)
    for _ in range(3):
        inner("2"), inner("3")
    assert len(made) == 4  # of two functions, arguments alone and with what is returned


def test_checks_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(type_checks, "_checks", {})
    monkeypatch.setattr(type_checks, "_MOST", 4)
    for size in range(9):
        inner(str(size))
    assert len(type_checks._checks) <= 4
    with pytest.raises(TypeCheckError):
        inner("7")(np.zeros(2), np.zeros(2))
