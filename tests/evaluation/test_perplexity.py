"""Perplexity against its definition."""

import math

import pytest

from attention_jax.evaluation.perplexity import perplexity


def test_perplexity_of_a_uniform_guess_is_the_number_of_choices():
    assert perplexity(20 * math.log(50), 20) == pytest.approx(50)


def test_perplexity_of_a_hopeless_model_is_infinite():
    assert perplexity(1e6, 1) == math.inf
