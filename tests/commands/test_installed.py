"""The wheel: it holds the package alone, and its programs run beside a user's own files."""

import os
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes

import pytest

import attention_jax

SHARED = """
from ml_collections import ConfigDict

def smallest():
    return ConfigDict({
        "seed": 0,
        "data": {"name": "smoke", "batch_size": 32, "num_buckets": 1},
        "model": {
            "name": "encoder_decoder", "target_embedding_dim": 8,
            "sources": {"source": {"input": {"embedding_dim": 8}, "encoder": {"hidden_dim": 8}}},
            "attention": {"name": "bahdanau", "attention_dim": 8},
            "decoder": {"name": "bahdanau", "hidden_dim": 8, "readout_dim": 8},
        },
        "optimizer": {"name": "sgd"},
        "training": {"num_steps": 2, "evaluate_every_steps": 2, "checkpoint_every_steps": 2},
        "evaluation": {"splits": (), "num_heat_maps": 0},
    })
"""
MINE = '''
"""A config of the user's own, which shares code with the others in its package."""
from configs.shared import smallest

def get_config():
    import configs.shared  # as late as this
    return smallest()
'''


@pytest.fixture(scope="module")
def wheel(repository, tmp_path_factory):
    """The built wheel."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Runs what was installed, in a folder of the user's that has a `configs` of its own."""
    pytest.importorskip("pip")
    installed, home = (tmp_path_factory.mktemp(name) for name in ("installed", "home"))
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet", f"--target={installed}"]
    command = [sys.executable, "-m", "pip", "install", *options, str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    (home / "configs").mkdir()  # without an __init__.py, it would come after another's package
    (home / "configs" / "shared.py").write_text(SHARED)
    (home / "configs" / "mine.py").write_text(MINE)
    environment = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "PATH": f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }

    def run_(*words):
        return subprocess.run(
            words, cwd=home, env=environment, capture_output=True, text=True, timeout=300
        )

    run_.installed, run_.home = installed, home
    return run_


def test_wheel_holds_the_package_alone_with_its_data_files(wheel, repository):
    held = set(zipfile.ZipFile(wheel).namelist())
    configs = {path.name for path in (repository / "configs").glob("*.py")}
    assert {f"attention_jax/bundled/configs/{name}" for name in configs} <= held
    kinds = (".py", ".md", ".bib", ".txt", ".tsv", ".html", ".css", ".js", ".gz", ".typed")
    wanted = {
        str(path.relative_to(repository))
        for path in (repository / "attention_jax").rglob("*")
        if path.is_file() and (path.suffix in kinds or path.name in ("py.typed", "LICENSE"))
    }
    assert "attention_jax/py.typed" in wanted and wanted <= held
    about = f"attention_jax-{attention_jax.__version__}.dist-info"
    assert {name.split("/")[0] for name in held} == {"attention_jax", about}
    metadata = message_from_bytes(zipfile.ZipFile(wheel).read(f"{about}/METADATA"))
    assert metadata["Version"] == attention_jax.__version__


def test_configs_of_the_user_are_the_users(run):
    done = run(
        sys.executable, "-c",
        "import attention_jax, configs.mine, importlib.util as util\n"
        "print(attention_jax.__file__, attention_jax.__version__, configs.mine.__file__)\n"
        "print([name for name in ('experiments', 'launch', 'tests') if util.find_spec(name)])",
    )  # fmt: skip
    package, version, config, *others = done.stdout.split()
    assert package == str(run.installed / "attention_jax" / "__init__.py")
    assert (version, config) == (attention_jax.__version__, str(run.home / "configs" / "mine.py"))
    assert others == ["[]"]


def test_every_program_has_an_entry_point(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    mains = {
        path.stem
        for path in (repository / "attention_jax" / "commands").glob("*.py")
        if "\ndef run() -> None:" in path.read_text(encoding="utf-8")
    }
    assert {"train", "evaluate", "translate", "align", "weights", "local", "supervise"} <= mains
    assert project["scripts"] == {
        f"attention-{name.replace('_', '-')}": f"attention_jax.commands.{name}:run"
        for name in sorted(mains)
    }
    for name in mains:
        wrapper = (repository / "launch" / f"{name}.py").read_text(encoding="utf-8")
        assert f"from attention_jax.commands.{name} import run\n" in wrapper


@pytest.mark.parametrize(
    "program",
    ["train", "evaluate", "translate", "align", "weights", "compile-check", "local", "supervise"],
)
def test_help_has_the_names_of_the_installed_programs(run, program):
    done = run(f"attention-{program}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: attention-{program} " in done.stdout
    assert "launch." not in done.stdout and "launch/" not in done.stdout


def test_a_config_of_the_users_own_trains(run):
    done = run("attention-train", "--config=configs/mine.py", "--workdir=run")
    assert done.returncode == 0, done.stderr
    record = (run.home / "run" / "run.json").read_text()
    assert '"command": "attention-train --config=configs/mine.py --workdir=run"' in record
    assert not list(run.home.rglob("__pycache__"))
    wrong = run("attention-train", "--config=configs/mien.py", "--workdir=other")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: --config: expected a file")
    assert "did you mean configs/mine.py?" in wrong.stderr


def test_configs_of_the_project_are_known_by_name(run):
    """Although the user's folder has a package `configs` of its own."""
    wrong = run("attention-train", "--config=gnmt2016:parallel", "--workdir=named")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: config.data.train_source: expected"), wrong.stderr


def test_a_job_of_installed_programs_is_supervised(run):
    done = run(
        "attention-supervise", "--wait=0", "attention-local", "--logs=logs", "2",
        sys.executable, "-c", "print('ran')", "--workdir=supervised",
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
