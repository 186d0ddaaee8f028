"""`launch.evaluate`: a trained run once more, on other splits or with another search."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.experiment import run_experiment
from attention_jax.runs.load import load_run
from tests.training.tiny import tiny_config
from tests.training.untrained import write_text


@pytest.fixture
def copy(trained, tmp_path):
    """A copy of the trained run, to be changed."""
    return shutil.copytree(trained, tmp_path / "run")


def test_evaluate_adds_a_split_and_keeps_the_others(launch, copy):
    before = json.loads((copy / "results.json").read_text())
    result = launch("evaluate", f"--workdir={copy}", "--split=validation")
    assert result.code == 0, result.err
    results = json.loads((copy / "results.json").read_text())
    assert results["test"] == before["test"]
    assert results["validation"]["bleu"] > 95.0
    assert result.out.splitlines()[-1].endswith(f"{copy}; open {copy / 'viewer.validation.html'}")
    assert len((copy / "predictions.validation.txt").read_text().splitlines()) == len(
        (copy / "alignments.validation.txt").read_text().splitlines()
    )


def test_evaluate_keeps_the_results_of_another_search_apart(launch, copy):
    before = {path: path.read_bytes() for path in copy.iterdir() if path.is_file()}
    arguments = "evaluate", f"--workdir={copy}", "--split=test"
    result = launch(*arguments, "--search.method=greedy")
    assert result.code == 0, result.err
    place = copy / "evaluations" / "method=greedy"
    assert result.out.splitlines()[-1].endswith(f"{place}; open {place / 'viewer.test.html'}")
    results = json.loads((place / "results.json").read_text())
    assert {*results} == {"test"} and results["test"]["bleu"] > 95.0
    how = json.loads((place / "evaluation.json").read_text())["test"]
    assert how["search"]["method"] == "greedy"
    assert {path.name for path in place.iterdir()} >= {"predictions.test.tsv", "plots"}
    assert {path: path.read_bytes() for path in before} == before


def test_evaluate_scores_any_text(launch, copy, trained, tmp_path):
    before = (copy / "results.json").read_text()
    source, target = tmp_path / "digits.src", tmp_path / "digits.tgt"
    source.write_text("12\n345\n6\n")
    target.write_text("one two\nthree four five\nnine\n")
    gold = tmp_path / "gold"
    gold.write_text("0-0 1-1\n0-0 1-1 2-2\n0-0\n")
    words = tmp_path / "words"
    words.write_text("1 2\n3 4 5\n6\n")
    arguments = ["evaluate", f"--workdir={copy}", f"--target={target}"]
    result = launch(*arguments, f"--source={source}", f"--alignment={gold}",
                    f"--alignment_source={words}", f"--against={trained}")  # fmt: skip
    assert result.code == 0, result.err
    place = copy / "evaluations" / "digits"
    assert (place / "predictions.digits.txt").read_text() == "one two\nthree four five\nsix\n"
    scores = json.loads((place / "results.json").read_text())["digits"]
    assert scores["aer"] == 0 and 50 < scores["chrf"] < 100
    assert scores["nll"] > 0.5  # of a reference that is wrong
    with np.load(place / "resamples.digits.npz") as left:
        assert {name: tuple(left[name][:2]) for name in ("aer", "chrf")} == {
            "aer": (3, 0.0), "chrf": (3, pytest.approx(scores["chrf"])),
        }  # fmt: skip
    (comparison,) = json.loads((place / "comparison.digits.json").read_text())
    assert comparison["sentences"] == 3 and comparison["metrics"]["bleu"]["difference"] == 0
    page = _page(place / "viewer.digits.html")
    assert len(page["sentences"]) == 3 and page["sentences"][0]["sure"]
    assert (copy / "results.json").read_text() == before
    source.write_text("1\n2\n3\n")
    error = launch(*arguments, f"--source={source}").error
    assert error == (f"--name: expected another than 'digits', for {place} holds results of "
                     "another text")  # fmt: skip
    assert launch(*arguments, f"--source={source}", "--name=more").code == 0
    assert (copy / "evaluations" / "more" / "results.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source=TEXT"], "--target: expected the references of --source, found none"),
        (["--target=TEXT"], "--source: expected one file, found none"),
        (["--source=TEXT", "--source=TEXT", "--target=TEXT"], "--source: expected one file, found"),
        (["--source=nowhere", "--target=TEXT"], "nowhere: expected a text file, found none"),
        (["--source=TEXT", "--target=TEXT", "--split=test"], "--split: expected none beside"),
        (["--source=TEXT", "--target=TEXT", "--name=a/b"], "--name: expected letters, digits"),
        (["--source=TEXT", "--target=TEXT", f"--name={'漢' * 34}"], "at most 100 bytes of"),
        (["--source=TEXT", "--target=TEXT", "--dropped_words"], "--dropped_words: expected the tr"),
        (["--source=EMPTY", "--target=EMPTY"], "empty: expected one sentence a line, found an"),
    ],
)
def test_evaluate_refuses_texts_that_do_not_serve(launch, trained, tmp_path, arguments, message):
    (tmp_path / "text").write_text("1\n")
    (tmp_path / "empty").write_text("")
    places = {"TEXT": str(tmp_path / "text"), "EMPTY": str(tmp_path / "empty")}
    for name, path in places.items():
        arguments = [argument.replace(name, path) for argument in arguments]
    assert message in launch("evaluate", f"--workdir={trained}", *arguments).error


def test_evaluate_repeats_the_results_of_training(launch, copy):
    before = json.loads((copy / "results.json").read_text())
    predictions = (copy / "predictions.test.txt").read_text()
    (copy / "results.json").unlink()
    assert launch("evaluate", f"--workdir={copy}", "--split=test").code == 0
    assert json.loads((copy / "results.json").read_text())["test"] == before["test"]
    assert (copy / "predictions.test.txt").read_text() == predictions


def test_evaluate_refuses_an_unknown_split(launch, copy):
    error = launch("evaluate", f"--workdir={copy}", "--split=test,dev").error
    assert error == "--split: expected one of train, validation, test, found 'dev'"
    error = launch("evaluate", f"--workdir={copy}", "--split=").error
    assert error == "--split: expected one of train, validation, test, found none"


def test_evaluate_says_how_much_is_left_out_or_said_twice(launch, copy):
    before = json.loads((copy / "results.json").read_text())["test"]  # by launch.train
    assert {"repeated_2gram", "excess_words", "missing_words", "dropped_source",
            "coverage_deviation", "attention_entropy"} <= {*before}  # fmt: skip
    assert "dropped_words" not in before
    result = launch("evaluate", f"--workdir={copy}", "--split=test", "--dropped_words")
    assert result.code == 0, result.err
    after = json.loads((copy / "results.json").read_text())["test"]
    assert before.items() <= after.items()
    # Numbers are spelled out digit by digit, all of them: hardly a digit is without its word.
    assert after["dropped_words"] < 15 and after["reference_dropped_words"] < 15


def test_evaluate_writes_sources_beside_outputs(launch, copy):
    rows = [line.split("\t") for line in (copy / "predictions.test.tsv").read_text().splitlines()]
    assert rows[0] == ["source", "output", "reference"] and {len(row) for row in rows} == {3}
    outputs = (copy / "predictions.test.txt").read_text().splitlines()
    assert [row[1] for row in rows[1:]] == outputs
    assert [row[2] for row in rows[1:21]] == [_spelled(row[0]) for row in rows[1:21]]


def test_evaluate_compares_with_another_run(launch, copy, trained):
    result = launch("evaluate", f"--workdir={copy}", "--split=test", f"--against={trained}",
                    "--search.method=greedy")  # fmt: skip
    assert result.code == 0, result.err
    assert f"test against {trained}, difference with 95 % interval:" in result.out
    assert "  searched otherwise: method greedy - beam\n" in result.out
    place = copy / "evaluations" / "method=greedy"
    (comparison,) = json.loads((place / "comparison.test.json").read_text())
    assert comparison["search"]["method"] == "greedy"
    assert comparison["against_search"]["method"] == "beam"
    assert not (trained / "comparison.test.json").exists()
    results = json.loads((place / "results.json").read_text())["test"]
    found = comparison["metrics"]["bleu"]
    assert found["score"] == pytest.approx(results["bleu"])
    assert found["difference"] == pytest.approx(found["score"] - found["against"])
    assert found["low"] <= found["difference"] <= found["high"] and 0 < found["p_value"] <= 1
    views = _page(place / "viewer.test.html")["views"]
    names = (f"{copy.parent.name}/run", f"{trained.parent.name}/run")
    assert views == [*names, *(f"{name}, references" for name in names)]


def test_evaluate_compares_with_several_runs_and_earlier_steps(launch, copy, trained):
    steps = sorted(int(path.name) for path in (copy / "checkpoints").glob("[0-9]*"))
    places = [f"{copy}@{steps[0]}", str(trained)]
    result = launch("evaluate", f"--workdir={copy}", "--split=test",
                    f"--against={','.join(places)}")  # fmt: skip
    assert result.code == 0, result.err
    assert all(f"test against {place}, difference" in result.out for place in places)
    found = json.loads((copy / "comparison.test.json").read_text())
    assert [each["against_step"] for each in found] == [steps[0], load_run(trained).step]
    views = _page(copy / "viewer.test.html")["views"]
    assert len(views) == 6 and any(f", step {steps[0]}" in view for view in views)
    error = launch("evaluate", f"--workdir={copy}", f"--against={copy}@7").error
    assert f"--against: {copy / 'checkpoints'}: expected step 7, found {steps[0]}" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against=nowhere"], "--against: "),
        (["--reverse=nowhere"], "--reverse: expected --alignment beside it, found none"),
        (["--alignment_threshold=0.2"], "--alignment_threshold: expected --alignment beside it"),
        (["--alignment_threshold=2"], "alignment_threshold"),
        (["--alignment_threshold=nan", "--alignment=a"], "--alignment_threshold: expected 0 to 1"),
        (["--alignment_base=1"], "--alignment_base: expected --alignment beside it, found none"),
        (["--alignment_source=a"], "--alignment_source: expected --alignment beside it"),
        (["--alignment_shift=1"], "--alignment_shift: expected --alignment beside it, found none"),
        (["--attribution=occlusion"], "--attribution: expected --alignment beside it, found none"),
        (["--alignment_shift=2"], "--alignment_shift: expected a whole number from -1 to 1, found"),
    ],
)
def test_evaluate_refuses_what_does_not_go_together(launch, copy, arguments, message):
    before = (copy / "run.json").read_text()
    assert message in launch("evaluate", f"--workdir={copy}", "--split=test", *arguments).error
    assert (copy / "run.json").read_text() == before


def test_viewer_of_one_run_is_by_token_and_titles_are_texts(trained):
    page = _page(trained / "viewer.test.html")
    assert page["views"] == [trained.name] and page["title"] == f"{trained.name}, test"
    first = page["sentences"][0]
    assert first["source"][-1] == "</s>" and "</s>" not in first["text"] + first["reference"]
    assert {*first["views"][0]["scores"]} == {"entropy", "coverage deviation"}


def _page(path):
    data = re.search('<script type="application/json" id="data">(.*?)</script>', path.read_text())
    return json.loads(data[1])


def _spelled(digits):
    names = "zero one two three four five six seven eight nine".split()
    return " ".join(names[int(digit)] for digit in digits)


def test_evaluate_refuses_vocabularies_of_another_size_and_damaged_ones(launch, copy):
    records = list((copy / "vocab").glob("*/vocabulary.json"))
    assert len(records) == 2
    for path in records:
        record = json.loads(path.read_text())
        SymbolVocabulary(record["kind"], record["symbols"][:-1]).save(path.parent)
    error = launch("evaluate", f"--workdir={copy}", "--split=test").error
    assert re.search(r"params/output is \S+\[14,\d+] in the checkpoint, \S+\[13,\d+] by", error)
    records[0].write_text('{"kind": "words"}')
    error = launch("evaluate", f"--workdir={copy}", "--split=test").error
    assert error == f"{records[0]}: expected a value named 'sha256', found none"


def test_evaluate_names_what_is_damaged(launch, copy):
    for path in (copy / "checkpoints").rglob("*"):
        if path.is_file() and path.name == "manifest.json":
            path.write_text("{")
    result = launch("evaluate", f"--workdir={copy}", "--split=test")
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith("error: checkpoint step ")
    assert "manifest.json is damaged; there is no good one before it" in result.err
    assert len(list((copy / "checkpoints").glob("[0-9]*"))) >= 1  # left where they are


def test_evaluate_refuses_a_run_without_checkpoints(launch, copy):
    shutil.rmtree(copy / "checkpoints")
    assert "no checkpoint yet" in launch("evaluate", f"--workdir={copy}", "--split=test").error


def test_evaluate_names_a_broken_config(launch, copy):
    (copy / "config.json").write_text("{")
    assert "config.json: expected JSON" in launch("evaluate", f"--workdir={copy}").error


def test_evaluate_compares_attention_with_gold_links(launch, copy, tmp_path):
    outputs = (copy / "predictions.test.txt").read_text().splitlines()
    gold = tmp_path / "gold"
    # A digit for each word, in the same order; lines are numbered as in a file of some pairs only.
    links = [" ".join(f"{n}-{n}" for n in range(len(text.split()))) for text in outputs[:20]]
    gold.write_text("".join(f"{number}\t{line}\n" for number, line in enumerate(links)))
    digits = tmp_path / "digits"
    digits.write_text("".join(f"{line}\n" for line in _digits(outputs)))
    arguments = ["evaluate", f"--workdir={copy}", "--split=test", f"--alignment={gold}",
                 f"--alignment_source={digits}"]  # fmt: skip
    result = launch(*arguments)
    assert result.code == 0, result.err
    assert "aer" in result.out
    scores = json.loads((copy / "results.json").read_text())["test"]
    assert scores["aer"] < 10 and scores["match"] > 90 and scores["bleu"] > 95
    assert scores["match"] > max(scores["match_before"], scores["match_after"])
    page = _page(copy / "viewer.test.html")
    assert page["views"] == ["run", "run, references"]
    assert [bool(one["sure"]) for one in page["sentences"]].count(True) == 20
    first = page["sentences"][0]
    assert first["source"] == digits.read_text().splitlines()[0].split()
    assert first["target"] == outputs[0].split() and first["text"]
    assert all("reference AER" in view["scores"] for view in first["views"])
    assert "reference AER" not in page["sentences"][20]["views"][1]["scores"]
    error = launch(*arguments, f"--reverse={copy}").error
    assert error == "--reverse: expected a run of the opposite direction, found one of the same"
    error = launch(*arguments, "--attribution=occlusion,shap").error
    assert error.startswith("--attribution: expected input_gradient, ") and "'shap'" in error
    more = launch(*arguments, "--alignment_threshold=0.5", "--alignment_shift=1",
                  "--attribution=occlusion,value_norms")  # fmt: skip
    _check_attributions(copy, more, scores)
    assert more.code == 0 and "aer_threshold" in more.out and not more.err.count("counted from")
    shifted = json.loads((copy / "results.json").read_text())["test"]
    assert shifted["alignment_shift"] == 1 and shifted["aer"] > 50
    assert shifted["match"] == scores["match"]
    for text, message in (
        ("0\t0-0 99-0\n", "gold:1: expected words of sentences of"),
        ("99999\t0-0\n", "expected pairs of test, below"),
        ("0\t0-x\n", "expected links such as 0-1"),
    ):
        gold.write_text(text)
        assert message in launch(*arguments).error
    assert "expected one --split" in launch(*arguments[:2], f"--alignment={gold}",
                                            "--split=test,validation").error  # fmt: skip
    gold.write_text("0\t0-0\n")
    digits.write_text("1 2\n")
    assert "lines, one for each pair, found 1" in launch(*arguments).error


def _check_attributions(copy, evaluated, attention):
    """Of 20 pairs with gold links, by two methods, where attention is shifted by a step."""
    scores = json.loads((copy / "results.json").read_text())["test"]
    # What a word's prediction depends on is no matter of steps.
    assert scores["aer_occlusion"] < 10 and scores["aer_value_norms"] > 50 < scores["aer"]
    assert scores["match_occlusion"] > 90 and "saer_occlusion" in scores
    assert "aer_threshold_occlusion" in scores and "match_before_occlusion" not in scores
    for row in ("occlusion", "occlusion, by threshold", "value norms"):
        assert f"  {row}  " in evaluated.out
    page = _page(copy / "viewer.test.html")
    assert page["views"] == ["run", "run, references", "run, references, occlusion",
                             "run, references, value norms"]  # fmt: skip
    assert len(page["sentences"]) == 20
    assert page["sentences"][0]["views"][2]["scores"]["reference AER"] == 0
    with np.load(copy / "attributions.test.npz") as arrays:
        tokens, read = arrays["0/tokens"], arrays["0/source_tokens"]
        assert arrays["19/line"] == 19 and tokens[-1] == read[-1] == "</s>"
        assert arrays["0/occlusion"].shape == arrays["0/value_norms"].shape
        assert arrays["0/occlusion"].shape == (len(tokens), len(read))
        assert arrays["0/occlusion"].min() < 0 < arrays["0/value_norms"].min()


def _digits(outputs):
    names = "zero one two three four five six seven eight nine".split()
    return [" ".join(str(names.index(word)) for word in text.split()) for text in outputs]


def test_evaluate_refuses_other_vocabularies_of_the_same_size(launch, copy):
    (folder,) = {path.parent for path in (copy / "vocab").glob("*/vocabulary.json")
                 if "source" in path.parent.name}  # fmt: skip
    record = json.loads((folder / "vocabulary.json").read_text())
    symbols = record["symbols"][-1:] + record["symbols"][:-1]
    SymbolVocabulary(record["kind"], symbols).save(folder)
    error = launch("evaluate", f"--workdir={copy}", "--split=test").error
    assert "was trained with other vocabularies than those in" in error


def test_evaluate_refuses_a_checkpoint_of_another_run(launch, copy):
    config = json.loads((copy / "config.json").read_text())
    config["objectives"]["nll"]["label_smoothing"] = 0.123
    (copy / "config.json").write_text(json.dumps(config))
    error = launch("evaluate", f"--workdir={copy}", "--split=test").error
    assert "is of another run: objectives.nll.label_smoothing was" in error
    assert "here it is 0.123" in error


def test_evaluate_writes_what_replaces_unknown_words(launch, copy, tmp_path):
    dictionary = tmp_path / "words.tsv"
    dictionary.write_text("".join(f"{digit}\tN\n" for digit in range(10)))
    result = launch(
        "evaluate", f"--workdir={copy}", "--split=test", "--search.no_repeat_ngram_size=1",
        "--search.min_length_ratio=9", "--search.method=greedy", "--search.replace_unknown",
        f"--search.unknown_dictionary={dictionary}",
    )  # fmt: skip
    assert result.code == 0, result.err
    (place,) = (copy / "evaluations").iterdir()
    for line in (place / "predictions.test.txt").read_text().splitlines():
        assert len(line.split()) == 11 and "N" in line.split() and "<unk>" not in line
    search = json.loads((place / "evaluation.json").read_text())["test"]["search"]
    assert search["replace_unknown"] and search["unknown_dictionary"] == str(dictionary)
    assert '"N' in (place / "viewer.test.html").read_text()


def test_evaluate_is_told_where_a_text_is_now(launch, tmp_path):
    (old := tmp_path / "old").mkdir()
    source, target = write_text(old)
    data = ParallelConfig(train_source=source, train_target=target, batch_size=8,
                          subwords=SubwordsConfig(kind="words"))  # fmt: skip
    config = dataclasses.replace(tiny_config(num_steps=1, evaluation={"splits": ()}), data=data)
    run_experiment(config, tmp_path / "run")
    old.rename(new := tmp_path / "new")
    command = ("evaluate", f"--workdir={tmp_path / 'run'}", "--split=test")
    # What was held out of the training is in the run.
    assert launch(*command).code == 0
    message = "expected the text of data.train_source, found no file; if it has moved, --data."
    assert message in launch(*command, "--dropped_words").error
    assert message in launch(*command[:2], "--split=train").error
    options = [f"--data.train_{side}={new / name}"
               for side, name in (("source", "text.en"), ("target", "text.de"))]  # fmt: skip
    assert launch(*command, *options).code == 0
    assert "found others for train" in launch(*command, options[0],
                                              f"--data.train_target={new / 'text.en'}").error
    assert "--data.test_source: no such field" in launch(*command, "--data.test_source=a").error
