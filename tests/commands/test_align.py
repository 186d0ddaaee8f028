"""`launch.align`: what its commands write and print, and one line for every mistake."""

import gzip
import shutil

import numpy as np
import pytest

from attention_jax.commands import align_training
from attention_jax.decoding.attention_aligner import LinkedPair
from attention_jax.evaluation.word_weights import WordWeights

SOURCE = ["das Haus", "das Buch", "ein Buch", ""]
TARGET = ["the house", "the book", "a book", "?"]
FORWARD = ["0-0 1-1 2-2 3-2", "", "0-0"]
REVERSE = ["0-0 1-2 2-2 4-4 5-0", "1-1", "0-0"]
GOLD = ["1-1 2-2 3p2 3?3", "2-2", "1-1"]  # counted from 1
SCORE = ("align", "score", "--gold_base=1")


@pytest.fixture
def files(tmp_path):
    """Writes lines to files by name, `files(a=[...]) -> [--a=PATH]`."""

    def write(**contents):
        for name, lines in contents.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return [f"--{name}={tmp_path / name}" for name in contents]

    return write


@pytest.fixture
def train(launch, files, tmp_path):
    """Aligns the three sentences; returns the result and the lines written."""

    def run(*options):
        output = tmp_path / "links"
        result = launch(
            "align", "train", *files(source=SOURCE, target=TARGET), f"--output={output}", *options
        )
        return result, output.read_text().split("\n") if output.exists() else None

    return run


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_short_and_has_examples(launch, flag):
    result = launch("align", flag)
    assert (result.code, result.err) == (0, "")
    assert "usage: python -m launch.align train" in result.out and "for example:" in result.out
    assert len(result.out.splitlines()) < 40
    assert launch("align", "train", flag).out == result.out


def test_lines_that_no_spaces_divide_are_told(launch, files, tmp_path):
    texts = files(source=["猫が好き", "犬が好き", ""], target=["I like cats", "I like dogs", "?"])
    result = launch("align", "train", *texts, f"--output={tmp_path / 'links'}")
    assert result.code == 0
    (told,) = [line for line in result.err.splitlines() if line.startswith("notice: ")]
    assert told.startswith(f"notice: {tmp_path / 'source'}: a mean line has 1.0 words, ")


@pytest.mark.parametrize("method", ["ibm1", "hmm", "agreement"])
def test_train_writes_links_and_says_how_far_it_is(train, method):
    result, lines = train(f"--method={method}")
    assert result.code == 0, result.err
    assert lines == ["0-0 1-1", "0-0 1-1", "0-0 1-1", "", ""]
    assert result.out == "" and f"reverse  {method} 5/5  perplexity" in result.err
    assert "1 of 4 pairs have no links" in result.err


@pytest.mark.parametrize("method", ["ibm1", "agreement"])
def test_a_kept_aligner_links_its_own_text_and_others(launch, files, train, tmp_path, method):
    model, output, scores = (tmp_path / name for name in ("model", "new", "scores"))
    result, lines = train(f"--method={method}", f"--model={model}")
    assert (result.code, lines) == (0, train(f"--method={method}")[1]), result.err

    def apply(source, target, *options):
        paths = files(source=source, target=target)
        return launch("align", "apply", *paths, f"--model={model}", *options)

    result = apply(SOURCE, TARGET, f"--output={output}", f"--scores={scores}")
    assert result.code == 0 and output.read_text().split("\n") == lines, result.err
    assert "1 of 4 pairs have no links" in result.err and result.out == ""
    rows = [[*map(float, row.split())] for row in scores.read_text().splitlines()]
    assert [len(row) for row in rows] == [2] * 4
    assert all(row < [0, 0] for row in rows) and rows[3] == [float("-inf")] * 2
    apply(["das Fahrrad"], ["the bicycle"], f"--output={output}", "--symmetrization=reverse")
    assert output.read_text() == "0-0 1-1\n"
    apply(["das Haus"] * 2, ["the house", "a book"], f"--scores={scores}",
          "--symmetrization=forward")  # fmt: skip
    right, wrong = map(float, scores.read_text().split())
    assert right > wrong


