"""Diagnoses: each is made where it should be and not elsewhere, and has a section to read."""

import re

import pytest

from attention_jax.runs.diagnoses import DIAGNOSES, diagnosed

# Statistics with which each is made, and healthy ones.
CASES = {
    "flat attention": ({"attention/entropy": 0.985}, {"attention/entropy": 0.97}),
    "attention to one slot": ({"attention/one_slot": 0.93}, {"attention/one_slot": 0.7}),
    "an untrained diagonal": (
        {"attention/diagonal": 0.95, "accuracy": 0.1},
        {"attention/diagonal": 0.95, "accuracy": 0.9},
    ),
    "empty outputs": ({"outputs/empty": 0.6}, {"outputs/empty": 0.1}),
    "outputs that are all alike": (
        {"outputs/alike": 0.8, "references/alike": 0.1},
        {"outputs/alike": 0.8, "references/alike": 0.7},
    ),
    "outputs that run to their limit": ({"outputs/at_limit": 0.7}, {"outputs/at_limit": 0.2}),
    "a small validation": (
        {"validation/examples": 30, "training/batch": 64},
        {"validation/examples": 64, "training/batch": 64},
    ),
}


@pytest.mark.parametrize("diagnosis", DIAGNOSES, ids=lambda diagnosis: diagnosis.name)
def test_it_is_made_where_it_should_be(diagnosis):
    ill, healthy = CASES[diagnosis.name]
    ((name, line),) = diagnosed({**ill, "loss": 3.0})
    assert name == diagnosis.name and "{" not in line and "\n" not in line
    assert not list(diagnosed(healthy))
    assert not list(diagnosed({}))  # nothing was measured
    early = list(diagnosed(ill, share=0.05))
    assert bool(early) == (diagnosis.name == "a small validation")


def test_each_has_a_section_that_its_line_leads_to(repository):
    page = (repository / "docs/runs.md").read_text()
    headings = re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert [heading.lower() for heading in headings] == [each.name for each in DIAGNOSES]
    for diagnosis in DIAGNOSES:
        ((_, line),) = diagnosed(CASES[diagnosis.name][0])
        assert line.endswith(f"docs/runs.md#{diagnosis.name.replace(' ', '-')}")


def test_numbers_are_said():
    ((_, line),) = diagnosed({"attention/entropy": 0.991})
    assert "with 99.1% of the entropy of equal weights" in line
