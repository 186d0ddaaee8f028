"""Which mechanisms a sequence may attend to itself with."""

import pytest

from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.transformer import StackConfig, self_attention
from tests.conformance.battery import D, small_config, small_score

# None of these carries anything; log(1 + S) is in the scores of all.
PLACES = small_score("structural_bias")
WINDOW = small_config("local_m", score=PLACES)
READING_LENGTHS = {
    "name: .* mechanism .* found 'structural_bias'": PLACES,
    "name: .* mechanism .* found 'local_m' over 'structural_bias'": WINDOW,
    "score.name: .* score .* found 'structural_bias'": small_config("multi_head", score=PLACES),
    "score.name: .* score .* found 'local_m' over 'struct": small_config(
        "multi_head", score=WINDOW
    ),
}


@pytest.mark.parametrize(("message", "config"), READING_LENGTHS.items())
def test_weights_that_depend_on_the_length_are_refused_where_that_is_unknown(message, config):
    reason = "which depends on the length of what is still being written"
    whole = rf"^attention\.{message}.*, {reason}; decoder.self_attention may be another one$"
    with pytest.raises(ValueError, match=whole):
        self_attention(StackConfig(), config, D, "causal")
    assert self_attention(StackConfig(), config, D, "self").traits.reads_length


@pytest.mark.parametrize(
    ("stack", "is_alone", "end"),
    [
        ({}, False, "written; decoder.self_attention may be another one"),
        ({}, True, "written"),
        ({"self_attention": MECHANISMS.config("local_p")()}, False, "written"),
    ],
)
def test_another_mechanism_is_advised_where_it_may_be_named(stack, is_alone, end):
    with pytest.raises(ValueError, match=f"{end}$"):
        self_attention(StackConfig(**stack), MECHANISMS.config("local_p")(), D, "causal", is_alone)
