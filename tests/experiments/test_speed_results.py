"""Results of measuring programs: agreement, pages of several processors, the table of ratios."""

import dataclasses
import json
import types

import pytest

from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.runs import provenance
from experiments.benchmarks import ratios
from experiments.benchmarks.speed import (
    benchmark,
    gpu,
    program,
    report,
    saving,
)
from experiments.benchmarks.speed.harness import (
    Conditions,
    Measurement,
)

QUICK = Conditions(rounds=3, min_seconds=0.0, patience=0.0, set_up_limit=300.0, run_limit=5.0)


def workload(**fields):
    sides = [benchmark.Side(name, benchmark.PROJECT, {}) for name in ("ours", "theirs")]
    return benchmark.Workload("nap", "Napping", "naps", sides, **fields)


def measurement(seconds, check=None):
    ready = {"units": {"naps": 2}, "version": "1", **({} if check is None else {"check": check})}
    return Measurement([seconds] * 3, [0.0] * 3, 1, ready, 1.0, 100.0 * seconds, 50.0)


def result():
    measured = {"ours": measurement(0.5), "theirs": measurement(1.0)}
    return {
        "title": "Napping",
        "unit": "naps",
        "description": {"keep_memory": True, "threads": 2, "conditions": {"rounds": 3}},
        "command": "python -m nap",
        "commit": None,
        "time": "now",
        "hardware": {"cpu": "an abacus"},
        "agreement": {"theirs": 1e-7},
        "contenders": {
            name: benchmark._result(each, measured["ours"], "naps")
            for name, each in measured.items()
        },
        "failures": {"others": "No module named 'others'"},
    }


def test_check_agreement_rejects_another_computation():
    measured = {"ours": measurement(1, [2.0, 4.0]), "theirs": measurement(1, [2.0, 4.0001])}
    found = benchmark.check_agreement(workload(tolerance=1e-3), measured)
    assert found["theirs"] == pytest.approx(2.5e-5)
    with pytest.raises(UserError, match="nap: expected theirs to compute what ours does"):
        benchmark.check_agreement(workload(tolerance=1e-5), measured)
    measured["theirs"].ready["check"] = [2.0, float("nan")]
    with pytest.raises(UserError):
        benchmark.check_agreement(workload(), measured)
    del measured["theirs"].ready["check"]
    assert benchmark.check_agreement(workload(), measured) == {}


def test_check_agreement_allows_for_hypotheses_that_nearly_tie():
    expected, found = [2.0] * 50, [2.0] * 49 + [2.1]
    measured = {"ours": measurement(1, expected), "theirs": measurement(1, found)}
    assert benchmark.check_agreement(workload(near_ties=0.02), measured) == {"theirs": 0.0}
    with pytest.raises(UserError, match="nap: expected theirs to compute what ours does"):
        benchmark.check_agreement(workload(near_ties=0.01), measured)
    measured["theirs"].ready["check"] = [2.0] * 48 + [2.1] * 2
    with pytest.raises(UserError):
        benchmark.check_agreement(workload(near_ties=0.02), measured)
    measured["theirs"].ready["check"] = [2.0] * 49 + [float("nan")]
    with pytest.raises(UserError):
        benchmark.check_agreement(workload(near_ties=0.02), measured)


def test_is_current_notices_other_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "commit", lambda: "c0ffee")
    setting = benchmark.Setting({}, tmp_path, threads=1)
    known = {
        "description": json.loads(json.dumps(benchmark.describe(workload(), setting))),
        "commit": "c0ffee",
        "hardware": benchmark.machine("cpu"),
        "failures": {},
    }
    assert benchmark.is_current(known, workload(), setting)
    assert not benchmark.is_current(None, workload(), setting)
    assert not benchmark.is_current(known, workload(conditions=QUICK), setting)
    assert not benchmark.is_current({**known, "commit": "0"}, workload(), setting)
    failed = {**known, "failures": {"theirs": "No module named 'torch'"}}
    assert not benchmark.is_current(failed, workload(), setting)
    monkeypatch.setattr(provenance, "commit", lambda: "c0ffee-modified")
    modified = {**known, "commit": "c0ffee-modified"}
    assert not benchmark.is_current(modified, workload(), setting)
    assert "at c0ffee, modified, now;" in report.page("Naps", {"nap": [result() | modified]})
    assert not benchmark.is_current(known, workload(), dataclasses.replace(setting, threads=2))


