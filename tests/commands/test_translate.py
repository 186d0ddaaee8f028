"""`launch.translate`: one line in, one line out, whatever the lines are."""

import os
import pty
import subprocess
import sys

import pytest


@pytest.fixture
def translate(launch, trained):
    """Translates bytes with the trained smoke run."""

    def run(stdin, *arguments):
        return launch("translate", f"--workdir={trained}", *arguments, stdin=stdin)

    return run


def test_translate_keeps_lines_and_tolerates_bom_and_crlf(translate):
    result = translate(b"\xef\xbb\xbf123\r\n\r\n   \n78")
    assert result.code == 0, result.err
    assert result.out == "one two three\n\n\nseven eight\n"


def test_translate_prints_nbest_with_scores_and_alignments(translate):
    result = translate(b"123\n\n45", "--nbest=2", "--alignments", "--search.beam_size=3")
    lines = [line.split(" ||| ") for line in result.out.splitlines()]
    assert [line[0] for line in lines] == ["0", "0", "2", "2"]
    assert lines[0][1] == "one two three" and lines[0][3] == "0-0 1-1 2-2"
    log_probs, scores = zip(*(map(float, line[2].split()) for line in lines), strict=True)
    assert log_probs[0] > log_probs[1] and scores[0] > scores[1] and max(log_probs) <= 0.0


def test_translate_begins_as_it_is_told(translate, tmp_path):
    path = tmp_path / "begin.txt"
    path.write_text("nine\n\n\n")
    result = translate(b"123\n\n45", f"--prefix={path}")
    assert result.code == 0, result.err
    first, *others = result.out.splitlines()
    assert first.split()[0] == "nine" and others == ["", "four five"]
    path.write_text("nine\n")
    error = translate(b"123\n45", f"--prefix={path}").error
    assert error == "--prefix: expected 2 lines, as in the input, found 1"
    error = translate(b"12\n", f"--prefix={path}", "--online").error
    assert error == "--online: expected no --prefix beside it, found both"
    error = translate(b"12\n", f"--prefix={tmp_path / 'none'}").error
    assert error.endswith("none: expected a text file, found none")


def test_translate_draws_the_attention(translate, tmp_path):
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        result = translate(b"123\n45", f"--plot={tmp_path / name}", "--search.method=greedy")
        assert result.code == 0, result.err
        assert (tmp_path / name).read_bytes().startswith(start)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a.svg"}


def test_files_are_written_though_nobody_reads_the_outputs(trained, repository, tmp_path):
    reader, output = os.pipe()
    os.close(reader)  # as `head` does once it has its lines
    path = tmp_path / "weights.npz"
    result = subprocess.run(
        [sys.executable, "-m", "launch.translate", f"--workdir={trained}", f"--weights={path}"],
        cwd=repository, input=b"12\n", stdout=output, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(output)
    assert result.returncode == 0, result.stderr
    assert path.stat().st_size


def test_translate_draws_nothing_where_there_is_no_output(translate, tmp_path):
    result = translate(b"\n\n", f"--plot={tmp_path / 'a.png'}")
    assert (result.code, result.out) == (0, "\n\n")
    assert result.err.endswith("a.png: not drawn, for there is no line with an output\n")
    assert not (tmp_path / "a.png").exists()


def test_translate_says_on_a_terminal_how_many_lines_are_done(trained, repository):
    terminal, its_end = pty.openpty()
    result = subprocess.run(
        [sys.executable, "-m", "launch.translate", f"--workdir={trained}"],
        cwd=repository, input=b"12\n\n3\n", stdout=subprocess.PIPE, stderr=its_end, check=True,
    )  # fmt: skip
    os.close(its_end)
    assert result.stdout == b"one two\n\nthree\n"
    shown = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert "\rtranslating 0/2" in shown and "\rtranslating 2/2" in shown
    assert shown.endswith(" \r")  # and takes it away again


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        (b"1 2\n\xff\xfe\n", ":2: expected UTF-8 text, found byte 0xff at column 1"),
        (b"1\n2\n3 \0 4", ":3: expected UTF-8 text, found a NUL character"),
        (b"", "found an empty file"),
        (b"1\n" + b"x" * 20_000, "input line 2: expected at most 10000 characters, found 20000"),
    ],
)
def test_translate_refuses_bad_input_before_printing(translate, stdin, words):
    assert words in translate(stdin).error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--search.beam_siez=3"], "--search.beam_siez: no such field; did you mean 'beam_size'?"),
        (["--search.beam_size=0"], "search.beam_size: expected at least 1, found 0"),
        (["--search.beam_size=x"], "--search.beam_size: expected int, found 'x'"),
        (["--nbest=10001"], "--nbest: expected a whole number from 0 to 10000, found '10001'"),
        (["--nbest=50"], "--nbest: expected at most search.beam_size"),
        (["--nbest=-1"], "--nbest: expected a whole number from 0 to 10000, found '-1'"),
        (["--nbest=x"], "--nbest: expected a whole number from 0 to 10000, found 'x'"),
        (["--nbest"], "nbest"),
        (["--alignments=maybe"], "--alignments: expected true or false, found 'maybe'"),
        (["--plot=/proc/a.png"], "--plot: /proc/a.png cannot be written ("),
        (["--plot=/proc/a.jpg"], "--plot: expected a name that ends in"),
        (["--direction=back"], "--direction: expected one of forward, reverse, found 'back'"),
        (["--direction=reverse"], "expected a run with a reverse direction, as with config.model."),
    ],
)
def test_translate_refuses_wrong_arguments(translate, arguments, words):
    result = translate(b"1 2\n", *arguments)
    assert result.code == 2 and words in result.err and result.err.count("\n") == 1


