"""The README's numbers, and the times of experiments, are those of the records."""

import json
import re

import pytest
from matplotlib.image import imread

from attention_jax.errors import UserError
from experiments import main_results, readme
from experiments.kit.sections import with_sections
from tests.training.untrained import untrained_run, write_text

REPORT = (
    '<testsuites><testsuite name="pytest" errors="0" failures="{failures}" skipped="{skipped}" '
    'tests="12" time="3725.5" /></testsuites>'
)


def test_pages_say_what_the_records_say(repository, monkeypatch):
    monkeypatch.chdir(repository)
    for page, sections in readme.sections().items():
        text = page.read_text(encoding="utf-8")
        assert with_sections(page, sections) == text, (
            f"{page}: its numbers are not those of the records; run `python -m experiments.readme`"
        )


def test_counts_of_tests_are_kept_and_told(tmp_path):
    report, record = tmp_path / "tests.xml", tmp_path / "tests.json"
    report.write_text(REPORT.format(failures=0, skipped=2))
    readme.keep_tests(report, record)
    kept = json.loads(record.read_text())
    assert (kept["passed"], kept["skipped"], kept["seconds"]) == (10, 2, 3725.5)
    said = readme.tests_section(kept)
    assert "\n10 passed, 2 skipped in 3725.50s (1:02:05)\n" in said
    assert f"Python {kept['python']}" in said


@pytest.mark.parametrize(
    ("text", "found"),
    [(REPORT.format(failures=1, skipped=0), "expected no failures, found 1"),
     (REPORT.format(failures=0, skipped="x"), "expected a report of pytest's"),
     ("<testsuites/>", "expected a report of pytest's"), ("{}", "expected a report of pytest's")],
)  # fmt: skip
def test_other_reports_are_one_line_and_keep_nothing(tmp_path, text, found):
    report, record = tmp_path / "tests.xml", tmp_path / "tests.json"
    report.write_text(text)
    with pytest.raises(UserError, match=f"^--tests: {found}.*$"):
        readme.keep_tests(report, record)
    assert not record.exists()


def test_each_number_of_a_comparison_is_on_the_page_that_it_links_to(repository, monkeypatch):
    monkeypatch.chdir(repository)
    rows = [line for line in readme.README.read_text().splitlines() if line.startswith("| [")]
    rows = [row for row in rows if f"]({main_results.RESULTS}/" in row]
    assert len(rows) == len(main_results.COMPARISONS) + 3
    for row in rows:
        page = (repository / re.search(r"\((docs/results/\S+\.md)\)", row)[1]).read_text()
        numbers = re.findall(r"\d+\.\d+(?: ± \d+\.\d+)?", row.rpartition("](")[2])
        assert numbers and all(number in page for number in numbers), row
        assert "commit" in page or " at " in page


def test_the_picture_is_of_a_run(tmp_path):
    run, _ = untrained_run(tmp_path / "run", *write_text(tmp_path))
    readme.draw_words(run, tmp_path / "words.png")
    assert imread(tmp_path / "words.png").shape[1] > 500