def test_a_kept_aligner_may_have_one_direction(launch, files, tmp_path):
    texts, model = files(source=SOURCE, target=TARGET), f"--model={tmp_path / 'model'}"
    result = launch("align", "train", *texts, "--symmetrization=reverse", model)
    assert result.code == 0 and "forward" not in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "source", "target"]
    output = f"--output={tmp_path / 'links'}"
    assert launch("align", "apply", *texts, model, output).code == 0
    assert (tmp_path / "links").read_text() == "0-0 1-1\n0-0 1-1\n0-0 1-1\n\n"
    assert "model: an aligner of the direction forward is needed for union, found reverse only" in (
        launch("align", "apply", *texts, model, output, "--symmetrization=union").error
    )
    (tmp_path / "model").write_bytes((tmp_path / "model").read_bytes()[:-1])
    assert "found a damaged file" in launch("align", "apply", *texts, model, output).error


def test_a_trained_run_aligns(launch, files, trained, tmp_path):
    texts = files(source=["123", "4"], target=["one two three", "four"])
    output, scores = tmp_path / "links", tmp_path / "scores"
    written = f"--output={output}", f"--scores={scores}"
    result = launch("align", "apply", *texts, f"--run={trained}", *written)
    assert result.code == 0 and output.read_text() == "0-0 1-1 2-2\n0-0\n", result.err
    found = launch("score", f"--workdir={trained}", *texts).out.splitlines()
    for row, line in zip(scores.read_text().splitlines(), found, strict=True):
        log_prob, _, tokens = map(float, line.split())
        assert float(row) == pytest.approx(log_prob / tokens, abs=1e-3)
    # The same run for the opposite direction: its sources are the targets here.
    texts = files(source=["four"], target=["4"])
    both = f"--run={trained}", f"--reverse={trained}"
    result = launch("align", "apply", *texts, *both, "--symmetrization=reverse", *written)
    assert result.code == 0 and output.read_text() == "0-0\n", result.err
    result = launch("align", "apply", *texts, *both, "--symmetrization=geometric-mean", *written)
    assert result.code == 0 and output.read_text() in ("0-0\n", "\n"), result.err
    assert len(scores.read_text().split()) == 2
    for method in ("union", "geometric-mean"):
        ended = launch("align", "apply", *texts, f"--run={trained}", f"--symmetrization={method}",
                       *written)  # fmt: skip
        assert f"a run of the direction reverse is needed for {method}, found fo" in ended.error


def test_links_of_both_runs_are_those_on_which_their_weights_agree():
    """The second of two words is linked by one direction only; an empty text has no links."""
    one, other = (
        LinkedPair(WordWeights.of(np.array(weights)), -1.0)
        for weights in ([[0.9, 0.1], [0.4, 0.6]], [[0.9, 0.8], [0.1, 0.2]])
    )
    nothing = LinkedPair(WordWeights.of(np.zeros((0, 0))), -1.0)
    for pair, expected in (((one, other), [(0, 0), (0, 1)]), ((nothing, nothing), [])):
        found = dict(zip(("forward", "reverse"), pair, strict=True))
        assert list(align_training.joined(found, "geometric-mean")) == expected


@pytest.mark.parametrize(("direction", "other"), [("forward", "reverse"), ("reverse", "forward")])
def test_train_writes_one_direction_and_trains_no_other(train, direction, other):
    result, lines = train("--method=ibm1", f"--symmetrization={direction}")
    assert result.code == 0 and lines[0] == "0-0 1-1"
    assert direction in result.err and other not in result.err


