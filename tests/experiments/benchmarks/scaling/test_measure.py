"""The measuring program at tiny sizes; no time is judged."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attention_jax.errors import UserError
from attention_jax.runs import provenance
from experiments.benchmarks.scaling import analysis, measure, page
from experiments.benchmarks.scaling.series import CPU, GPU, all_series
from experiments.benchmarks.scaling.subjects import Subject
from experiments.benchmarks.speed.harness import Conditions
from experiments.kit.machine import hardware

# ---- Series --------------------------------------------------------------------------------------


def test_series_change_what_their_axis_says():
    series = {each.name: each for each in all_series(CPU, 1)}
    assert list(series) == ["batch", "length", "hidden", "attention", "strong", "weak"]
    assert [point.subject.batch for point in series["batch"].points] == [8, 16, 32, 64]
    assert all(
        point.x == point.subject.source_length == point.subject.target_length
        for point in series["length"].points
    )
    strong, weak = series["strong"].points, series["weak"].points
    assert [point.devices for point in strong] == [point.devices for point in weak] == [1, 2, 4, 8]
    assert len({point.subject.batch for point in strong}) == 1
    assert len({point.subject.batch / point.devices for point in weak}) == 1


@pytest.mark.parametrize("smoke", [True, False])
@pytest.mark.parametrize(("platform", "devices"), [(CPU, 1), (GPU, 1), (GPU, 6)])
def test_every_point_can_be_built_and_divided(platform, devices, smoke):
    for series in all_series(platform, devices, smoke=smoke):
        for point in series.points:
            assert point.devices <= max(devices, 8) and point.subject.batch % point.devices == 0
            attention = point.subject.build().config.attention.name
            is_recurrent = point.subject.model == "recurrent"
            assert attention == (point.subject.attention if is_recurrent else "multi_head")


def test_accelerators_compare_types_and_measure_one_number_at_a_time():
    series = all_series(GPU, 4)
    assert {point.line for point in series[0].points} == {
        "recurrent float32", "recurrent bfloat16", "transformer float32", "transformer bfloat16",
    }  # fmt: skip
    assert all(len(group) == 1 for each in series for group in each.groups(GPU))
    assert [point.devices for point in series[-1].points] == [1, 2, 4]
    assert "XLA_FLAGS" not in series[-1].points[-1].contender(GPU).environment


def test_a_cpu_is_divided_for_each_number(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_other=1")
    contender = all_series(CPU, 1)[-1].points[-1].contender(CPU)
    assert contender.environment["XLA_FLAGS"] == (
        "--xla_other=1 --xla_force_host_platform_device_count=8"
    )


def test_mechanisms_have_the_depth_of_the_model():
    subject = Subject(2, 30, 3, 8, 16, attention="local_p")
    assert subject.build().config.attention.half_width == 10
    subject = Subject(2, 30, 3, 8, 16, dtype="bfloat16")
    assert subject.build().config.attention.attention_dim == 8
    assert subject.build().config.dtype == "bfloat16"


# ---- What times say ------------------------------------------------------------------------------


def test_growth_is_the_slope_of_a_line():
    assert analysis.growth([1, 2, 4], [5.0, 7.0, 11.0]) == pytest.approx((2.0, 3.0))


def test_simulated_devices_have_overhead():
    seconds = {1: 2.0, 4: 3.0}
    assert analysis.partitioning_overhead(seconds, grows=False) == {1: 0.0, 4: 0.5}
    seconds = {1: 2.0, 4: 10.0}
    assert analysis.partitioning_overhead(seconds, grows=True) == {1: 0.0, 4: 0.25}


def test_real_devices_have_efficiency():
    assert analysis.efficiency({1: 2.0, 4: 1.0}, grows=False) == {1: 1.0, 4: 0.5}
    assert analysis.efficiency({1: 2.0, 4: 2.5}, grows=True) == {1: 1.0, 4: 0.8}


def test_utilisation_is_of_all_devices():
    assert analysis.utilisation(flops=6e12, seconds=3.0, devices=2, peak=2e12) == 0.5
    assert analysis.peak_flops("cpu") is None
    assert analysis.peak_flops("cpu", 5e10) == 5e10
    assert analysis.peak_flops("NVIDIA H200") == 989e12


# ---- Pages ---------------------------------------------------------------------------------------


def result(
    xs, milliseconds, *, line="float32", device="cpu", memory=None, load=0.0, cpu="an abacus"
):
    def around(value):
        return {"median": value, "min": value, "max": value}

    points = [
        {
            "line": line, "x": x, "devices": x, "milliseconds": around(ms),
            "tokens_per_second": around(1e6 / ms), "flops": 1e9, "peak_rss_mib": 100.0,
            "memory": memory or {"memory/host_peak": 1.0}, "other_load": around(load),
            "device": device, "version": "jax 1", "seconds": [ms / 1e3],
        }
        for x, ms in zip(xs, milliseconds, strict=True)
    ]  # fmt: skip
    return {
        "title": "A title", "axis": "devices", "description": [], "command": "python -m it",
        "conditions": {"rounds": 3}, "commit": None, "time": "now", "failures": {},
        "hardware": {"cpu": cpu, "cores": 2}, "points": points,
        "load_average": {"before": [2.5, 1.0, 1.0], "after": [3.5, 1.0, 1.0]},
    }  # fmt: skip


def test_page_of_a_cpu_says_what_simulated_devices_show():
    text = page.page(CPU, {"weak": [result([1, 2], [10.0, 25.0])]})
    assert "overhead of partitioning" in text
    assert "| float32 | 2 | 25.0 (25.0–25.0) | 40,000 | 40.0 | 100 | 25% |" in text
    assert "The machine was idle otherwise" in text and "load average 2.5 before, 3.5" in text


def test_page_says_that_a_machine_was_shared():
    assert "**The machine was shared**, so these numbers are rough" in page.page(
        CPU, {"batch": [result([1], [10.0], load=1.5)]}
    )


def test_page_of_a_gpu_gives_utilisation_memory_and_efficiency():
    memory = {"memory/device": 1.0, "memory/device_peak": 3 * 2**20}
    strong = result([1, 2], [10.0, 8.0], device="NVIDIA H200", memory=memory)
    text = page.page(GPU, {"strong": [{**strong, "peak_flops": 1e12}]})
    assert "of the bfloat16 peak" in text and "Simulated" not in text
    assert "| float32 | 2 | 8.0 (8.0–8.0) | 125,000 | 125.0 | 6.2% | 3 | 62% |" in text


def test_page_gives_the_growth_of_mechanisms():
    slow = result([100, 200], [10.0, 30.0], line="bahdanau")
    slow["points"] += result([100, 200], [5.0, 6.0], line="none")["points"]
    text = page.page(CPU, {"attention": [slow]})
    assert "bahdanau 200, none 10. What `none` grows by is the encoder." in text


def test_page_has_a_table_for_each_processor_and_names_it():
    found = [result([1, 2], [10.0, 8.0]), result([1, 2], [5.0, 4.0], cpu="a slide rule")]
    text = page.page(CPU, {"weak": found})
    assert text.count("## A title") == 1 and text.count("| devices | ms a step |") == 2
    first, second = text.index("an abacus, 2 cores"), text.index("a slide rule, 2 cores")
    assert text.index("| 10.0 (10.0–10.0) |") < first < text.index("| 5.0 (5.0–5.0) |") < second
    assert page.page(CPU, {"weak": found[:1]}) == text[: text.index("\n\n", first)] + "\n"


def test_page_names_what_failed():
    broken = {**result([1], [10.0]), "failures": {"float32 8": "out of memory"}}
    assert "| float32 8 | not measured: out of memory |" in page.page(CPU, {"strong": [broken]})


def test_figure_has_a_panel_for_each_series(tmp_path):
    results = dict.fromkeys(("batch", "attention", "weak"), [result([1, 2], [10.0, 8.0])])
    page.draw(CPU, results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


# ---- The program ---------------------------------------------------------------------------------


def test_unknown_series_are_refused():
    with pytest.raises(UserError, match="--only: expected some of batch, .*, found 'btach'"):
        measure.chosen(all_series(CPU, 1), ["btach"])


def test_a_platform_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="--platform: expected tpu that JAX can use"):
        measure.find_platform("tpu")


def test_an_error_of_jax_without_a_message_is_not_shown(monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="Traceback ...\nAssertionError\n")
    monkeypatch.setattr(measure.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError, match="^--platform: expected gpu that JAX can use, found none$"):
        measure.find_platform("gpu")


@pytest.fixture
def asked(monkeypatch):
    """Sets what the command line asks for, on a machine whose series are measured at once.

    It is a CPU, or another one of the platform `on`, whose devices have the name `device`.
    """

    def ask(cpu="an abacus", on=CPU, device="cpu", **changes):
        values = {"platform": CPU, "only": ["batch", "weak"], "again": False, "rounds": 1,
                  "peak_tflops": 0.0, "out": None, "workdir": "runs", "smoke": False}  # fmt: skip
        values |= changes
        monkeypatch.setattr(measure, "cli", SimpleNamespace(value=values.__getitem__))
        monkeypatch.setattr(measure, "hardware", lambda: {"cpu": cpu, "cores": 2})
        monkeypatch.setattr(measure, "find_platform", lambda asked: (on, 1, device))

    def run(series, platform, here, *_):
        return {**result([1, 2], [10.0, 8.0]), "hardware": here}

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(measure, "is_current", lambda result, *_: result is not None)
    return ask


def test_what_is_tiny_does_not_replace_what_was_measured(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked(smoke=True)
    measure.main()
    assert (tmp_path / "runs/smoke_results/scaling/cpu.md").exists()
    assert not (tmp_path / "docs").exists()


def test_a_peak_is_kept_with_results_that_were_measured_before(asked, tmp_path, capsys):
    asked(out=str(tmp_path))
    measure.main()
    path = tmp_path / "cpu.md"
    assert "peak" not in path.read_text().replace("peak memory", "")
    (tmp_path / "cpu.png").unlink()
    asked(out=str(tmp_path), peak_tflops=0.001)
    measure.main()
    assert "measured already" in capsys.readouterr().out
    assert path.read_text().count("of the bfloat16 peak") == 2
    assert (tmp_path / "cpu.png").exists()
    asked(out=str(tmp_path))
    measure.main()
    assert path.read_text().count("of the bfloat16 peak") == 2


def test_results_of_other_processors_are_kept(asked, tmp_path, capsys):
    """Also those of a file from before there were several."""
    path, old = tmp_path / "cpu.json", result([1, 2], [70.0, 60.0])
    path.write_text(json.dumps({"batch": old}))
    asked(cpu="a slide rule", out=str(tmp_path))
    measure.main()
    found = json.loads(path.read_text())
    assert found["batch"][0] == old and [*map(len, found.values())] == [2, 1]
    assert found["batch"][1]["hardware"]["cpu"] == "a slide rule"
    asked(out=str(tmp_path), only=["batch"], peak_tflops=0.001)  # on the first one again
    measure.main()
    assert "batch: measured already" in capsys.readouterr().out
    found = json.loads(path.read_text())["batch"]
    assert found[0] == {**old, "peak_flops": 1e9} and "peak_flops" not in found[1]
    asked(out=str(tmp_path), only=["batch"], again=True)
    measure.main()
    first, second = json.loads(path.read_text())["batch"]
    assert first["points"] != old["points"] and second == found[1]


def test_devices_of_another_kind_are_another_processor(asked, tmp_path):
    for device in ("TPU v4", "TPU v5p", "TPU v4"):
        asked(on="tpu", device=device, out=str(tmp_path), only=["batch"])
        measure.main()
    found = json.loads((tmp_path / "tpu.json").read_text())["batch"]
    assert [each["hardware"]["tpu"] for each in found] == ["TPU v4", "TPU v5p"]


def test_results_that_are_none_are_one_line(asked, tmp_path):
    for content in ([1], {"batch": 1}):
        (tmp_path / "cpu.json").write_text(json.dumps(content))
        asked(out=str(tmp_path))
        with pytest.raises(UserError, match=r"cpu.json: expected results by series, found"):
            measure.main()


def test_help_needs_no_measuring(repository, python_environment):
    done = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.scaling.measure", "--help"],
        cwd=repository, env=python_environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and "--platform=NAME" in done.stdout


def test_a_series_is_measured_by_processes_of_its_own(tmp_path, monkeypatch):
    weak, here = all_series(CPU, 1, smoke=True)[-1], hardware()
    conditions = Conditions(rounds=1, min_seconds=0.0, patience=0.0)
    found = json.loads(json.dumps(measure.run(weak, CPU, here, conditions, tmp_path / "logs")))
    assert not found["failures"]
    assert [(point["x"], point["devices"]) for point in found["points"]] == [(1, 1), (2, 2)]
    flops = [point["flops"] for point in found["points"]]
    assert flops[1] == 2 * flops[0] > 0
    found["commit"] = "c0ffee"
    monkeypatch.setattr(provenance, "commit", lambda: "c0ffee")
    assert measure.is_current(found, weak, here)
    assert not measure.is_current(None, weak, here)
    assert not measure.is_current({**found, "failures": {"float32 1": "died"}}, weak, here)
    assert not measure.is_current(found, all_series(CPU, 1)[-1], here)
    assert not measure.is_current(found, weak, {**here, "cores": 0})
    monkeypatch.setattr(provenance, "commit", lambda: "c0ffee-modified")
    assert not measure.is_current({**found, "commit": "c0ffee-modified"}, weak, here)
    assert "overhead" in page.page(CPU, {"weak": [found]})
