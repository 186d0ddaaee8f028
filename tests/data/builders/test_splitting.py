import collections

from attention_jax.data.builders.splitting import fraction, split_of


def test_fraction_never_changes():
    # The first eight bytes of the well-known SHA-256 of nothing, and of "abc".
    assert fraction("") == 0xE3B0C44298FC1C14 / 2**64
    assert fraction("abc") == 0xBA7816BF8F01CFEA / 2**64


def test_split_of_holds_out_the_fractions_asked_for():
    counts = collections.Counter(
        split_of(str(number), validation=0.05, test=0.1) for number in range(20_000)
    )
    assert abs(counts["test"] / 20_000 - 0.10) < 0.01
    assert abs(counts["validation"] / 20_000 - 0.05) < 0.01
