"""Aligners by name: directions, what is left out, and which is better."""

import pytest

from attention_jax.data.alignment.aligners import MAX_WORDS, align
from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.errors import UserError


@pytest.mark.parametrize("method", ["ibm1", "hmm", "agreement", "spelling"])
def test_both_directions_have_links_source_target(method):
    sources = [["a", "b", "c"], ["b"], ["a"], ["c"]]
    targets = [["z", "x", "y"], ["y"], ["x"], ["z"]]
    forward, reverse = align(sources, targets, method)
    assert sorted(forward[0]) == sorted(reverse[0]) == [(0, 1), (1, 2), (2, 0)]
    assert align(sources, targets, method, ["reverse"]) == [reverse]
    (turned,) = align(targets, sources, method, ["forward"])
    assert [sorted((s, t) for t, s in each) for each in turned] == reverse


@pytest.mark.parametrize("method", ["ibm1", "hmm", "agreement", "spelling"])
def test_words_of_one_side_have_one_link_at_most(made_up, method):
    for side, alignment in zip((1, 0), align(*zip(*made_up, strict=True), method), strict=True):
        words = [[link[side] for link in links] for links in alignment]
        assert all(len(set(each)) == len(each) for each in words)
        others = [[link[1 - side] for link in links] for links in alignment]
        assert any(len(set(each)) < len(each) for each in others)


def test_the_same_corpus_gives_the_same_links(made_up):
    sources, targets = zip(*made_up, strict=True)
    assert align(sources, targets, "hmm") == align(sources, targets, "hmm")


def test_long_and_empty_pairs_are_left_out_and_said_so():
    lines = []
    sources, targets = [["a"], ["a"] * (MAX_WORDS + 1), [], ["a"] * MAX_WORDS], [["x"]] * 4
    (links,) = align(sources, targets, "ibm1", ["forward"], lines.append)
    assert [len(each) for each in links] == [1, 0, 0, 1]
    assert lines[-1].startswith("2 of 4 pairs have no links")
    assert all(line.startswith("forward  ibm1") for line in lines[:-1])


def test_a_corpus_without_words_is_refused():
    with pytest.raises(UserError, match="1 to 200 words on both sides, found none"):
        align([["a"], []], [[], ["x"]], "hmm")


def test_nothing_is_said_of_pairs_where_all_have_links(toy):
    lines = []
    align(*zip(*toy, strict=True), "ibm1", report=lines.append)
    assert [line.split()[0] for line in lines] == ["forward"] * 5 + ["reverse"] * 5


def test_each_aligner_is_better_than_the_one_before_on_multi30k(data_root):
    folder = data_root / "multi30k"
    gold_file = folder / "alignments" / "test_2016_flickr.en-de.tsv"
    if not gold_file.is_file():
        pytest.skip(f"needs real data: {gold_file} is not a file")
    from attention_jax.evaluation.aer import count_links
    from attention_jax.evaluation.pharaoh import parse_gold
    from attention_jax.evaluation.symmetrization import symmetrize

    names = [
        [folder / "tok" / f"{split}.lc.norm.tok.{language}.gz" for language in ("en", "de")]
        for split in ("test_2016_flickr", "val")
    ]
    pairs = [
        (source.split(), target.split()) for each in names for source, target in read_pairs(*each)
    ]
    lengths = [(len(source), len(target)) for source, target in pairs[:1000]]
    golds = parse_gold(read_lines(gold_file), gold_file.name, lengths=lengths)
    aer = {}
    for method in ("ibm1", "hmm", "agreement", "spelling"):
        forward, reverse = align(*zip(*pairs, strict=True), method)
        both = {n: symmetrize(forward[n], reverse[n], "grow-diag-final-and") for n in golds}
        for name, links in (("forward", forward), ("reverse", reverse), ("both", both)):
            aer[method, name] = count_links([links[n] for n in golds], list(golds.values())).aer
    assert len(golds) == 100
    for name in ("forward", "reverse", "both"):
        assert aer["hmm", name] < aer["ibm1", name] - 5, aer
        assert aer["agreement", name] < aer["hmm", name] - 1, aer
        assert aer["spelling", name] < aer["agreement", name] - 0.5, aer
    assert aer["hmm", "both"] < 25, aer
