"""The search config: what it refuses, and that each field changes a search."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError
from attention_jax.search import SearchConfig
from tests.search.toy_model import ToyModel, jitted


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "beem"}, "search.method.*'beam'"),
        ({"beam_size": 0}, "search.beam_size: expected at least 1"),
        ({"beam_size": 3, "num_hypotheses": 4}, "search.num_hypotheses: expected at most 3.*4"),
        ({"method": "greedy", "num_hypotheses": 2}, "search.num_hypotheses: expected at most 1"),
        ({"temperature": 0}, "search.temperature: expected at least 1e-06, found 0"),
        ({"temperature": 1e-40}, "search.temperature: expected at least 1e-06, found 1e-40"),
        ({"temperature": 1e39}, r"search.temperature: expected at most 1e\+06, found 1e\+39"),
        ({"seed": 2**32}, "search.seed: expected at most 4294967295, found 4294967296"),
        (
            {"method": "sample", "num_hypotheses": 10**11},
            "search.num_hypotheses: expected at most 10000, found 100000000000",
        ),
        ({"top_p": 1.5}, "search.top_p: expected at most 1"),
        ({"length_alpha": -1}, "search.length_alpha: expected at least 0"),
        ({"length_normalisation": "none"}, "search.*length_normalization"),
        ({"max_length_factor": 0, "max_length_constant": 0}, "search.max_length_constant"),
        ({"max_length_factor": float("inf")}, "search.max_length_factor"),
        ({"max_length_factor": 1e30}, r"search.max_length_factor: expected at most 1000, .*1e\+30"),
        (
            {"max_length_constant": 10**11},
            "search.max_length_constant: expected at most 1000000, found 100000000000",
        ),
        ({"coverage_penalty": "wu"}, "search.coverage_penalty: expected one of 'none', 'gnmt'"),
        (
            {"coverage_penalty": "gnmt", "method": "greedy"},
            "search.coverage_penalty: expected 'none' with method 'greedy'.*found 'gnmt'",
        ),
        ({"coverage_beta": 0}, "search.coverage_beta: expected more than 0"),
        ({"coverage_beta": float("inf")}, "search.coverage_beta: expected a finite number"),
        ({"coverage_stepwise": True}, "search.coverage_stepwise: expected only with.*'none'"),
        (
            {"coverage_stepwise": True, "coverage_penalty": "gnmt", "method": "sample"},
            "search.coverage_stepwise: expected only with method 'beam'.*'sample'",
        ),
        ({"first_token": 2}, "search.first_token: expected 0 or an id from 4 on, .* found 2"),
        ({"no_repeat_ngram_size": -1}, "search.no_repeat_ngram_size: expected at least 0"),
        (
            {"replace_unknown": True, "forbid_unknown": True},
            "search.replace_unknown: expected only without forbid_unknown",
        ),
        (
            {"unknown_dictionary": "words.tsv"},
            "search.unknown_dictionary: expected only with replace_unknown, found 'words.tsv'",
        ),
    ],
)
def test_config_refuses(values, message):
    with pytest.raises(ConfigError, match=message) as caught:
        typed(SearchConfig, values, "search")
    assert "\n" not in str(caught.value)


def test_config_survives_a_round_trip():
    config = SearchConfig(method="sample", num_hypotheses=9, top_k=3)
    assert typed(SearchConfig, plain(config)) == config


BASES = {
    "beam": SearchConfig(beam_size=3, num_hypotheses=3, length_normalization="gnmt"),
    "sample": SearchConfig(method="sample", num_hypotheses=3),
    "summary": SearchConfig(beam_size=3, coverage_penalty="summary"),
}
CHANGES = {
    "method": ("beam", "sample"),
    "beam_size": ("beam", 7),
    "num_hypotheses": ("beam", 2),
    "max_length_factor": ("beam", 0.5),
    "max_length_constant": ("beam", 0),
    "min_length_ratio": ("beam", 2.0),
    "min_length_constant": ("beam", 12),
    "length_normalization": ("beam", "none"),
    "length_alpha": ("beam", 3.0),
    "temperature": ("sample", 0.1),
    "top_k": ("sample", 1),
    "top_p": ("sample", 0.1),
    "seed": ("sample", 1),
    "first_token": ("beam", 6),
    "forbid_unknown": ("beam", True),
    "coverage_penalty": ("beam", "gnmt"),
    "coverage_beta": ("summary", 0.7),
    "coverage_stepwise": ("summary", True),
    "no_repeat_ngram_size": ("beam", 1),
}
# These change how outputs are written: tests/decoding/test_output_text.py.
WRITING = {"replace_unknown", "unknown_dictionary"}
# And these the vocabulary before it is searched: tests/decoding/test_shortlist.py.
WRITING |= {"shortlist", "shortlist_frequent"}
# And this the model's step: tests/decoding/test_quantized_search.py.
WRITING |= {"dtype"}
FIELDS = {field.name for field in dataclasses.fields(SearchConfig)} - WRITING


MODEL = ToyModel(2, vocabulary=7, batch=8, scale=0.7)


@functools.cache
def scores(config):
    lengths = jnp.array([3, 4, 5, 6, 7, 8, 9, 10])
    found = jitted(MODEL.step, MODEL.start(), config, lengths, 30, jax.random.key(0))
    return np.asarray(found.scores)


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_every_field_changes_a_search(field):
    base, value = CHANGES[field]
    one = scores(BASES[base])
    other = scores(dataclasses.replace(BASES[base], **{field: value}))
    assert one.shape != other.shape or np.any(one != other)
