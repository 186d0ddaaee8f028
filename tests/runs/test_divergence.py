"""What is not finite is refused, and said to be so."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from attention_jax.errors import DivergenceError
from attention_jax.runs.divergence import (
    check_losses,
    check_outputs,
    check_parameters,
    said_of,
)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_losses_are_finite(value):
    check_losses({"loss": 1.0, "accuracy": 0.0})
    with pytest.raises(DivergenceError, match=f"checkpoint step 3: loss/nll is {value}$"):
        with said_of("checkpoint step 3"):
            check_losses({"loss": 1.0, "loss/nll": value})


def test_every_source_has_outputs_with_probabilities():
    good, bad = SimpleNamespace(log_prob=-1.0), SimpleNamespace(log_prob=math.nan)
    check_outputs([[good], [good, good]])
    for wrong in ([], [bad], [good, bad]):
        with pytest.raises(DivergenceError, match="output of source 2 are nan"):
            check_outputs([[good], wrong])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_parameters_are_finite(value):
    params = {"encoder": {"kernel": np.zeros((2, 3), np.float32)}}
    check_parameters(params)
    params["encoder"]["kernel"][1, 2] = value
    with pytest.raises(DivergenceError, match=f"parameter encoder.kernel holds {value}"):
        check_parameters(params)
