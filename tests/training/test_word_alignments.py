"""Word links of the training text: those of its own lines, found once and kept."""

import dataclasses

import pytest

from attention_jax.data.alignment import aligners
from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import AlignmentConfig
from attention_jax.data.loading import build_task
from attention_jax.errors import DataError, UserError
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.spaced_words import spaced_words
from attention_jax.training.word_alignments import word_links

# Line n says the number n, with n % 3 + 1 words; two lines have an empty side.
SOURCES = [" ".join([f"s{number}"] * (number % 3 + 1)) for number in range(40)]
TARGETS = [" ".join([f"t{number}"] * (number % 3 + 1)) for number in range(40)]
SOURCES[4] = TARGETS[11] = ""
LINES = [
    f"{number % 3}-{number % 3}" if source and target else ""
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True))
]


@pytest.fixture
def write(tmp_path):
    """Writes lines to a file and returns its path."""

    def written(name, lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return str(tmp_path / name)

    return written


@pytest.fixture
def config(write, tmp_path, monkeypatch):
    """A text of which validation and test pairs are held out, with a line of links for each."""
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "cache"))
    return ParallelConfig(
        train_source=write("train.en", SOURCES),
        train_target=write("train.de", TARGETS),
        validation_pairs=3,
        test_pairs=3,
        alignment=AlignmentConfig(method="file", file=write("links", LINES)),
    )


@pytest.fixture
def find(tmp_path):
    """Finds the links of a data set for a run; returns the sources with them."""

    def found(config, run="run", writes=True, report=lambda line: None):
        split = (task := build_task(config, tmp_path / "vocab")).split("train")
        texts = split.sources, split.targets
        words = tuple([spaced_words(text) for text in side] for side in texts)
        directory = RunDirectory(tmp_path / run, writes=writes)
        links = word_links(task, config, words, directory, report)
        return dict(zip(split.sources, links, strict=True))

    return found


@pytest.fixture
def counted(monkeypatch):
    """The texts that an aligner, which links first words, was given."""
    texts = []

    def align(sources, targets, report):
        texts.append([" ".join(words) for words in sources])
        return [[(0, 0)] if source and target else []
                for source, target in zip(sources, targets, strict=True)]  # fmt: skip

    monkeypatch.setitem(aligners.METHODS, "hmm", aligners._one_by_one(align))
    return texts


def aligned(config, **fields):
    return dataclasses.replace(config, alignment=AlignmentConfig(method="hmm", **fields))


def test_a_line_of_links_belongs_to_its_line_of_the_text(config, find):
    links = find(config)
    assert 30 < len(links) < 38  # pairs are held out, and two are empty
    for source, found in links.items():
        place = len(source.split()) - 1
        assert found == [(place, place)]


def test_lines_are_found_again_among_a_sample_of_the_pairs(config, find):
    links = find(dataclasses.replace(config, max_train_examples=9, min_train_source_words=2))
    assert 0 < len(links) <= 9
    assert all(found == [(len(source.split()) - 1,) * 2] for source, found in links.items())


def test_a_table_has_a_line_of_links_for_each_of_its_lines(config, find, write):
    rows = ["\t".join(pair) for pair in zip(SOURCES, TARGETS, strict=True)]
    table = dataclasses.replace(
        config, train_source="", train_target="", train_table=write("table", rows)
    )
    assert find(table) == find(config, run="other")


def test_another_number_of_lines_is_named_with_its_text(config, find, write, tmp_path):
    write("links", LINES[:-1])
    with pytest.raises(DataError) as error:
        find(config)
    assert str(error.value) == (
        f"{tmp_path}/links: expected 40 lines, one for each line of {tmp_path}/train.en, found 39"
    )
    assert not (tmp_path / "run").exists()


def test_links_of_pairs_that_are_held_out_are_checked_too(config, find, write, tmp_path):
    held_out = next(i for i, line in enumerate(LINES) if line and SOURCES[i] not in find(config))
    words = held_out % 3 + 1
    lines = [*LINES[:held_out], f"0-{words}", *LINES[held_out + 1 :]]
    write("links", lines)
    with pytest.raises(DataError) as error:
        find(config, run="other")
    assert str(error.value) == (
        f"{tmp_path}/links:{held_out + 1}: expected words of sentences of {words} and {words} "
        f"words counted from 0, found '0-{words}'"
    )


def test_links_are_checked_for_every_pair_of_a_data_set(config, find, write, monkeypatch):
    """Where a data set is no text of the user's, and the config takes a sample of its pairs."""
    sources = [*find(config, run="whole")]
    monkeypatch.setattr(ParallelConfig, "training_lines", lambda config: None)
    lines = [f"{len(source.split()) - 1}-0" for source in sources]
    write("links", lines)
    sample = dataclasses.replace(config, max_train_examples=9)
    found = find(sample)
    assert found == {source: [(len(source.split()) - 1, 0)] for source in found}
    left_out = next(i for i, source in enumerate(sources) if source not in found)
    write("links", [*lines[:left_out], "0-9", *lines[left_out + 1 :]])
    with pytest.raises(DataError, match=f"links:{left_out + 1}: expected words of sentences of"):
        find(sample, run="other")