def test_train_reads_gzip(launch, tmp_path):
    for name, lines in (("a.gz", SOURCE), ("b.gz", TARGET)):
        (tmp_path / name).write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    (tmp_path / "new").mkdir()
    output = tmp_path / "new" / "links"
    result = launch("align", "train", f"--source={tmp_path}/a.gz", f"--target={tmp_path}/b.gz",
                    f"--output={output}")  # fmt: skip
    assert result.code == 0, result.err
    assert output.read_text().startswith("0-0 1-1\n")
    assert [path.name for path in output.parent.iterdir()] == ["links"]


def test_links_are_compressed_by_name(launch, files, tmp_path):
    links = tmp_path / "links.gz"
    texts = files(source=SOURCE, target=TARGET)
    assert launch("align", "train", *texts, f"--output={links}").code == 0
    result = launch("align", "score", f"--gold={links}", f"--hypothesis={links}")
    assert result.code == 0 and "100.0" in result.out, result.err


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ((), "0-0 1-1 2-2 3-2 4-4"),
        (("--method=intersection",), "0-0 2-2"),
        (("--method=union",), "0-0 1-1 1-2 2-2 3-2 4-4 5-0"),
        (("--method=grow-diag",), "0-0 1-1 2-2 3-2"),
        (("--method=grow-diag", "--strict"), "0-0 1-1 2-2"),
        (("--method=grow-diag-final",), "0-0 1-1 2-2 3-2 4-4 5-0"),
    ],
)
def test_symmetrize_writes_the_links_of_a_method(launch, files, tmp_path, options, first):
    paths = files(forward=FORWARD, reverse=REVERSE)
    result = launch("align", "symmetrize", *paths, f"--output={tmp_path / 's'}", *options)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (tmp_path / "s").read_text().splitlines()[0] == first


def test_symmetrize_turns_transposed_links(launch, files, tmp_path):
    paths = files(forward=["1-0", "0-2"], reverse=["0-1", "2-0"])
    launch("align", "symmetrize", *paths, f"--output={tmp_path / 's'}", "--transposed")
    assert (tmp_path / "s").read_text() == "1-0\n0-2\n"


@pytest.mark.parametrize(
    ("forward", "reverse", "told"),
    [
        (["0-0 1-1"], ["1-1 2-2"], "reverse"),
        (["1-1 2-2"], ["0-1 2-1"], "forward"),
        (["1-1 2-2"], ["1-1"], ""),
        (["1-1"], [""], ""),
        (["0-0"], ["1-0"], ""),
    ],
)
def test_symmetrize_says_where_one_direction_seems_to_be_counted_from_one(
    launch, files, tmp_path, forward, reverse, told
):
    paths = files(forward=forward, reverse=reverse)
    result = launch("align", "symmetrize", *paths, f"--output={tmp_path / 's'}")
    expected = f"{tmp_path}/{told}: no link names word 0, as links of {tmp_path}/"
    assert result.err.startswith(expected) if told else not result.err
    assert result.code == 0 and result.err.count("\n") == bool(told)


def test_score_prints_percent_and_links(launch, files):
    paths = files(gold=GOLD, hypothesis=["0-0 2-2 1-2", "1-1", "0-0"])
    result = launch(*SCORE, *paths)
    assert (result.code, result.err) == (0, "")
    # |A| = 5, |S| = 4, |A & S| = 3, |A & P| = 4.
    assert [line.split() for line in result.out.splitlines()] == [
        ["precision", "80.0"],
        ["recall", "75.0"],
        ["AER", "22.2"],
        ["links", "5"],
    ]


def test_score_takes_bases_transposed_links_and_some_lines_only(launch, files):
    gold = ["# number\tlinks", "0\t0-0 1-1 2?1 2?2"]
    paths = files(gold=gold, hypothesis=["1-1 3-3 3-2", "7-7"])
    result = launch("align", "score", *paths, "--hypothesis_base=1", "--transposed")
    assert result.code == 0, result.err
    assert result.out.split()[1::2] == ["66.7", "50.0", "40.0", "3"]


