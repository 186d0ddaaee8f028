"""The measuring harness with contenders that only sleep, and PyTorch against the project."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmarks.speed import (
    saving,
    stability,
    workloads,
)
from experiments.benchmarks.speed.harness import (
    Conditions,
    Contender,
    Measurement,
    Worker,
    WorkerError,
    measure,
    paired_ratios,
    wait_until_quiet,
)
from experiments.benchmarks.speed.project_data import make_batches
from experiments.benchmarks.speed.project_model import (
    batch_of,
    draw_parameters,
    make_attention_gradient,
    make_beam_search,
    model_of,
)
from experiments.benchmarks.speed.project_worker import exchanged, save_parameters
from experiments.benchmarks.speed.workloads import Sentences, Sizes

SIZES = Sizes(vocabulary=30, embedding=5, hidden=6)
QUICK = Conditions(rounds=3, min_seconds=0.0, patience=0.0, set_up_limit=300.0, run_limit=5.0)

SLEEPER = """
import sys, time
from experiments.benchmarks.speed import serve
channel = serve.open_channel()
print("a library that talks")
seconds, limit = float(sys.argv[1]), int(sys.argv[2])
calls = []
def work():
    calls.append(0)
    if len(calls) > limit:
        raise RuntimeError("out of breath")
    print("and goes on talking")
    time.sleep(seconds)
