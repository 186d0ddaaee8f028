"""Refinements that do not fit are refused, and positional ones can be left out."""

import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.mechanisms.multi_head import Config
from attention_jax.layers.refinement import REFINEMENTS, without_positions
from tests.refined_heads import D

PLACES = MECHANISMS.config("luong_location")(max_positions=5)
WINDOW_OF_PLACES = MECHANISMS.config("local_m")(half_width=2, score=PLACES)


def test_buckets_need_distances_to_fall_into_them():
    with pytest.raises(ValueError, match=r"max_distance: expected more than half of num_buckets"):
        REFINEMENTS.config("relative_buckets")(num_buckets=8, max_distance=4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"refinements": {"ropee": {}}}, "refinements.ropee: no such field; did you mean 'rope'"),
        ({"refinements": {"rope": {"base": 0.5}}}, "refinements.rope.base: expected more than 1"),
        *(
            ({"refinements": {"sliding_window": {field: 2**31}}},
             f"^refinements.sliding_window.{field}: expected at most 1073741824, found 2147483648$")
            for field in ("size", "num_first")
        ),
        ({"num_memory_heads": 3}, "num_memory_heads: expected a divisor of num_heads = 4, found 3"),
        (
            {"refinements": {"relative_positions": {}, "rope": {}}},
            "^refinements.relative_positions: expected no 'rope' beside it, found both$",
        ),
        ({"score": PLACES}, "^score.name: expected a score of queries and keys, .* 'luong_loc"),
        ({"score": WINDOW_OF_PLACES}, "^score.score.name: expected a score of queries and keys"),
    ],
)  # fmt: skip
def test_fields_that_do_not_fit_are_rejected(fields, message):
    with pytest.raises(ValueError, match=message):
        Config(num_heads=4, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"head_dim": 3, "refinements": {"rope": {}}}, "head_dim: expected an even depth"),
        ({"num_heads": 1, "refinements": {"talking_heads": {}}}, "num_heads: expected more than"),
        ({"refinements": {"rope": {}}, "place": "cross"}, "attends to itself for 'rope'"),
        (
            {"score": MECHANISMS.config("local_p")(), "refinements": {"talking_heads": {}}},
            "^attention.score.name: expected scores of the same slots .* 'local_p' over 'luong_gen",
        ),
        *(
            (
                {"score": MECHANISMS.config(score)(), "refinements": {name: fields}},
                f"^attention.score.name: expected dot products of .* for '{name}'.* '{score}'$",
            )
            for name, fields in (
                ("rope", {}), ("relative_positions", {}), ("qk_norm", {"norm": "l2"})
            )
            for score in ("bahdanau", "luong_general")
        ),
    ],
)  # fmt: skip
def test_refinements_that_do_not_fit_are_rejected(fields, message):
    place = fields.pop("place", "self")
    with pytest.raises(ValueError, match=message):
        build_mechanism(Config(**fields), D, D, D, place=place)


def test_positional_refinements_can_be_left_out():
    config = Config(refinements={"rope": {}, "soft_cap": {}, "alibi": {}})
    assert set(without_positions(config).refinements) == {"soft_cap"}
    assert hash(config) != hash(without_positions(config))


@pytest.mark.parametrize(
    ("fields", "has_key_bias"),
    [
        ({"refinements": {"rope": {}}}, False),
        ({"refinements": {"rope": {}, "alibi": {}}}, False),
        ({"refinements": {"rope": {}, "soft_cap": {}}}, True),
        ({"refinements": {"alibi": {}}, "score": MECHANISMS.config("bahdanau")()}, True),
    ],
)
def test_a_bias_of_keys_goes_with_the_positions_that_it_needs(fields, has_key_bias):
    config = without_positions(Config(use_key_bias=True, **fields))
    assert config.use_key_bias == has_key_bias
    assert not without_positions(Config(refinements={"rope": {}})).use_key_bias