def test_words_that_seem_to_be_counted_from_one_are_told(config, find, write, tmp_path):
    """A link to the last word is outside; without one nothing is, and nobody can be sure."""
    def said(lines, run, **fields):
        write("links", lines)
        lines = []
        alignment = dataclasses.replace(config.alignment, **fields)
        find(dataclasses.replace(config, alignment=alignment), run=run, report=lines.append)
        return lines

    assert said(LINES, "a") == []
    inside = ["1-1" if line == "2-2" else "" for line in LINES]
    assert said(inside, "b") == [
        f"{tmp_path}/links: no link names word 0: counted from 1? --config.data.alignment.base=1"
    ]
    assert said([line.replace("1", "2") for line in inside], "c", base=1) == []
    from_one = [line and "-".join(str(int(n) + 1) for n in line.split("-")) for line in LINES]
    with pytest.raises(DataError, match="links:1: .*found '1-1'; should the base be 1.$"):
        said(from_one, "d")
    assert said(from_one, "e", base=1) == []


def test_a_run_keeps_its_links(config, find, write, tmp_path):
    first = find(config)
    lines = (tmp_path / "run" / "links.train.txt").read_text().splitlines()
    assert lines == [f"{place}-{place}" for ((place, _),) in first.values()]
    write("links", ["0-0" if line else "" for line in LINES])
    assert find(config) == first
    assert find(config, run="new") != first


def test_other_processes_read_what_the_first_one_wrote(config, find, counted, tmp_path):
    first = find(aligned(config))
    assert len(counted) == 2  # directions
    (tmp_path / "cache" / "alignments").rename(tmp_path / "gone")
    assert find(aligned(config), writes=False) == first and len(counted) == 2


def test_links_that_do_not_fit_the_text_are_named(config, find, tmp_path):
    find(config)
    path = tmp_path / "run" / "links.train.txt"
    whole = path.read_text()
    for text, message in (
        (whole[: len(whole) // 2], "expected 32 lines, one for each pair.* found 16 .the links of"),
        (whole.replace("2-2", "2-3"), "run/links.train.txt:.*expected words of sentences of 3"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            find(config)


def test_a_text_is_aligned_once_for_all_runs(config, find, counted):
    said = []
    first = find(aligned(config), report=said.append)
    assert all(links == [(0, 0)] for links in first.values())
    assert len(counted) == 2 and not said
    assert find(aligned(config, symmetrization="union"), run="b", report=said.append) == first
    assert len(counted) == 2 and "word links are taken from" in said[0]


def test_another_text_or_revision_is_aligned_anew(config, find, counted, monkeypatch):
    find(aligned(config))
    find(aligned(dataclasses.replace(config, max_train_examples=9)), run="b")
    assert len(counted) == 4 and len(counted[2]) == 9
    monkeypatch.setattr(aligners, "_REVISION", aligners._REVISION + 1)
    find(aligned(config), run="c")
    assert len(counted) == 6


def test_damage_in_the_cache_is_made_good(config, find, counted, tmp_path):
    first = find(aligned(config))
    (path,) = (tmp_path / "cache" / "alignments").glob("*.npz")
    whole = path.read_bytes()
    within = whole.index(b"forward_links.npy") + 40
    flipped = whole[:within] + bytes([whole[within] ^ 4]) + whole[within + 1 :]
    for number, damage in enumerate((b"", whole[:-50], flipped), start=1):
        path.write_bytes(damage)
        assert find(aligned(config), run=f"run{number}") == first
        assert len(counted) == 2 + 2 * number  # directions
        assert len(path.read_bytes()) == len(whole)


def test_an_aligner_that_fails_leaves_nothing(config, find, monkeypatch, tmp_path):
    def fail(sources, targets, report):
        raise UserError("eflomal: expected the package, found none")

    monkeypatch.setitem(aligners.METHODS, "hmm", aligners._one_by_one(fail))
    with pytest.raises(UserError, match="found none"):
        find(aligned(config))
    assert not list((tmp_path / "cache" / "alignments").glob("*.npz"))
    assert not (tmp_path / "run").exists()


def test_a_start_that_never_trained_is_forgotten_with_its_links(config, find, tmp_path):
    find(config)
    RunDirectory(tmp_path / "run").forget()
    assert not (tmp_path / "run" / "links.train.txt").exists()


def test_links_count_words_between_spaces_and_tabs_alone(config, find, write):
    sources = [f"\u3000 w{number}\u00a0x\u00a0v\ty z" for number in range(40)]
    targets = [f"a b{number}\u2009c\u2009d \u3000" for number in range(40)]
    config = dataclasses.replace(
        config, train_source=write("a", sources), train_target=write("b", targets)
    )
    write("links", ["0-0 1-1 2-1 3-2"] * 40)
    assert set(map(tuple, find(config).values())) == {((0, 0), (1, 1), (2, 1), (3, 2))}
    write("links", ["0-0 4-0"] + ["0-0"] * 39)
    with pytest.raises(DataError, match="links:1: expected words of sentences of 4 and 3 words"):
        find(config, run="other")