serve.serve(channel, work, units={"naps": 2})
"""


def sleeper(name, seconds, limit=1000, environment=None):
    command = (sys.executable, "-c", SLEEPER, str(seconds), str(limit))
    return Contender(name, command, environment or {})


def run(tmp_path, *contenders, conditions=QUICK):
    return measure(contenders, conditions, directory=tmp_path, log=lambda line: None)


# ---- Harness -----------------------------------------------------------------------------------


def test_measure_times_each_contender_in_every_round(tmp_path):
    measured, failures = run(tmp_path, sleeper("short", 0.01), sleeper("long", 0.1))
    assert not failures
    assert [len(each.seconds) for each in measured.values()] == [3, 3]
    assert all(seconds >= 0.1 for seconds in measured["long"].seconds)
    assert all(ratio > 1 for ratio in paired_ratios(measured["short"], measured["long"], "naps"))
    assert measured["long"].peak_rss_mib > 1 and measured["long"].steady_rss_mib > 1


def test_measure_repeats_short_work(tmp_path):
    conditions = dataclasses.replace(QUICK, min_seconds=0.5, rounds=1)
    measured, _ = run(tmp_path, sleeper("short", 0.005), conditions=conditions)
    assert 4 < measured["short"].repetitions <= 100
    assert measured["short"].seconds[0] < 0.5


def test_measure_lets_one_contender_compute_at_a_time(tmp_path):
    diary = tmp_path / "diary"
    program = SLEEPER.replace(
        "time.sleep(seconds)",
        f"open({str(diary)!r}, 'a').write('<'); time.sleep(seconds);"
        f" open({str(diary)!r}, 'a').write('>')",
    )
    contenders = [
        Contender(name, (sys.executable, "-c", program, "0.03", "1000")) for name in "abc"
    ]
    run(tmp_path, *contenders)
    assert diary.read_text() == "<>" * len(contenders) * (1 + QUICK.rounds)


def test_measure_reports_a_contender_that_dies(tmp_path):
    missing = Contender("missing", (sys.executable, "-c", "import no_such_package"))
    measured, failures = run(tmp_path, sleeper("tired", 0.0, limit=2), missing, sleeper("fit", 0.0))
    assert list(measured) == ["fit"]
    assert "out of breath" in failures["tired"]
    assert "No module named 'no_such_package'" in failures["missing"]


def test_measure_stops_a_contender_that_never_answers(tmp_path):
    conditions = dataclasses.replace(QUICK, run_limit=1.0)
    measured, failures = run(tmp_path, sleeper("asleep", 60.0), conditions=conditions)
    assert not measured
    assert "no answer within 1 s" in failures["asleep"]


def test_measure_keeps_the_times_of_a_contender_that_dies_at_its_end(tmp_path, monkeypatch):
    quit_normally = Worker.quit

    def quit_worker(worker, limit):
        if worker.name == "short":
            raise WorkerError("killed")
        return quit_normally(worker, limit)

    monkeypatch.setattr(Worker, "quit", quit_worker)
    said = []
    contenders = [sleeper("short", 0.0), sleeper("long", 0.01)]
    measured, failures = measure(contenders, QUICK, directory=tmp_path, log=said.append)
    assert not failures and [len(each.seconds) for each in measured.values()] == [3, 3]
    assert np.isnan(measured["short"].peak_rss_mib) and measured["long"].peak_rss_mib > 1
    assert "  short: peak memory unknown: killed" in said


def test_measure_gives_every_contender_its_environment(tmp_path):
    program = (
        "import os\nfrom experiments.benchmarks.speed import serve\n"
        "channel = serve.open_channel()\n"
        "serve.serve(channel, lambda: None, units={'a': 1}, "
        "seen=[os.environ['SHARED'], os.environ['OWN']])"
    )
    contender = Contender("reader", (sys.executable, "-c", program), {"OWN": "own"})
    measured, _ = measure(
        [contender], QUICK, directory=tmp_path, environment={"SHARED": "shared"}, log=str
    )
    assert measured["reader"].ready["seen"] == ["shared", "own"]


def test_paired_ratios_cancel_what_slows_a_whole_round():
    fast = Measurement([1.0, 10.0, 2.0], [], 1, {"units": {"x": 1}}, 0.0)
    slow = Measurement([2.0, 20.0, 4.0], [], 1, {"units": {"x": 1}}, 0.0)
    assert paired_ratios(fast, slow, "x") == [2.0, 2.0, 2.0]


def test_wait_until_quiet_gives_up():
    assert wait_until_quiet(load=-1.0, patience=0.2, window=0.05) >= 0.2


# ---- Workloads ---------------------------------------------------------------------------------


@pytest.fixture
def ragged(numpy_rng):
    def side(count):
        lengths = numpy_rng.integers(1, 12, count)
        return [[*numpy_rng.integers(4, SIZES.vocabulary, length), 2] for length in lengths]

    return Sentences.of_lists(side(60), side(60))


def test_sentences_survive_a_file_and_lose_padding_in_batches(ragged, tmp_path):
    ragged.save(tmp_path / "ragged.npz")
    loaded = Sentences.load(tmp_path / "ragged.npz")
    np.testing.assert_array_equal(loaded.target, ragged.target)
    shortest = loaded.batch(np.array([loaded.target_lengths.argmin()]))
    assert shortest.target.shape == (1, loaded.target_lengths.min())
    assert (shortest.target != workloads.PAD).all()
    assert shortest.units() == {"target tokens": loaded.target_lengths.min(), "sentences": 1}


@pytest.mark.parametrize("deal", [workloads.random_batches, workloads.sorted_batches])
def test_batches_hold_every_sentence_once(ragged, deal):
    batches = deal(ragged, 4)
    assert sorted(np.concatenate(batches)) == list(range(len(ragged)))
    assert {len(rows) for rows in batches} == {4}


def test_sorted_batches_have_less_padding_than_random_ones(ragged):
    def positions(batches):
        return sum(ragged.batch(rows).target.size for rows in batches)

    shuffled = workloads.random_batches(ragged, 4)
    assert positions(workloads.sorted_batches(ragged, 4)) < 0.8 * positions(shuffled)


def test_sample_evenly_keeps_the_mean_size():
    sizes = np.random.default_rng(0).permutation(1000)
    sample = workloads.sample_evenly(sizes, 10)
    assert len(set(sample)) == 10
    assert abs(sizes[sample].mean() - sizes.mean()) < 10
    assert sorted(workloads.sample_evenly([3, 1, 2], 5)) == [0, 1, 2]


def test_project_batches_hold_what_the_sentences_hold(ragged):
    task = {"batching": "buckets", "batch": 4, "buckets": 3, "count": 1000}
    batches, units = make_batches(task, ragged)
    assert units == ragged.units()
    assert len({batch["source"].shape + batch["target"].shape for batch in batches}) <= 3
    for batch in batches:
        for row, index in enumerate(batch["index"]):
            if index >= 0:
                target = batch["target"][row][batch["target_mask"][row]]
                length = ragged.target_lengths[index]
                np.testing.assert_array_equal(target, ragged.target[index, :length])


# ---- The project -------------------------------------------------------------------------------


def test_naive_attention_equals_the_projects(numpy_rng):
    shapes = ((2, 3, 4), (2, 5, 4), (2, 5, 4), (4,))
    arrays = [numpy_rng.normal(size=shape).astype(np.float32) for shape in shapes]
    ours, naive = (make_attention_gradient(is_naive)(*arrays) for is_naive in (False, True))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5), ours, naive)


def test_drawn_parameters_leave_nothing_zero():
    for name, array in exchanged(draw_parameters(model_of(SIZES))).items():
        assert np.all(array != 0), name


def test_watch_finds_no_compilation_after_the_warm_up(tmp_path):
    program = (
        "import json, pathlib, sys\n"
        "from attention_jax.data.builders.smoke import Config as SmokeConfig\n"
        "from experiments.benchmarks.speed.stability import watch\n"
        "config = SmokeConfig(num_buckets=2, batch_size=8)\n"
        "print(json.dumps(watch(config, 8, pathlib.Path(sys.argv[1]), hidden=4)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["shapes"] == 2
    assert found["warm_up_compilations"] >= 2
    assert found["compilations"] == 0
    # So few steps of so small a model grow by far less than this, unless each keeps something.
    assert abs(found["memory_growth_mib"]) < 100
    assert len(found["memory_mib"]) == 9 and min(found["memory_mib"]) > 0


def test_growth_of_compares_the_ends():
    assert stability.growth_of([1.0, 1.0, 1.0, 9.0, 2.0, 2.0, 3.0, 3.0]) == 2.0


# ---- PyTorch against the project ---------------------------------------------------------------

TORCH_SCRIPT = """
import json, sys
import numpy as np, torch
from experiments.benchmarks.speed.torch_beam import beam_search
from experiments.benchmarks.speed.torch_model import torch_batch
from experiments.benchmarks.speed.torch_worker import make_model
from experiments.benchmarks.speed.workloads import Sentences
torch.set_num_threads(1)
folder, sizes, width, length = json.loads(sys.argv[1])
model = make_model({"sizes": sizes, "parameters": f"{folder}/parameters.npz"})
batch = torch_batch(Sentences.load(f"{folder}/sentences.npz"))
loss = model(batch)
loss.backward()
gradients = {name: value.grad.numpy() for name, value in model.named_parameters()}
found = beam_search(model.eval(), batch, width, length, length)
np.savez(f"{folder}/torch.npz", loss=loss.item(), log_probs=found.log_probs,
         tokens=found.tokens, **gradients)
