import logging

import pytest
from absl import logging as absl_logging

from attention_jax.data.builders.parallel import parallel_dataset_builder as builder
from attention_jax.data.lines import MAX_LINE_CHARACTERS
from attention_jax.errors import DataError


@pytest.fixture
def write(tmp_path):
    """Writes lines to a file and returns its path."""

    def written(name, lines):
        path = tmp_path / name
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return str(path)

    return written


def _numbered(count, prefix):
    return [f"{prefix} {number}" for number in range(count)]


def _train(write, count=100):
    return builder.Corpus(
        write("train.en", _numbered(count, "en")), write("train.de", _numbered(count, "de"))
    )


def test_held_out_pairs_are_taken_from_training(write):
    config = builder.parallel_text(_train(write), validation_pairs=5, test_pairs=8)
    splits = builder.read_splits(config)
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": 87,
        "validation": 5,
        "test": 8,
    }
    everything = sorted(pair for pairs in splits.values() for pair in pairs)
    assert everything == sorted(zip(_numbered(100, "en"), _numbered(100, "de"), strict=True))


def test_at_most_a_tenth_is_held_out(write):
    splits = builder.read_splits(builder.parallel_text(_train(write)))
    assert len(splits["validation"]) == 10
    assert len(splits["test"]) == 9


def test_held_out_pairs_do_not_depend_on_the_order_of_lines(write):
    lines = _numbered(100, "en")
    first = builder.Corpus(write("a", [f"{line}\tx" for line in lines]))
    second = builder.Corpus(write("b", [f"{line}\tx" for line in reversed(lines)]))
    test = [
        set(builder.read_splits(builder.parallel_text(corpus))["test"])
        for corpus in (first, second)
    ]
    assert test[0] == test[1]


def test_pairs_of_a_source_line_are_held_out_together(write):
    table = write("table", [f"en {number % 20}\tde {number}" for number in range(100)])
    splits = builder.read_splits(builder.parallel_text(builder.Corpus(table)))
    sources = [{source for source, _ in pairs} for pairs in splits.values()]
    assert not sources[0] & sources[1] and not sources[0] & sources[2]
    assert not sources[1] & sources[2]


@pytest.mark.parametrize(("line", "total"), [("No.", 1000), ("OK.", 10_000)])
def test_a_line_that_is_repeated_three_hundred_times_is_trained_on(write, line, total):
    lines = [line if number < 300 else f"en {number}" for number in range(total)]
    table = write("table", [f"{source}\tde {number}" for number, source in enumerate(lines)])
    splits = builder.read_splits(builder.parallel_text(builder.Corpus(table)))
    sizes = {name: len(pairs) for name, pairs in splits.items()}
    held_out = total // 10
    assert sizes["validation"] == held_out
    assert sizes["test"] == (total - held_out) // 10
    assert sum(sizes.values()) == total
    assert sum(source == line for source, _ in splits["train"]) == 300


def _differing(number):
    """Every line in four forms, which lower case and tokens do not tell apart."""
    word = f"Word{number // 4}"
    forms = f"the {word} x", f"The {word} x", f"THE {word.upper()}\u00a0X", f"the  {word}\u2581x"
    return forms[number % 4]


@pytest.mark.parametrize("lowercase", [False, True])
def test_sources_are_held_out_with_what_they_will_be_equal_to(write, lowercase):
    table = write("table", [f"{_differing(number)}\tde {number}" for number in range(400)])
    corpus = builder.Corpus(table)
    splits = builder.read_splits(builder.parallel_text(corpus, lowercase=lowercase))
    form = (lambda text: text.lower()) if lowercase else str
    sources = [
        {" ".join(form(source).replace("\u2581", " ").split()) for source, _ in pairs}
        for pairs in splits.values()
    ]
    assert not sources[0] & sources[1] and not sources[0] & sources[2]
    assert not sources[1] & sources[2]
    assert len(splits["validation"]) == 40


def test_too_few_source_lines_are_an_error(write):
    table = write("table", [f"same\tde {number}" for number in range(50)])
    with pytest.raises(DataError, match="hold some out for validation, found 1"):
        builder.read_splits(builder.parallel_text(builder.Corpus(table)))