def test_table_gives_speeds_ratios_and_failures():
    first, _, ours, theirs, others = report.table(result()).splitlines()
    assert first.startswith("| contender | ms | naps/s | ours against it |")
    assert ours.startswith("| ours | 500.0 | 4 | 1 |")
    assert theirs.startswith("| theirs | 1000.0 | 2 | 2.00 (2.00–2.00) |")
    assert "not measured: No module named 'others'" in others
    assert {line.count("|") for line in (first, ours, theirs, others)} == {first.count("|")}


def test_write_makes_both_files_and_load_reads_them_back(tmp_path):
    path = tmp_path / "deep" / "speed.json"
    results = {"nap": [result()]}
    report.write(path, results, report.page("Speed", results))
    assert report.load(path)["nap"][0]["title"] == "Napping"
    page = path.with_suffix(".md").read_text()
    assert page.startswith("# Speed\n\nMedians over rounds")
    assert "\n\n## Napping\n\n| contender |" in page
    assert "what equal weights computed: theirs 1.0e-07" in page
    tied = report.page("Speed", {"nap": [result() | {"near_ties": 1 / 64}]})
    assert "computed, but for up to 1.6 % of the values, of near ties in a beam: theirs" in tied
    path.write_text("{")
    with pytest.raises(RunDirectoryError, match="expected results as JSON"):
        report.load(path)
    assert report.load(tmp_path / "none.json") == {}


def test_command_without_paths_keeps_the_other_options():
    program = "python -m experiments.benchmarks.speed.training"
    command, kept = f"{program} --torch_python=/a/b --threads=2 --out=c", f"{program} --threads=2"
    assert benchmark.command_without_paths(command) == kept


def test_contenders_import_the_project_from_the_root_of_the_clone():
    assert (benchmark.ROOT / "attention_jax" / "__init__.py").is_file()


def test_find_interpreters_rejects_a_path_without_python(tmp_path):
    with pytest.raises(UserError, match="expected a Python"):
        benchmark.find_interpreters(str(tmp_path / "python"), "")


def test_results_of_another_processor_stand_beside_the_first():
    old, other = result(), {**result(), "hardware": {"cpu": "a slide rule"}}
    both = report.appended(report.appended([], old), other)
    assert [each["hardware"]["cpu"] for each in both] == ["an abacus", "a slide rule"]
    new = {**result(), "command": "python -m nap --again"}
    assert report.appended(both, new) == [new, other]
    page = report.page("Speed", {"nap": both})
    assert page.count("## Napping") == 1 and page.count("| contender |") == 2
    assert page.index("an abacus") < page.index("a slide rule")


def test_memory_is_told_at_its_peak_and_between_two_repetitions():
    headings, _, ours, theirs, _ = report.table(result()).splitlines()
    assert headings.endswith("| peak memory MiB | steady memory MiB | other load |")
    assert ours.endswith("| 50 | 50 | 0.00 |") and theirs.endswith("| 100 | 50 | 0.00 |")
    older = result()
    del older["contenders"]["ours"]["steady_rss_mib"]
    assert report.table(older).splitlines()[2].endswith("| 50 |  | 0.00 |")
    del older["contenders"]["theirs"]["steady_rss_mib"]
    assert "steady" not in report.table(older)


def saved(cpu, cores):
    found = {"state_mb": 1.0, "step_ms": 1.0, "stall_ms": 1.0, "longest_stall_ms": 1.0}
    ways = {way: {**found, "share_of_time": 0.1} for way in saving.WAYS}
    return {"command": "python", "commit": "c0ffee", "time": "now", "hidden": 8, "every": 1,
            "hardware": {"cpu": cpu, "cores": cores}, "ways": ways}  # fmt: skip


def test_a_page_of_one_result_gets_a_section_for_each_other_processor(tmp_path):
    path = tmp_path / "saving.json"
    path.write_text(json.dumps(saved("an abacus", 1)))  # as it was before there were several
    report.write_beside(path, saving.page, saved("a slide rule", 1))
    results = report.write_beside(path, saving.page, saved("an abacus", 4))
    assert report.load_measured(path) == results
    assert [each["hardware"]["cores"] for each in results] == [4, 1]
    page = path.with_suffix(".md").read_text()
    assert page.startswith(saving.page(results[0]))
    assert page.count("# What saving costs") == 1
    assert page.index("an abacus, 4 cores") < page.index("## On a slide rule\n\nA state of")
    assert report.beside(saving.page, results[:1]) == saving.page(results[0])


def test_a_result_that_names_no_processor_stands_beside_others():
    old, new = {"cores": 2}, saved("an abacus", 2)
    assert report.appended([old], new) == [old, new]


