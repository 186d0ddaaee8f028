"""The conformance battery over mechanisms from outside, such as those that cannot be built."""

import dataclasses
import os
import subprocess
import sys

import pytest

from attention_jax.discovery import VARIABLE
from tests.conformance import test_depths, test_mechanisms
from tests.conformance.battery import (
    another,
    build_case,
    cases_of,
    fields_of,
    needs_of,
    small_config,
    small_score,
)
from tests.conformance.conftest import broken, part_of

PART = '''
"""Dot products."""
import dataclasses
from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.scores import score_dot

PAPER = "of this test"

@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(MechanismConfig):
    name: str = setting("NAME")
    FIELDS

def build(config, query_dim, key_dim):
    BUILD
'''
BUILD = "return MechanismParts(AttentionSpec(score_dot, NORMALIZERS[config.normalizer]), {})"
NORMALIZER = 'normalizer: str = setting("softmax", choices=NORMALIZERS)'
SIZES = (
    "size: int = setting(100, at_least=50)",
    "more: int = setting(20, above=8, at_most=20)",
    "odd: int = setting(9, choices=(9, 11))",
    "share: float = setting(1.0, at_least=0.0, at_most=1.0)",
    "score: str = setting('dot', choices=('dot', 'cosine'))",
    "half_width: int = setting(1, at_least=1)",
)
WRONG_SHAPE = "return MechanismParts(AttentionSpec(lambda *_: _[1]), {})"
RAISING = 'raise NotImplementedError("to be\\nwritten")'
REFUSED = {
    "lacking": ((NORMALIZER, "size: int = setting(at_least=1)"), BUILD),
    "raising": ((NORMALIZER, "num_heads: int = setting(1, at_least=1)"), RAISING),
    "misshapen": ((NORMALIZER,), WRONG_SHAPE),
    "unbearable": (("size: int = setting(3, at_least=5)",), BUILD),
}
CAUSES = {
    "lacking": "(TypeError: ", "raising": "(NotImplementedError: to be)",
    "misshapen": "expected scores that end with the axes (T, S) = (4, 5), a query and a slot, ",
    "unbearable": "(SettingError: size: expected at least 5, found 3)",
}  # fmt: skip


# An objective that computes nothing yet.
UNFINISHED = '''
"""To be written."""
import dataclasses
from attention_jax.objectives import coverage_loss

PAPER = "of this test"

@dataclasses.dataclass(frozen=True)
class Term(coverage_loss.Term):
    def total(self, output, batch):
        raise NotImplementedError("to be written")
'''


def part(name, fields, build):
    text = PART.replace("NAME", name).replace("FIELDS", "\n    ".join(fields))
    return text.replace("BUILD", build)


def test_sizes_are_as_small_as_their_limits_allow(extension):
    fields = "num_heads: int = setting(1, at_least=1, at_most=1)", NORMALIZER, *SIZES
    extension("layers/mechanisms", "sized", part("sized", fields, BUILD))
    cases = cases_of("sized")
    names = [case.name for case in cases]
    assert names[:2] == ["sized-softmax-dot", "sized-sparsemax-dot"]  # no two heads
    assert {case.name for case in cases} >= {"sized-softmax-cosine", "sized-softmax-share=0.5-dot"}
    for case in cases:
        test_mechanisms.test_it_is_built(case)
        config = case.config
        assert (config.size, config.more, config.half_width) == (50, 9, 1)
    config = cases[0].config
    others = dict(test_mechanisms.alternatives(config))
    assert {name: others[name] for name in ("size", "more", "odd", "share", "score")} == {
        "size": 51, "more": 10, "odd": 11, "share": 0.5, "score": "cosine",
    }  # fmt: skip
    assert others["num_heads"] is dataclasses.MISSING
    assert another(fields_of("sized")["half_width"], 1) == 2


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_built_breaks_one_rule_in_one_line(extension, name):
    extension("layers/mechanisms", name, part(name, *REFUSED[name]))
    assert needs_of(name) == () and small_score(name) is None
    for case in cases_of(name):
        assert not case.has_heads and not case.has_window and case.evaluation is None
        with pytest.raises(type(case.refusal)) as found:
            test_mechanisms.test_it_is_built(case)
        line = broken("test_it_is_built", case.name, found.value)
        assert line.startswith(f"{name}") and CAUSES[name] in line and "\n" not in line


def test_a_score_of_one_head_alone_needs_no_field_for_heads(extension):
    extension("layers/mechanisms", "lonely", part("lonely", (NORMALIZER,), BUILD))
    for name in ("local_p", "hard", "monotonic"):
        case = build_case(small_config(name, score=small_config("lonely")))
        assert case.refusal is None
    names = [case.name for case in cases_of("local_p")]
    assert sum("lonely" in name for name in names) == 1 < len(names)
    with pytest.raises(ValueError, match="score.name: expected a score of which .* num_heads,"):
        small_config("multi_head", score=small_config("lonely"))


def test_depths_may_be_refused_in_any_words(extension):
    refused = f'if query_dim != key_dim: raise ValueError("both alike, please")\n    {BUILD}'
    extension("layers/mechanisms", "even", part("even", (NORMALIZER,), refused))
    test_depths.test_queries_and_keys_of_two_depths_are_compared_or_refused(cases_of("even")[0])


def test_what_is_not_built_is_not_tried_for_its_fields_either(extension):
    extension("layers/mechanisms", "misshapen", part("misshapen", *REFUSED["misshapen"]))
    fields = [change for change in test_mechanisms.changes() if change.id.startswith("luong_dot-")]
    config, *_ = fields[0].values
    assert part_of({"config": config}) == part_of({"name": "luong_dot"}) == "luong_dot"
    assert part_of({"request": None}) is None


def test_the_battery_is_collected_and_each_line_names_its_part(tmp_path, repository):
    folder = tmp_path / "layers" / "mechanisms"
    folder.mkdir(parents=True)
    for name, (fields, build) in REFUSED.items():
        (folder / f"{name}.py").write_text(part(name, fields, build))
    (tmp_path / "objectives").mkdir()
    (tmp_path / "objectives" / "unfinished.py").write_text(UNFINISHED)
    names = [*REFUSED, "unfinished"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "--tb=line", "-p", "no:cacheprovider",
         *(f"tests/conformance/test_{name}.py"
           for name in ("mechanisms", "depths", "calls", "objectives")),
         "-k", " or ".join(names)],
        capture_output=True, text=True, cwd=repository, env={**os.environ, VARIABLE: str(tmp_path)},
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    said = {line.split("AssertionError: ")[1] for line in lines if "AssertionError: " in line}
    assert len(said) == sum(line.startswith("FAILED") for line in lines), ended.stdout
    assert {line.split(":")[0].split("-")[0] for line in said} == {*names}
    # Once for a part, however many cases it has.
    assert sum(": it is built from the defaults" in line for line in said) == len(names)
    assert "Traceback" not in ended.stdout and "direct cause" not in ended.stdout
