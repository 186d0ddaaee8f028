"""A message is a line, whatever it quotes."""

import pytest

from attention_jax.errors import DataError, UserError


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\x85", "\u2028"])
def test_a_message_is_one_line(sign):
    message = str(DataError(f"ru{sign}n: expected 你好 — 'ü'"))
    assert message == f"ru{ascii(sign)[1:-1]}n: expected 你好 — 'ü'"
    assert len(message.splitlines()) == 1
    assert str(UserError(DataError(f"a{sign}b"))) == f"a{ascii(sign)[1:-1]}b"
