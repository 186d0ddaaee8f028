"""A message is a line, whatever it quotes."""

import pytest

from attention_jax.errors import DataError, UserError, at_field


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\x85", "\u2028"])
def test_a_message_is_one_line(sign):
    message = str(DataError(f"ru{sign}n: expected 你好 — 'ü'"))
    assert message == f"ru{ascii(sign)[1:-1]}n: expected 你好 — 'ü'"
    assert len(message.splitlines()) == 1
    assert str(UserError(DataError(f"a{sign}b"))) == f"a{ascii(sign)[1:-1]}b"


@pytest.mark.parametrize(
    ("message", "placed"),
    [
        ("layers: expected 1", "config.model.layers: expected 1"),
        ("decoder.readout_dim: expected 2", "config.model.decoder.readout_dim: expected 2"),
        ("rules[0]: expected a pair", "config.model.rules[0]: expected a pair"),
        ("layers[1].name: expected a", "config.model.layers[1].name: expected a"),
        ("sources.a b: expected a name", "config.model.sources.a b: expected a name"),
        ("expected 3 of it, found 4: no", "config.model: expected 3 of it, found 4: no"),
    ],
)
def test_a_refusal_is_placed_at_its_field_or_its_group(message, placed):
    assert str(at_field("config.model", ValueError(message))) == placed