def test_score_says_where_words_seem_to_be_counted_from_one(launch, files):
    paths = files(gold=["1-1 2-2"], hypothesis=["1-1 2-2"])
    result = launch(*SCORE, *paths)
    assert "no link names word 0: counted from 1? --hypothesis_base=1" in result.err
    assert result.err.count("\n") == 1 and result.code == 0
    assert not launch(*SCORE, *paths, "--hypothesis_base=1").err


def test_score_reproduces_a_published_number(launch, data_root):
    folder = data_root / "hansards_aer"
    if not folder.is_dir():
        pytest.skip(f"needs real data: {folder} is not a directory")
    result = launch(*SCORE, f"--gold={folder / 'enfr.gold'}", "--transposed",
                    f"--hypothesis={folder / 'giza' / 'test.enfr.reverse.talp'}")  # fmt: skip
    assert result.out.split()[1::2] == ["91.6", "88.3", "9.8", "5672"]


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"hypothesis": ["0-0", "x", ""]}, [], "hypothesis:2: expected links such as 0-1"),
        ({"gold": ["1-1", "0-1", ""]}, [], "gold:2: expected words counted from 1, found '0-1'"),
        ({"hypothesis": ["0-0", ""]}, [], "expected 3 lines as in"),
        ({"hypothesis": ["0-0", "", "", ""]}, [], "expected 3 lines as in"),
        ({"gold": ["9\t1-1"]}, [], "expected 10 lines as in"),
        ({"gold": []}, [], "found an empty file"),
        ({}, ["--hypothesis_base=2"], "hypothesis_base"),
        ({}, ["--gold=/none"], "/none: expected a text file, found none"),
    ],
)
def test_score_refuses_bad_files(launch, files, changes, options, words):
    paths = files(**({"gold": GOLD, "hypothesis": ["0-0"] * 3} | changes))
    assert words in launch(*SCORE, *paths, *options).error


@pytest.mark.parametrize(
    ("links", "options", "words"),
    [
        (["0-0", "2-0"], [], "hypothesis:2: expected words of sentences of 2 and 1 words"),
        (["0-0", "0-1"], ["--transposed"], ""),
        (["0-0", "1-0"], ["--transposed"], "expected words of sentences of 1 and 2 words"),
        (["0-0"], [], "hypothesis: expected 2 lines, one for each pair of the text, found 1"),
    ],
)
def test_score_checks_links_against_the_texts(launch, files, links, options, words):
    texts = files(source=["a b", "a b"], target=["x", "x"])
    paths = files(gold=["1-1", "2-1"], hypothesis=links)
    result = launch(*SCORE, *paths, *texts, *options)
    assert words in (result.error if words else result.out)
    assert result.code == (2 if words else 0), result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected a command, train, apply, symmetrize, score; found none"),
        (["tarin"], "expected a command, train, apply, symmetrize, score; found tarin"),
        (["score", "more"], "unexpected argument 'more'"),
        (["score", "--output=x"], "output"),
        (["score"], "--gold: expected a value, found none"),
        (["train"], "--output: expected a value, found none"),
        (["train", "--model=m", "--method=eflomal"], "--model: expected --method among ibm1, hmm"),
        (["apply"], "--output: expected a value, found none"),
        (["apply", "--output=x"], "--model: expected either this or --run, found neither"),
        (["apply", "--output=x", "--model=m", "--run=r"], "either this or --run, found both"),
        (["apply", "--output=x", "--model=m", "--reverse=r"], "--reverse: expected only beside"),
        (
            ["apply", "--output=x", "--model=m", "--symmetrization=geometric-mean"],
            "--symmetrization: expected geometric-mean, of weights, beside --run, found --model",
        ),
        (["apply", "--output=x", "--model=/none"], "/none: expected a trained aligner, found no"),
        (["apply", "--scores=/proc/none/x"], "--scores: /proc/none/x cannot be written (there is"),
        (
            ["train", "--output=x", "--method=hhm"],
            "one of ibm1, hmm, agreement, spelling, eflomal, found 'hhm'",
        ),
        (["apply", "--output=x", "--run=x"], "/x: expected the directory of a run, found none"),
        (
            ["apply", "--output=x", "--run=x", "--method=hhm"],
            "--method: no such option; expected one of --model, --order, --output, --reverse, --ru",
        ),
        (["train", "--output=x", "--modle=m"], "--modle: no such option; did you mean --model?"),
        (["train", "--output=x", "--model=./x"], "--model: expected another file than --output, "),
        (["train", "--output=x", "--source=./x"], "--output: expected another file than --source,"),
        (["apply", "--output=x", "--model=./x"], "--output: expected another file than --model, "),
        (["apply", "--output=x", "--source=fr=./x"], "--output: expected another file than --so"),
        (["apply", "--output=x", "--scores=x"], "--scores: expected another file than --output, "),
        (["symmetrize", "--output=x", "--forward=x"], "--output: expected another file than --for"),
        (["symmetrize", "--strict=4"], "--strict: expected true or false, found '4'"),
        (["score", "--gold_base=x"], "--gold_base: expected a whole number from 0 to 1, found 'x'"),
        (["symmetrize", "--output=x", "--method=forward"], "grow-diag-final-and"),
        (["symmetrize", "--output=/proc/none/x"], "/proc/none/x cannot be written (there is no"),
        (["train", "--output=/proc"], "--output: /proc cannot be written"),
        (["train", "--output=/dev/null"], "--output: /dev/null cannot be written"),
    ],
)
def test_wrong_arguments_are_one_line(launch, arguments, words):
    assert words in launch("align", *arguments).error


