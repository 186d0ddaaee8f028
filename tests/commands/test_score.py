"""`launch.score`: probabilities of given outputs, and n-best lists ranked anew."""

import pytest


@pytest.fixture
def score(launch, trained, tmp_path):
    """Scores lines with the trained smoke run; texts beside the sources are files of their flag."""

    def run(sources, *arguments, **texts):
        texts = {"source": sources, **texts}
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        files = [f"--{name}={tmp_path / name}" for name in texts]
        return launch("score", f"--workdir={trained}", *files, *arguments)

    return run


def test_score_prints_what_the_search_found(score, launch, trained):
    found = launch("translate", f"--workdir={trained}", "--nbest=1", stdin=b"123\n45").out
    lines = [line.split(" ||| ") for line in found.splitlines()]
    result = score("123\n45\n", target="".join(f"{line[1]}\n" for line in lines))
    assert result.code == 0, result.err
    for line, given in zip(result.out.splitlines(), lines, strict=True):
        log_prob, by_length, tokens = map(float, line.split())
        assert [log_prob, by_length] == pytest.approx([*map(float, given[2].split())], abs=2e-4)
        assert tokens == len(given[1].split()) + 1


def test_score_adds_tokens_and_alignments(score):
    result = score("123\n", "--tokens", "--alignments", target="one two three\n")
    total, tokens, links = result.out.strip().split(" ||| ")
    parts = [*map(float, tokens.split())]
    assert len(parts) == 4 and sum(parts) == pytest.approx(float(total.split()[0]), abs=1e-3)
    assert links == "0-0 1-1 2-2"


def test_score_ranks_nbest_lists(score):
    lists = "0 ||| nine nine ||| -1 -1\n1 ||| four five ||| -9 -9\n0 ||| one two three ||| -5 -2\n"
    result = score("123\n45\n", nbest=lists)
    ranked = [line.split(" ||| ")[:2] for line in result.out.splitlines()]
    assert ranked == [["0", "one two three"], ["0", "nine nine"], ["1", "four five"]]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({}, "--target: expected either this or --nbest, found neither"),
        ({"target": "one\n", "nbest": "0 ||| one\n"}, "either this or --nbest, found both"),
        ({"target": "one\ntwo\n"}, "expected 1 lines as in"),
        ({"nbest": "one\n"}, ":1: expected LINE ||| OUTPUT ||| ..., found 'one'"),
        ({"nbest": "7 ||| one\n"}, ":1: expected a line of the 1 sources, counted from 0, found 7"),
    ],
)
def test_mistakes_are_one_line(score, texts, words):
    result = score("1\n", **texts)
    assert result.code == 2 and words in result.error
    assert result.out == ""
