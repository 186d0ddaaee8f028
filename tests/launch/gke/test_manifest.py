"""Manifests for TPU slices and GPU nodes: what they ask for, and that the API would take them."""

import copy

import pytest
import yaml

from attention_jax.errors import UserError
from launch.gke.jobset import Request, jobset
from launch.gke.writing import train_arguments
from tests.launch.gke.jobset_schema import problems

TPU = {
    "name": "pod", "image": "registry/attention_jax:tpu", "kind": "v5e", "shape": (4, 4),
    "slices": 2, "arguments": ["--config=c.py"], "bucket": "gs://runs",
}  # fmt: skip
GPU = {
    "name": "gpus", "image": "registry/attention_jax:cuda", "kind": "h100", "shape": (16,),
    "arguments": ["--config=c.py"], "claim": "runs", "spot": True,
}  # fmt: skip
COMMAND = (
    "gke.manifest", "--config=configs/quickstart.py:smoke", "--name=pod", "--image=i",
)  # fmt: skip


def parts(manifest):
    """The replicated job, its Job, the pod and its container."""
    (replicated,) = manifest["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    return replicated, job, pod, container


def environment_of(container):
    return {each["name"]: each.get("value") for each in container["env"]}


@pytest.mark.parametrize(
    "request_",
    [TPU, GPU, {**TPU, "shape": (2, 2), "slices": 1, "service_account": "trainer"}],
    ids=["tpu", "gpu", "one-host"],
)
def test_manifests_fit_the_schema(request_):
    manifest = jobset(Request(**request_))
    assert problems(manifest) == []
    assert problems(yaml.safe_load(yaml.safe_dump(manifest))) == []


def test_job_fits_the_published_schema():
    validator = pytest.importorskip("kubernetes_validate")
    for request in (TPU, GPU):
        replicated, *_ = parts(jobset(Request(**request)))
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}}
        validator.validate({**job, **replicated["template"]}, "1.33", strict=True)


def test_schema_finds_what_is_wrong():
    manifest = jobset(Request(**TPU))
    for change, message in (
        (lambda m: m.update(kind="Jobset"), ".kind: 'Jobset' is none of"),
        (lambda m: m["spec"].update(suspended=True), ".spec.suspended: not known"),
        (lambda m: parts(m)[1].pop("parallelism"), ".parallelism: missing"),
        (lambda m: parts(m)[1].update(backoffLimit="0"), ".backoffLimit: '0' is no int"),
        (lambda m: parts(m)[2].update(restartPolicy="Always"), "'Always' is none of"),
        (lambda m: parts(m)[3]["env"][0].update(name="a b"), "'a b' is not like"),
    ):
        broken = copy.deepcopy(manifest)
        change(broken)
        assert any(message in line for line in problems(broken)), message


def test_tpu_slices_are_jobs_with_a_pod_for_each_host():
    manifest = jobset(Request(**TPU))
    replicated, job, pod, container = parts(manifest)
    assert replicated["replicas"] == 2
    assert job["parallelism"] == job["completions"] == 4  # 16 chips, 4 on a host
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }
    assert container["resources"]["limits"] == {"google.com/tpu": 4}
    assert environment_of(container) == {
        "JAX_PLATFORMS": "tpu,cpu",
        "ATTENTION_JAX_DISTRIBUTED": "auto",
    }
    assert container["args"] == ["--config=c.py", "--workdir=/runs/pod"]
    assert pod["volumes"][0]["csi"]["volumeAttributes"]["bucketName"] == "runs"
    assert "exclusive-topology" in str(manifest["metadata"]["annotations"])


def test_gpu_nodes_are_told_of_one_another():
    replicated, job, pod, container = parts(jobset(Request(**GPU)))
    assert replicated["replicas"] == 1 and job["parallelism"] == 2
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    environment = {each["name"]: each for each in container["env"]}
    # The first pod, by the name that JobSet gives it.
    assert environment["ATTENTION_JAX_COORDINATOR"]["value"] == "gpus-slice-0-0.gpus:8476"
    assert environment["ATTENTION_JAX_NUM_PROCESSES"]["value"] == "2"
    assert "job-completion-index" in str(environment["ATTENTION_JAX_PROCESS_ID"]["valueFrom"])
    assert pod["nodeSelector"]["cloud.google.com/gke-spot"] == "true"


def test_one_process_is_told_of_no_others():
    *_, container = parts(jobset(Request(**{**GPU, "shape": (8,)})))
    assert environment_of(container) == {
        "JAX_PLATFORMS": "cuda,cpu",  # or it would train on a CPU where it finds no driver
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
    }


def test_data_sets_may_be_on_the_volume():
    *_, container = parts(jobset(Request(**TPU, data="/corpora/")))
    assert environment_of(container)["ATTENTION_JAX_DATA"] == "/runs/corpora"


def test_parts_of_ones_own_may_be_on_the_volume():
    *_, container = parts(jobset(Request(**TPU, extensions="mine:/shared/theirs/")))
    expected = "/runs/mine:/runs/shared/theirs"
    assert environment_of(container)["ATTENTION_JAX_EXTENSIONS"] == expected


