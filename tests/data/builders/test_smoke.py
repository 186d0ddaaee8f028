from attention_jax.data.builders.smoke import smoke_dataset_builder as builder


def test_spelled_reads_digits_out():
    assert builder.spelled("307") == "three zero seven"


def test_distinct_numbers_are_distinct_and_always_the_same():
    numbers = builder.distinct_numbers(500)
    assert len(set(numbers)) == 500
    assert numbers == builder.distinct_numbers(500)
    assert {len(number) for number in numbers} == set(range(2, builder.MAX_DIGITS + 1))
