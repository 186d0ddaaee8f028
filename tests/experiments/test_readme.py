"""The README's numbers are those of the records."""

import re

from matplotlib.image import imread

from experiments import main_results, readme
from experiments.kit.sections import with_sections
from tests.training.untrained import untrained_run, write_text


def test_readme_says_what_the_records_say(repository, monkeypatch):
    monkeypatch.chdir(repository)
    text = readme.README.read_text(encoding="utf-8")
    assert with_sections(readme.README, readme.sections()) == text, (
        "README.md: its numbers are not those of the records; run `python -m experiments.readme`"
    )


def test_each_number_of_a_comparison_is_on_the_page_that_it_links_to(repository, monkeypatch):
    monkeypatch.chdir(repository)
    rows = [line for line in readme.README.read_text().splitlines() if line.startswith("| [")]
    rows = [row for row in rows if f"]({main_results.RESULTS}/" in row]
    assert len(rows) == len(main_results.COMPARISONS) + 2
    for row in rows:
        page = (repository / re.search(r"\((docs/results/\S+\.md)\)", row)[1]).read_text()
        numbers = re.findall(r"\d+\.\d+(?: ± \d+\.\d+)?", row.rpartition("](")[2])
        assert numbers and all(number in page for number in numbers), row
        assert "commit" in page or " at " in page


def test_the_picture_is_of_a_run(tmp_path):
    run, _ = untrained_run(tmp_path / "run", *write_text(tmp_path))
    readme.draw_words(run, tmp_path / "words.png")
    assert imread(tmp_path / "words.png").shape[1] > 500
