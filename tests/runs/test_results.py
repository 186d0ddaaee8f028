from attention_jax.data.tasks.translate import TASK
from attention_jax.runs.results import format_results
from attention_jax.runs.run_directory import RunDirectory


def test_a_result_that_is_not_known_is_not_shown(tmp_path):
    (tmp_path / "results.json").write_text('{"test": {"per": null, "wer": 2}}')
    assert format_results(RunDirectory(tmp_path), ["wer"]).startswith("test        wer 2.00\n")


def test_what_the_task_shows_comes_first_and_the_rest_is_in_the_file(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.add_results("test", {"perplexity": 3.0, "chrf": 2.0, "bleu": 1.0, "step": 7.0})
    directory.add_results("train", {"perplexity": 4.0})
    first, *others = format_results(directory, ["bleu"], ["test"]).splitlines()
    assert first.split() == ["test", "bleu", "1.00", "perplexity", "3.00"]
    assert others == [f"Everything is in {tmp_path}"]


def test_signatures_that_an_evaluation_recorded_stand_below_its_scores(tmp_path):
    for directory in (RunDirectory(tmp_path), RunDirectory(tmp_path).evaluation("news")):
        directory.add_results("test", {"bleu": 1.0})
        directory.record_evaluation("test", {"bleu_signature": "nrefs:1", "text": "0123"})
        first, second, _ = format_results(directory, ["bleu"], table=TASK.table).splitlines()
        assert first == "test        bleu 1.00"
        assert second == "       bleu nrefs:1"


def test_the_last_line_names_the_page_of_the_split_that_was_evaluated_last(tmp_path):
    directory = RunDirectory(tmp_path).evaluation("beam_size=10")
    for split in ("validation", "test", "train"):
        directory.add_results(split, {"bleu": 1.0})
        directory.viewer(split).write_text("")
    last = format_results(directory, ["bleu"], ["validation", "test"]).splitlines()[-1]
    place = tmp_path / "evaluations" / "beam_size=10"
    assert last == f"Everything is in {place}; open {place / 'viewer.test.html'}"