"""


@pytest.fixture(scope="module")
def torch_python():
    python = os.environ.get("TORCH_PYTHON", "")
    if not python and importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch: it is not installed and TORCH_PYTHON is not set")
    return python or sys.executable


@pytest.fixture(scope="module")
def both(torch_python, tmp_path_factory):
    """What `in_torch` returns for the recurrent model."""
    return in_torch(torch_python, tmp_path_factory.mktemp("torch"), SIZES)


def in_torch(torch_python, folder, sizes):
    """(parameters, batch, what PyTorch found) for sentences of different lengths."""
    rng = np.random.default_rng(3)
    sides = [
        [[*rng.integers(4, sizes.vocabulary, length - 1), 2] for length in lengths]
        for lengths in ([5, 2, 7, 7], [3, 6, 1, 4])
    ]
    sentences = Sentences.of_lists(*sides)
    params = draw_parameters(model_of(sizes))
    sentences.save(folder / "sentences.npz")
    save_parameters(params, folder / "parameters.npz")
    argument = json.dumps([str(folder), dataclasses.asdict(sizes), 3, 6])
    subprocess.run([torch_python, "-c", TORCH_SCRIPT, argument], check=True, timeout=120)
    with np.load(folder / "torch.npz") as file:
        return params, batch_of(sentences), dict(file)


def test_torch_flushes_numbers_that_are_too_small_to_be_normal(torch_python):
    """In other threads, too: with them a processor computes slowly, and XLA flushes them."""
    program = (
        "import threading\nimport torch\n"
        "from experiments.benchmarks.speed.torch_worker import run\n"
        "def probe(task):\n"
        "    found = []\n"
        "    halve = lambda: found.append((torch.full((1 << 20,), 1e-38) * 0.1).sum().item())\n"
        "    thread = threading.Thread(target=halve)\n"
        "    thread.start(), thread.join(), halve()\n"
        "    return lambda: None, {'units': {'calls': 1}, 'found': found}\n"
        "run({'probe': probe})"
    )
    command = [torch_python, "-c", program, json.dumps({"kind": "probe", "threads": 2})]
    done = subprocess.run(command, input="quit\n", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[0])["found"] == [0.0, 0.0]


def test_torch_transformer_computes_the_same_loss_and_hypotheses(torch_python, tmp_path):
    sizes = workloads.TransformerSizes(vocabulary=23, depth=8, width=12, heads=2, layers=2)
    params, batch, torch = in_torch(torch_python, tmp_path, sizes)
    model = model_of(sizes)
    log_probs = jax.nn.log_softmax(jax.jit(model.apply)(params, batch).predictions.logits)
    chosen = jnp.take_along_axis(log_probs, batch["target"][..., None], axis=-1)[..., 0]
    loss = -(chosen * batch["target_mask"]).sum() / batch["target_mask"].sum()
    np.testing.assert_allclose(torch["loss"], loss, rtol=1e-5)
    shortest_source = int(batch["source_mask"].sum(axis=1).min())
    found = make_beam_search(model, 3, 6, 6, shortest_source)(params, batch)
    np.testing.assert_allclose(torch["log_probs"], found.log_probs, rtol=1e-5)
    np.testing.assert_array_equal(torch["tokens"], found.tokens)


def test_torch_computes_the_same_loss_and_gradients(both):
    params, batch, torch = both
    model, batch = model_of(SIZES), jax.tree.map(jnp.asarray, batch)

    def loss_of(params):
        logits = model.apply(params, batch).predictions.logits
        log_probs = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(log_probs, batch["target"][..., None], axis=-1)[..., 0]
        return -(chosen * batch["target_mask"]).sum() / batch["target_mask"].sum()

    loss, gradients = jax.jit(jax.value_and_grad(loss_of))(params)
    np.testing.assert_allclose(torch["loss"], loss, rtol=1e-5)
    expected = exchanged(gradients)
    for ours, theirs in {
        "source_embedding": torch["source_embedding.weight"],
        "target_embedding": torch["target_embedding.weight"],
        "backward_recurrent": torch["encoder.weight_hh_l0_reverse"].T,
        "forward_candidate_bias": torch["encoder.bias_hh_l0"][2 * SIZES.hidden :],
        "bridge": torch["bridge.weight"].T,
        "decoder_input": torch["cell.weight_ih"].T,
        "query": torch["query.weight"].T,
        "key": torch["key.weight"].T,
        "energy": torch["energy"],
        "attentional": torch["attentional.weight"].T,
        "output": torch["output.weight"],
        "output_bias": torch["output.bias"],
    }.items():
        np.testing.assert_allclose(theirs, expected[ours], rtol=1e-3, atol=1e-6, err_msg=ours)


def test_torch_beam_finds_the_same_hypotheses(both):
    params, batch, torch = both
    shortest_source = int(batch["source_mask"].sum(axis=1).min())  # so all outputs have 6 tokens
    found = make_beam_search(model_of(SIZES), 3, 6, 6, shortest_source)(params, batch)
    np.testing.assert_allclose(torch["log_probs"], found.log_probs, rtol=1e-5)
    np.testing.assert_array_equal(torch["tokens"], found.tokens)


def test_saving_measures_the_stall_of_both_ways():
    ways = {
        way: saving.measure(2, hidden=8, every=1, is_waiting=way == saving.WAITED)
        for way in saving.WAYS
    }
    for found in ways.values():
        assert 0 < found["stall_ms"] <= found["longest_stall_ms"]
        assert 0 < found["share_of_time"] < 1
    facts = {"command": "python", "commit": "c0ffee", "time": "now", "hidden": 8, "every": 1,
             "hardware": {"cpu": "one", "cores": 2}, "ways": ways}  # fmt: skip
    assert all(f"| {way} |" in saving.page(facts) for way in saving.WAYS)