def test_texts_are_read_before_a_run_is_loaded(launch, files, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    output, options = tmp_path / "links", [f"--run={run}"]
    links = [*options, f"--output={output}"]
    result = launch("align", "apply", *links, *files(source=["1", "2"], target=["one"]))
    source, target = tmp_path / "source", tmp_path / "target"
    assert result.error == f"{target}: expected 2 lines as in {source}, found 1"
    assert "--target: expected a value" in launch("align", "apply", *links, "--source=x").error


def test_train_makes_no_directories(launch, files, tmp_path):
    output = tmp_path / "no" / "such" / "links"
    result = launch("align", "train", *files(source=SOURCE, target=TARGET), f"--output={output}")
    assert result.error == (
        f"--output: {output} cannot be written (there is no directory {output.parent})"
    )
    assert not (tmp_path / "no").exists()


def test_train_leaves_what_was_written_before(launch, files, tmp_path):
    (tmp_path / "links").write_text("before")
    paths = files(source=SOURCE, target=TARGET[:3])
    result = launch("align", "train", *paths, f"--output={tmp_path / 'links'}")
    assert "target: expected 4 lines as in" in result.error
    assert (tmp_path / "links").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links", "source", "target"]


def test_symmetrize_needs_as_many_lines(launch, files, tmp_path):
    paths = files(forward=FORWARD, reverse=REVERSE[:2])
    error = launch("align", "symmetrize", *paths, f"--output={tmp_path / 's'}").error
    assert "reverse: expected 3 lines as in" in error and "found 2" in error
    assert not (tmp_path / "s").exists()


def test_score_reads_numbered_links_on_either_side(launch, files):
    gold, links = ["1-1-S 2-2-P", "", "1-1\t2-2"], ["0-0-0.5 1-1-0.1", "0-0 ||| -3.5", "0-0\t1-1"]
    numbered = [f"{number}\t{line}" for number, line in enumerate(links)]
    given = {"gold": gold, "hypothesis": links}
    expected = launch(*SCORE, *files(**given))
    assert expected.out.split()[1::2] == ["80.0", "100.0", "12.5", "5"]
    for changes in (
        {"hypothesis": numbered[::-1]},
        {"gold": [f"{number}\t{line}" for number, line in enumerate(gold)]},
        {"gold": [f"{n}\t{line}" for n, line in enumerate(gold)], "hypothesis": numbered},
    ):
        result = launch(*SCORE, *files(**(given | changes)))
        assert (result.out, result.err) == (expected.out, ""), changes
    for hypothesis, words in (
        (numbered[:2], "hypothesis: expected links of pair 2 as in"),
        ([*numbered, "3\t0-0"], "hypothesis: expected pairs below 3, as"),
    ):
        result = launch(*SCORE, *files(gold=gold, hypothesis=hypothesis))
        assert words in result.error


def test_score_says_what_percentages_are_of_nothing(launch, files):
    result = launch(*SCORE, *files(gold=["", ""], hypothesis=["0-0", "0-0"]))
    assert "gold: expected links, found none in 2 lines" in result.error
    result = launch(*SCORE, *files(gold=["0\t"], hypothesis=["0-0"]))
    assert "gold: expected links, found none in 1 lines" in result.error
    result = launch(*SCORE, *files(gold=["1p1 2-2-P"], hypothesis=["0-0 1-0"]))
    assert result.out.split()[1::2] == ["50.0", "0.0", "50.0", "2"]
    assert "gold: no sure links" in result.err and result.err.count("\n") == 1
    result = launch(*SCORE, *files(gold=["1-1"], hypothesis=[""]))
    assert "hypothesis: no links for the pairs of" in result.err and result.code == 0


def test_symmetrize_joins_numbered_links(launch, files, tmp_path):
    output = f"--output={tmp_path / 's'}"
    paths = files(forward=["7\t0-0 1-1", "3\t1-0"], reverse=["3\t1-0", "7\t0-0 2-2"])
    result = launch("align", "symmetrize", *paths, output)
    assert (tmp_path / "s").read_text() == "7\t0-0 1-1 2-2\n3\t1-0\n", result.err
    for name, lines in (("reverse", ["3\t1-0"]), ("forward", ["7\t0-0"])):
        paths = files(**({"forward": ["7\t0-0", "3\t1-0"], "reverse": ["7\t0-0", "3\t0-0"]}
                         | {name: lines}))  # fmt: skip
        error = launch("align", "symmetrize", *paths, output).error
        assert f"{name}: expected links of pair" in error


@pytest.mark.parametrize(
    ("order", "expected"),
    [("source", "0-4 1-3 2-0"), ("moses", "0-4 1-1 2-0"), ("atools", "0-4 1-1 2-0")],
)
def test_symmetrize_looks_at_links_in_the_order_of_a_tool(launch, files, tmp_path, order, expected):
    paths = files(forward=["0-4 2-0 1-3 1-1"], reverse=["0-4 2-0"])
    output = f"--output={tmp_path / 's'}"
    result = launch("align", "symmetrize", *paths, output, "--strict", f"--order={order}")
    assert (tmp_path / "s").read_text() == f"{expected}\n", result.err


def test_words_are_between_spaces_and_tabs_alone(launch, files, tmp_path):
    texts = files(source=["\u3000 a\u00a0b\u00a0d c"] * 3, target=["x\ty\u2009z\u2009v \u3000"] * 3)
    output = tmp_path / "links"
    links = files(gold=["1-1 2-2 3-3"] * 3, hypothesis=["0-0 1-1 2-2"] * 3)
    assert launch(*SCORE, *links, *texts).code == 0
    assert "words of sentences of 3 and 3 words counted from 1, found '4-1'" in (
        launch(*SCORE, *files(gold=["4-1"] * 3, hypothesis=[""] * 3), *texts).error
    )
    launch(
        "align", "train", *texts, "--method=ibm1", f"--output={output}", "--symmetrization=union"
    )
    places = {int(place) for link in output.read_text().split() for place in link.split("-")}
    assert places == {0, 1, 2}
