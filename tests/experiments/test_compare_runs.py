import pytest

from attention_jax.errors import UserError
from experiments.compare_runs import comparison, named_directories
from tests.experiments.measured import alignments, system, translations


def test_named_directories_reads_pairs():
    assert named_directories(["a=runs/a0", "a=runs/a1", "b=x=y"]) == [
        ("a", "runs/a0"), ("a", "runs/a1"), ("b", "x=y"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "found"), [([], "none"), (["runs/a"], "'runs/a'"), (["=a"], "'=a'"), (["a="], "'a='")]
)
def test_named_directories_says_what_is_wrong(texts, found):
    with pytest.raises(UserError, match=f"expected NAME=DIRECTORY, found {found}"):
        named_directories(texts)


def test_comparison_shows_what_was_measured(numpy_rng):
    found = {
        "base": system(numpy_rng, 2, missing=0.5),
        "taught": system(numpy_rng, 1, missing=0.1),
    }
    for name, rate in (("base", 0.5), ("taught", 0.9)):
        for run in found[name]:
            run["bleu"] = translations(numpy_rng, 0.6)
            run["aer"] = alignments(numpy_rng, rate)
    text = "\n".join(comparison(found))
    assert "| base | 2 |" in text and "| taught | 1 |" in text
    assert "AER ↓" in text and "missing words ↓" in text
    assert "fertility" not in text  # nothing of that table was measured
    (aligned,) = [line for line in text.splitlines() if "taught" in line and "**" in line
                  and line.count("|") == 4]  # fmt: skip
    assert aligned