def test_table_of_ratios_has_the_fastest_peer_of_each_row(tmp_path):
    sides = [{"name": "ours", "framework": "project"}, {"name": "theirs", "framework": "torch"}]
    sides += [{"name": "variant", "framework": "project"}, {"name": "slow", "framework": "torch"}]
    measured = result()
    measured["description"]["sides"] = sides
    ours = measured["contenders"]["ours"]
    measured["contenders"]["variant"] = ours
    slower = {"first_against_it": {"median": 3.0, "min": 2.0, "max": 4.0}}
    measured["contenders"]["slow"] = {**ours, **slower}
    alone = {**measured, "description": {**measured["description"], "sides": sides[:1]}}
    report.write(tmp_path / "decoding.json", {"nap": [measured], "alone": [alone]}, "")
    lines = [line for line in ratios.page(tmp_path).splitlines() if line.startswith("|")]
    assert lines[2:] == [
        "| Napping | an abacus, 2 threads | theirs | 2.00 (2.00–2.00) | 2.00 | unknown |"
    ]


def test_a_measuring_program_goes_on_where_a_workload_fails(tmp_path, monkeypatch):
    """And writes its page after each; with the same code it measures what is missing."""
    broken = True

    def run_workload(chosen, setting, log):
        if chosen.name == "dozing" and broken:
            raise UserError("dozing: attention_jax failed")
        described = benchmark.describe(chosen, setting)
        hardware = benchmark.machine(setting.platform)
        return {**result(), "description": described, "hardware": hardware, "failures": {}}

    def sides(setting):
        return [dataclasses.replace(workload(), name=name) for name in ("dozing", "nap")]

    def main():
        started = []
        monkeypatch.setattr(program.cli, "run", lambda main, usage: started.append(main))
        program.run("speed", "", sides, lambda results: " ".join(results))
        started[0]()

    monkeypatch.setattr(program, "run_workload", run_workload)
    monkeypatch.setattr(benchmark, "is_of_this_code", lambda commit: True)
    monkeypatch.setattr(program, "_available_cores", lambda: [0])
    monkeypatch.setattr(program.os, "sched_setaffinity", lambda pid, cores: None, raising=False)
    told = {"OUT": str(tmp_path), "WORKDIR": str(tmp_path), "ONLY": [], "AGAIN": False}
    told |= {"THREADS": 1, "TORCH": "", "JOEYNMT": "", "CTRANSLATE2": "", "KEEP_MEMORY": True}
    for name, value in told.items():
        monkeypatch.setattr(program, f"_{name}", types.SimpleNamespace(value=value))
    with pytest.raises(UserError, match="^dozing: expected measurements, found none"):
        main()
    assert (tmp_path / "speed.md").read_text() == "nap"
    broken = False
    main()
    assert (tmp_path / "speed.md").read_text() == "nap dozing"
    assert {len(found) for found in report.load_results(tmp_path / "speed.json").values()} == {1}


def test_results_of_an_older_program_are_refused(tmp_path):
    (tmp_path / "speed.json").write_text(json.dumps({"nap": result()}))
    with pytest.raises(RunDirectoryError, match="expected lists of results by workload"):
        report.load_results(tmp_path / "speed.json")


def test_on_a_gpu_workloads_are_measured_one_at_a_time_with_the_same_conditions(
    tmp_path, monkeypatch
):
    setting = benchmark.Setting({}, tmp_path, 1, True, "cuda")
    monkeypatch.setattr(benchmark.Setting, "prepare", lambda self, task: None)
    made = gpu.make_workloads(setting)
    assert [each.name for each in made] == [
        *("rnn_64", "rnn_512", "rnn_beam", "transformer_64", "transformer_512"),
        *("transformer_beam", "attention"),
    ]
    assert len({each.conditions for each in made}) == 1
    graphs = [side.name for side in made[0].sides if side.task.get("graphs")]
    assert graphs == ["torch.compile, CUDA graphs"]


def test_page_of_a_gpu_names_it_and_says_how_much_of_its_peak_is_used():
    measured = result()
    ours = measured["contenders"].pop("ours")
    device = {"model_flops": 494.7e9, "device": "NVIDIA H200", "device_mib": 2.0}
    measured["contenders"] = {"attention_jax": {**ours, **device}}
    page = gpu.page({"nap": [measured]})
    # 494.7 GFLOP in half a second, of 494.7 TFLOP/s.
    assert "- Napping, NVIDIA H200: 495 GFLOP in 500.00 ms, 0.2% of the peak" in page
    assert "NVIDIA H200 beside" in page and "device memory MiB" in page