def test_translate_makes_no_directories(translate, tmp_path):
    plot = tmp_path / "none" / "a.png"
    error = translate(b"1 2\n", f"--plot={plot}").error  # before a line is printed
    assert error == f"--plot: {plot} cannot be written (there is no directory {plot.parent})"
    assert not plot.parent.exists()


def test_translate_needs_the_directory_of_a_run(launch, tmp_path):
    assert "--workdir: expected the directory of a run" in launch("translate").error
    error = launch("translate", f"--workdir={tmp_path / 'none'}").error
    assert "expected the directory of a run, found none" in error
    assert "no config.json" in launch("translate", f"--workdir={tmp_path}").error


# Eleven different tokens are all there are, so that the unknown word is one of them.
_EVERY_WORD_ONCE = ["--search.no_repeat_ngram_size=1", "--search.min_length_ratio=2"]


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
def test_translate_replaces_unknown_words(translate, tmp_path, method):
    arguments = [*_EVERY_WORD_ONCE, f"--search.method={method}"]
    if method != "sample":
        words = translate(b"77777", *arguments).out.split()
        assert len(words) == len(set(words)) == 11 and "<unk>" in words
        copied = translate(b"77777", *arguments, "--search.replace_unknown").out.split()
        assert copied == [word.replace("<unk>", "7") for word in words]
    dictionary = tmp_path / "words.tsv"
    dictionary.write_text("7\tsept\n")
    result = translate(b"77777", *arguments, "--search.replace_unknown",
                       f"--search.unknown_dictionary={dictionary}")  # fmt: skip
    assert result.code == 0, result.err
    assert "sept" in result.out.split() and "<unk>" not in result.out


def test_translate_scores_with_a_coverage_penalty(translate):
    def scores(*arguments):
        result = translate(b"123", "--nbest=1", "--search.length_normalization=none", *arguments)
        assert result.code == 0, result.err
        return [float(score) for score in result.out.split(" ||| ")[2].split()]

    log_prob, score = scores()
    assert score == log_prob
    for penalty in ("gnmt", "summary"):
        log_prob, score = scores(f"--search.coverage_penalty={penalty}", "--search.coverage_beta=5")
        assert score < log_prob


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--search.coverage_penalty=gnmt", "--search.method=greedy"],
            "search.coverage_penalty: expected 'none' with method 'greedy'",
        ),
        (["--search.coverage_penalty=gnm"], "(did you mean 'gnmt'?)"),
        (["--search.coverage_stepwise"], "search.coverage_stepwise: expected only with"),
        (["--search.unknown_dictionary=x"], "search.unknown_dictionary: expected only with"),
        (
            ["--search.replace_unknown", "--search.unknown_dictionary=/proc/none.tsv"],
            "/proc/none.tsv: expected a text file, found none",
        ),
    ],
)
def test_translate_refuses_searches_that_make_no_sense(translate, arguments, words):
    assert words in translate(b"1 2\n", *arguments).error