def test_files_of_their_own_are_used_line_by_line(write):
    test = builder.Corpus(write("t.en", ["b", "a", "b"]), write("t.de", ["B", "A", "C"]))
    splits = builder.read_splits(builder.parallel_text(_train(write), test=test))
    assert splits["test"] == [("b", "B"), ("a", "A"), ("b", "C")]
    assert len(splits["train"]) + len(splits["validation"]) == 100


def test_unusable_training_pairs_are_left_out_with_a_notice(write, caplog):
    long = "x" * (MAX_LINE_CHARACTERS + 1)
    corpus = builder.Corpus(
        write("a", ["one", "", "three", "four", "five"]),
        write("b", ["eins", "zwei", "  ", long, "fünf"]),
    )
    absl_logging.use_absl_handler()
    with caplog.at_level(logging.WARNING, logger="absl"):
        pairs = builder.usable_pairs(corpus)
    assert pairs == [("one", "eins"), ("five", "fünf")]
    assert "left out 3 of 5 pairs" in caplog.text


def test_a_line_of_white_space_alone_is_empty(write):
    corpus = builder.Corpus(write("a", ["one", "\u3000", " \t"]), write("b", ["eins", "x", "y"]))
    assert builder.usable_pairs(corpus) == [("one", "eins")]


def test_nothing_usable_is_an_error(write):
    corpus = builder.Corpus(write("a", ["", "b"]), write("b", ["a", ""]))
    with pytest.raises(DataError, match="a: expected pairs of lines, found only empty"):
        builder.usable_pairs(corpus)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", r"t\.en:2: expected a source sentence, found an empty line"),
        ("x" * (MAX_LINE_CHARACTERS + 1), r"t\.en:2: expected a source line of at most 10000 char"),
    ],
    ids=["empty", "long"],
)
def test_evaluation_files_must_be_usable(write, line, message):
    test = builder.Corpus(write("t.en", ["a", line, "c"]), write("t.de", ["A", "B", "C"]))
    with pytest.raises(DataError, match=message):
        builder.read_splits(builder.parallel_text(_train(write), test=test))


def test_a_target_at_fault_is_named_by_its_own_file(write):
    test = builder.Corpus(write("t.en", ["a", "b"]), write("t.de", ["A", ""]))
    with pytest.raises(DataError, match=r"t\.de:2: expected a target sentence, found an empty"):
        builder.read_splits(builder.parallel_text(_train(write), test=test))
    table = builder.Corpus(write("table", ["a\tA", "b\t"]))
    with pytest.raises(DataError, match="table:2: expected a target sentence, found an empty"):
        builder.read_splits(builder.parallel_text(_train(write), test=table))


@pytest.mark.parametrize(("line", "found"), [("one", 1), ("a\tb\tc", 3)])
def test_a_table_must_have_two_columns(write, line, found):
    corpus = builder.Corpus(write("table", ["a\tb", line]))
    with pytest.raises(DataError, match=f"table:2: expected 2 columns .*, found {found}"):
        corpus.pairs()


def test_a_table_with_an_empty_side_has_two_columns(write):
    assert builder.Corpus(write("table", ["a\t", "\tb"])).pairs() == [("a", ""), ("", "b")]


def test_unequal_files_are_an_error(write):
    corpus = builder.Corpus(write("a", ["one", "two"]), write("b", ["eins"]))
    with pytest.raises(DataError, match="b: expected 2 lines as in .*a, found 1"):
        corpus.pairs()


def test_the_name_follows_the_content(write):
    name = builder.parallel_text(_train(write)).name
    assert builder.parallel_text(_train(write)).name == name
    assert builder.parallel_text(_train(write), test_pairs=7).name != name
    assert builder.parallel_text(_train(write), validation_pairs=7).name != name
    assert builder.parallel_text(_train(write), lowercase=True).name != name
    train = _train(write)
    write("train.de", _numbered(99, "de") + ["changed"])
    assert builder.parallel_text(train).name != name
    assert builder.parallel_text(_train(write), test=_train(write)).name != name


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="nowhere: expected a readable text file"):
        builder.parallel_text(builder.Corpus(str(tmp_path / "nowhere")))
