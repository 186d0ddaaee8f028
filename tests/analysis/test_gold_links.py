"""Gold links against forced attention, in one direction and in both; runs beside a run."""

import dataclasses

import numpy as np
import pytest

from attention_jax.analysis.gold_links import (
    GoldFiles,
    GoldLinks,
    compare_with_gold,
    format_alignment,
)
from attention_jax.analysis.other_runs import OtherRun
from attention_jax.data.examples import Split
from attention_jax.data.lines import read_lines
from attention_jax.data.loading import TaskData
from attention_jax.data.task import find_task
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding import word_units
from attention_jax.decoding.alignments import pharaoh_line
from attention_jax.decoding.forced_decoding import ForcedAttention
from attention_jax.decoding.translate import Translator
from attention_jax.decoding.word_units import split_words
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import probability_mass, score_attention
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.symmetrized_attention import score_both_directions
from experiments.kit.attention_record import gold_counts
from tests.training.untrained import taught, untrained_run, write_text

SCORES = {
    "aer": 30.0,
    "alignment_precision": 71.234,
    "alignment_recall": 69.0,
    "match": 70.0,
    "probability_mass": 60.5,
    "match_after": 12.0,
    "probability_mass_after": 9.0,
    "match_source_before": 11.0,
    "probability_mass_source_before": 8.0,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """(run, split) of either direction, the second on subwords."""
    folder = tmp_path_factory.mktemp("runs")
    source, target = write_text(folder)
    forward, task = untrained_run(folder / "there", source, target)
    backward, other = untrained_run(folder / "back_again", target, source, kind="bpe")
    return (forward, task.split("test")), OtherRun("--reverse", "back", backward, other)


@pytest.fixture
def gold_file(runs, tmp_path):
    """Writes lines to a file of gold links and reads it."""

    def read(*lines, base="0", note=lambda line: None):
        (tmp_path / "gold").write_text("".join(f"{line}\n" for line in lines))
        return GoldFiles(str(tmp_path / "gold"), base).read([runs[0][1]], note)

    return read


def gold_of(split, numbers):
    """Words are translated in their order."""
    sizes = {number: len(split.sources[number].split()) for number in numbers}
    return GoldLinks({n: marked_links((w, w) for w in range(size)) for n, size in sizes.items()})


def test_both_directions_are_compared_pair_by_pair(runs):
    (run, split), reverse = runs
    gold = gold_of(split, [7, 2, 11])
    found = compare_with_gold(run, split, gold, reverse)
    assert len(found.forward) == len(found.reverse) == len(split)
    for there, back, source, target in zip(
        found.forward, found.reverse, found.words.sources, found.words.targets, strict=True
    ):
        assert there.weights.shape == (len(target), len(source))
        assert back.weights.shape == (len(source), len(target))
    pairs = [2, 7, 11]
    golds = [gold.links[number] for number in pairs]
    forward, backward = (
        [side[number].weights for number in pairs] for side in (found.forward, found.reverse)
    )
    expected = score_attention(forward, golds) | score_both_directions(forward, backward, golds)
    assert found.scores() == expected
    with_threshold = found.scores(0.3)
    assert expected.items() <= with_threshold.items()
    assert with_threshold["alignment_threshold"] == 0.3
    assert {"aer_threshold", "aer_threshold_reverse", "aer_threshold_grow_diag"} <= {
        *with_threshold
    }


def test_error_rates_follow_from_the_statistics_of_pairs(runs):
    (run, split), _ = runs
    found = compare_with_gold(run, split, gold_of(split, [7, 2, 11]), shift=1)
    rows, of_sums = found.statistics()["aer"]
    assert rows.shape == (3, 4)
    assert of_sums(rows.sum(axis=0)) == pytest.approx(found.scores()["aer"])


def test_one_direction_says_nothing_of_the_other(runs):
    (run, split), _ = runs
    scores = compare_with_gold(run, split, gold_of(split, [0])).scores()
    assert "aer" in scores and "aer_reverse" not in scores and "aer_threshold" not in scores


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_attention_that_is_off_by_one_is_read_from_the_step_after(runs, monkeypatch, shift):
    """Of which row t looks at source token t - shift; the row of EOS serves the last token."""
    (run, split), _ = runs
    tokens = [len(ids) for ids in split.source_ids]
    assert tokens == [len(ids) for ids in split.target_ids]
    monkeypatch.setattr(
        word_units,
        "forced_attention",
        lambda *_: [ForcedAttention(np.roll(np.eye(size), shift, 0), None) for size in tokens],
    )
    gold = gold_of(split, range(len(split)))
    found = {
        asked: compare_with_gold(run, split, gold, shift=asked).scores(0.5) for asked in (-1, 0, 1)
    }
    for asked, scores in found.items():
        assert scores.get("alignment_shift", 0) == asked
        # Before the first word there is no step: it stays without a link.
        assert (scores["aer"] < 30) == (asked == shift)
        assert scores["match_after"] == found[0]["match_after"]
    if shift >= 0:
        for name in ("aer", "aer_threshold", "saer"):
            assert found[shift][name] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("step", ["writes", "reads"])
def test_alignments_of_translations_are_of_the_step_that_was_taught(runs, step):
    run, split = runs[0]
    translator = Translator(taught(run, step))
    found = []
    for one in translator.translate(split.sources[:8]):
        best = one.hypotheses[0]  # an untrained model attends to the same at all steps
        best = dataclasses.replace(best, weights=np.eye(*best.weights.shape) + 0.01)
        found.append(dataclasses.replace(one, hypotheses=(best,)))
    vocabularies = run.source_vocabulary, run.target_vocabulary
    expected = {
        shift: [
            pharaoh_line(one.hypotheses[0], one.source_ids, one.source, *vocabularies, shift)
            for one in found
        ]
        for shift in (0, 1)
    }
    assert expected[0] != expected[1]
    lines = [line.split(" ||| ")[1] for line in translator.format(found, alignments=True)]
    assert lines == expected[step == "reads"]


def test_the_comparison_counts_the_links_of_the_step_that_was_taught(runs):
    run, split = runs[0]
    gold = gold_of(split, range(6))
    for step, shift in (("writes", 0), ("reads", 1)):
        forward = compare_with_gold(run, split, gold, shift=shift).forward
        counts = gold_counts(taught(run, step), split, gold)
        errors = score_attention(
            [forward[n].linking.weights for n in range(6)], [gold.links[n] for n in range(6)]
        )
        links, sure, *hits = counts["aer"].sum(axis=0)
        assert 100 * (1 - sum(hits) / (links + sure)) == pytest.approx(errors["aer"])
        # Of the attention as it is, for it has shifts of its own.
        mass = [probability_mass(forward[n].weights, gold.links[n].possible) for n in range(6)]
        np.testing.assert_allclose(counts["probability_mass"][:, 0], mass)


def test_each_direction_is_read_where_it_was_taught(runs):
    (run, split), reverse = runs
    gold = gold_of(split, range(6))
    here = taught(run, "reads")
    back = dataclasses.replace(reverse, run=taught(reverse.run, "reads"))
    for forward, backward in ((here, reverse), (run, back)):
        found = compare_with_gold(forward, split, gold, backward)
        assert (found.forward[0].shifted is None) == (forward is run)
        assert (found.reverse[0].shifted is None) == (backward is reverse)


@pytest.mark.parametrize(("step", "expected"), [("writes", 0), ("reads", 1)])
def test_links_are_read_from_the_step_that_was_taught(runs, step, expected):
    (run, split), _ = runs
    run = taught(run, step)
    gold = gold_of(split, [1, 2])
    assert compare_with_gold(run, split, gold).shift == expected
    assert compare_with_gold(run, split, gold, shift=-1).shift == -1


@pytest.mark.parametrize(
    ("base", "lines", "is_doubted"),
    [
        ("0", ["0\t1-1 2-2"], True),
        ("0", ["0\t1-1 0-2"], False),
        ("1", ["0\t1-1"], False),
    ],
)
def test_words_that_seem_to_be_counted_from_one_are_told(gold_file, base, lines, is_doubted):
    noted = []
    gold_file(*lines, base=base, note=noted.append)
    expected = "gold: no link names word 0: counted from 1? --alignment_base=1"
    assert [note.endswith(expected) for note in noted] == [True] * is_doubted


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
def test_white_space_may_be_a_word_that_gold_links_count(tmp_path, kind):
    words = ["\u3000", "the\u00a0cat", "\u2003", "dog"]
    lines = [" ".join(words[number % 3 :] + words[: number % 3]) for number in range(24)]
    for name in ("text.en", "text.de"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = str(tmp_path / "text.en"), str(tmp_path / "text.de")
    run, task = untrained_run(tmp_path / "run", *text, kind=kind)
    split = task.split("test")
    (tmp_path / "gold").write_text("0-0 1-1 3-3\n" * 24)
    gold = GoldFiles(str(tmp_path / "gold")).read([split])
    found = compare_with_gold(run, split, gold)
    assert [*map(list, found.words.sources)] == [line.split(" ") for line in lines]
    assert all(each.weights.shape == (4, 4) for each in found.forward)
    assert all(np.isfinite(value) for value in found.scores(0.3).values())
    (tmp_path / "gold").write_text("0-4\n" * 24)
    with pytest.raises(UserError, match="expected words of sentences of 4 and 4 words"):
        GoldFiles(str(tmp_path / "gold")).read([split])


def test_gold_files_have_links(gold_file):
    with pytest.raises(UserError, match="/gold: expected links, found none in 24 lines"):
        gold_file(*[""] * 24)


def test_gold_files_are_checked_before_there_is_a_run(tmp_path):
    path = tmp_path / "gold"
    path.write_text("0-0 1-1\n")
    GoldFiles(str(path), source=str(path)).check_files(["test"])
    GoldFiles().check_files(["validation", "test"])
    for files, splits, words in (
        (GoldFiles(str(path)), ["validation", "test"], "one --split beside it, found validation,"),
        (GoldFiles(str(path), source="none.en"), ["test"], "none.en: expected"),
        (GoldFiles("none"), ["test"], "none: expected"),
        (GoldFiles(source=str(path)), ["test"], "expected --alignment beside it"),
    ):
        with pytest.raises(UserError, match=words):
            files.check_files(splits)
    path.write_text("0-0 one\n")
    with pytest.raises(UserError, match="gold:1: expected links such as"):
        GoldFiles(str(path)).check_files(["test"])


def test_gold_without_numbers_has_a_line_for_every_pair(runs, gold_file):
    pairs = len(runs[0][1])
    assert gold_file(*["0-0"] * pairs).links.keys() == set(range(pairs))
    for found in (pairs - 1, pairs + 1):
        message = f"/gold: expected {pairs} lines, one for each pair of test, found {found}; "
        with pytest.raises(UserError, match=message):
            gold_file(*["0-0"] * found)


def test_a_link_outside_of_the_words_is_named_as_the_file_has_it(runs, gold_file):
    (_, split), _ = runs
    words = len(split.sources[3].split())
    outside = f"{words + 1}-1"
    message = (
        f"/gold:2: expected words of sentences of {words} and {words} words "
        f"counted from {{}}, found '{outside}'"
    )
    with pytest.raises(UserError, match=message.format(1) + "$"):
        gold_file("0\t1-1", f"3\t1-1 {outside}", base="1")
    with pytest.raises(UserError, match=message.format(0) + "$"):
        gold_file("0\t1-1", f"3\t0-0 {outside}")
    last = f"{words}-{words}"
    with pytest.raises(UserError, match=f"/gold:2: .*found '{last}'; should the base be 1.$"):
        gold_file("0\t1-1", f"3\t1-1 {last}")
    assert gold_file(f"3\t{last}", base="1").links[3].sure == {(words - 1, words - 1)}


def test_a_run_of_the_same_direction_is_no_reverse(runs):
    (run, split), _ = runs
    same = OtherRun("--reverse", "there", run, _task_of(run, split))
    with pytest.raises(UserError, match="--reverse: expected a run of the opposite direction"):
        compare_with_gold(run, split, gold_of(split, [0]), same)


def test_a_reverse_run_on_other_text_is_refused(runs, tmp_path):
    (run, split), _ = runs
    source, target = write_text(tmp_path, seed=1)
    other = OtherRun("--reverse", "other", *untrained_run(tmp_path / "other", target, source))
    with pytest.raises(UserError, match="--reverse: expected the sources '.*' in pair 0 of test"):
        compare_with_gold(run, split, gold_of(split, [0]), other)


def test_an_opponent_has_the_same_sources_and_references(runs, tmp_path):
    (run, split), reverse = runs
    same = OtherRun("--against", "there", run, _task_of(run, split))
    assert same.same_split(split) is split
    with pytest.raises(UserError, match="--against: expected the sources"):
        dataclasses.replace(reverse, flag="--against").same_split(split)
    others = dataclasses.replace(split, references=[["x"], *split.references[1:]])
    with pytest.raises(UserError, match="expected the references '.*' in pair 0 .* found 'x'"):
        OtherRun("--against", "there", run, _task_of(run, others)).same_split(split)
    with pytest.raises(UserError, match=f"expected {len(split)} sources in test, found 2"):
        OtherRun("--against", "there", run, _task_of(run, split.select([0, 1]))).same_split(split)


def test_a_flag_stands_before_what_is_wrong_with_a_run(tmp_path):
    with pytest.raises(UserError, match="^--against: .*expected the directory of a run, found"):
        OtherRun.load("--against", str(tmp_path / "nothing"))


def test_weights_are_distributions(runs):
    (run, split), _ = runs
    found = compare_with_gold(run, split, gold_of(split, [0]))
    sums = np.concatenate([each.weights.sum(axis=1) for each in found.forward])
    np.testing.assert_allclose(sums, 1, atol=1e-5)


def test_gold_links_of_real_text_fit_its_words(data_root):
    """The links count the words of tokenised, lower-cased text; the split has it as published."""
    folder = data_root / "multi30k"
    gold_file = folder / "alignments" / "test_2016_flickr.en-de.tsv"
    if not gold_file.is_file():
        pytest.skip(f"needs gold links: {gold_file} is not there")
    raw = [folder / "raw" / f"test_2016_flickr.{language}.gz" for language in ("en", "de")]
    tok = [folder / "tok" / f"test_2016_flickr.lc.norm.tok.{end}.gz" for end in ("en", "de")]
    texts = [[text.strip() for text in read_lines(path)] for path in raw]
    split = Split(
        *texts,
        references=[[text] for text in texts[1]],
        numbers=list(range(len(texts[0]))),
        name="test",
        source_vocabulary=SymbolVocabulary.train("words", texts[0]),
        target_vocabulary=SymbolVocabulary.train("words", texts[1]),
    )
    gold = GoldFiles(str(gold_file), "0", *map(str, tok)).read([split])
    assert len(gold.links) == 100
    words = split_words(split, gold.source_words, gold.target_words, required=gold.links)
    for number, links in gold.links.items():
        sources, targets = zip(*links.possible, strict=True)
        assert max(sources) < len(words.sources[number])
        assert max(targets) < len(words.targets[number])


def test_tables_have_lines_for_what_was_measured():
    assert format_alignment("test", SCORES) == """\
test, links against gold ones:           precision    recall       AER
  forward                                    71.23     69.00     30.00
test, attention against gold links:          match      mass
  as it is                                   70.00     60.50
  row after                                  12.00      9.00
  column before                              11.00      8.00"""


def test_symmetrised_links_and_thresholds_have_lines_of_their_own():
    more = {
        f"{name}{end}": value
        for end, value in (("_grow_diag", 1.0), ("_threshold", 2.0), ("_threshold_reverse", 3.0))
        for name in ("aer", "alignment_precision", "alignment_recall")
    }
    lines = [line.rsplit(maxsplit=3) for line in format_alignment("t", SCORES | more).splitlines()]
    assert [line[0].strip() for line in lines[1:5]] == [
        "forward", "grow-diag", "forward, by threshold", "reverse, by threshold",
    ]  # fmt: skip
    assert [line[1:] for line in lines[2:5]] == [["1.00"] * 3, ["2.00"] * 3, ["3.00"] * 3]


def _task_of(run, split):
    vocabularies = run.source_vocabulary, run.target_vocabulary
    return TaskData(find_task(run.config.data), *vocabularies, {split.name: split}, len(split))