@pytest.mark.parametrize("asked", [TPU, GPU])
def test_variables_reach_the_training_and_those_of_this_machine_do_not(asked, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_DATA", "/here")
    monkeypatch.setenv("ATTENTION_JAX_EXTENSIONS", "/here")
    manifest = jobset(Request(**asked, variables={"XLA_FLAGS": "--a --b=c"}))
    assert problems(manifest) == []
    *_, container = parts(manifest)
    without = parts(jobset(Request(**asked)))[-1]
    assert environment_of(container) == {**environment_of(without), "XLA_FLAGS": "--a --b=c"}
    assert "/here" not in environment_of(container).values()


@pytest.mark.parametrize(
    ("kind", "number", "nodes"), [("t4", 8, 2), ("l4", 8, 1), ("h100", 4, 1), ("v5e", 8, 2)]
)
def test_nodes_have_their_usual_number_of_devices(kind, number, nodes):
    asked = Request(**{**TPU, "kind": kind, "shape": (number,), "slices": 1})
    assert asked.nodes == nodes


def test_mistakes_of_users_end_the_set_and_all_else_starts_it_again():
    manifest = jobset(Request(**TPU, max_restarts=7))
    _, job, *_ = parts(manifest)
    (rule,) = job["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [2])
    assert job["backoffLimit"] == 0
    policy = manifest["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 7
    (rule,) = policy["rules"]
    assert (rule["action"], rule["onJobFailureReasons"]) == ("FailJobSet", ["PodFailurePolicy"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "A_b"}, "--name: expected up to 40 small letters"),
        ({"claim": "x"}, "--bucket, --claim: expected one of them, found both"),
        ({"bucket": None}, "--bucket, --claim: expected one of them, found neither"),
        ({"kind": "cpu"}, "--topology: expected one of .*, found 'cpu'"),
        ({"kind": "h100", "shape": (16,)}, "--slices: expected 1 for GPUs, found 2"),
        ({"per_node": 3}, "--per_node: expected a number that divides 16 devices, found 3"),
        ({"variables": {"JAX_PLATFORMS": "cpu"}}, "--env: expected none .* found JAX_PLATFORMS"),
        ({"variables": {"ATTENTION_JAX_PROCESS_ID": "0"}}, "--env: expected none that the"),
    ],
)
def test_mistakes_are_named(change, message):
    with pytest.raises(UserError, match=message):
        Request(**{**TPU, **change})


def test_arguments_of_training_are_passed_on():
    arguments = ["--name=n", "--config", "c.py:x", "-config.seed=3", "--configuration=1", "--spot"]
    assert train_arguments(arguments) == ["--config=c.py:x", "--config.seed=3"]


def test_command_writes_the_manifest(launch, tmp_path):
    out = tmp_path / "pod.yaml"
    more = ("--env=A=b c", "--env=D=e=f", "--extensions=mine")
    options = ("--topology=v5e:4x4", "--bucket=runs", "--config.seed=3", *more)
    result = launch(*COMMAND, *options, f"--out={out}")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{out} holds the JobSet pod; kubectl apply -f {out}\n"
    manifest = yaml.safe_load(out.read_text())
    assert problems(manifest) == []
    *_, container = parts(manifest)
    assert container["args"][-2:] == ["--config.seed=3", "--workdir=/runs/pod"]
    assert {"A": "b c", "D": "e=f"}.items() <= environment_of(container).items()
    assert environment_of(container)["ATTENTION_JAX_EXTENSIONS"] == "/runs/mine"
    assert launch(*COMMAND, *options).out == out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bucket=b"], "--topology: expected a value"),
        (["--topology=v5e:4x4"], "--bucket, --claim: expected one of them, found neither"),
        (["--topology=v5e:4x4", "--bucket=b", "--env=A"], "--env: expected NAME=VALUE, each name"),
        (["--topology=v5e:4x4", "--bucket=b", "--env=A=1", "--env=A=2"], "--env: expected NAME=VA"),
        (["--topology=v5e:4x4", "--bucket=b", "--config.sed=3"], "--config.sed: no such field"),
        (
            ["--topology=v5e:4x4", "--bucket=b", "--config.sharding.fsdp=3"],
            "config.sharding: expected sizes that divide the number of devices (16), found",
        ),
        (["--topology=v5e:4x4", "--bucket=b", "--out=/none/x.yaml"], "--out: /none/x.yaml cannot"),
    ],
)
def test_mistakes_are_one_line(launch, arguments, message):
    assert launch(*COMMAND, *arguments).error.startswith(message)


@pytest.fixture(scope="module")
def sweep(launch, tmp_path_factory):
    """A sweep of two runs, none of which is trained."""
    workdir = tmp_path_factory.mktemp("sweep") / "rates"
    grid = "--grid=optimizer.learning_rate=1e-3,3e-3"
    config = "--config=configs/quickstart.py:smoke"
    assert launch("sweep", config, grid, f"--workdir={workdir}", "--list").code == 0
    return workdir


def of_sweep(launch, sweep, *options):
    where = (f"--workdir={sweep}", "--name=rates", "--image=i", "--topology=l4:1", "--bucket=b")
    return launch("gke.sweep", *where, *options)


def test_every_run_of_a_sweep_is_a_set_of_its_own(launch, sweep):
    manifests = list(yaml.safe_load_all(of_sweep(launch, sweep).out))
    assert [manifest["metadata"]["name"] for manifest in manifests] == ["rates-0", "rates-1"]
    assert [problems(manifest) for manifest in manifests] == [[], []]
    *_, container = parts(manifests[1])
    assert container["args"] == [
        "--config=configs/quickstart.py:smoke", "--config.optimizer.learning_rate=3e-3",
        "--config.seed=0", "--workdir=/runs/rates/learning_rate=3e-3/seed0",
    ]  # fmt: skip
    (chosen,) = yaml.safe_load_all(of_sweep(launch, sweep, "--run=1").out)
    assert chosen == manifests[1]


def test_mistakes_of_a_sweep_are_one_line(launch, sweep, tmp_path):
    error = of_sweep(launch, sweep, "--run=2").error
    assert error == "--run: expected numbers from 0 to 1, found '2'"
    assert "expected the directory of a sweep" in of_sweep(launch, tmp_path).error
    assert "--topology: expected one of" in of_sweep(launch, sweep, "--topology=x9:1").error
