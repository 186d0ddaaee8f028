"""Mistakes on the command line of `launch.train`: one line, code 2, nothing written."""

import errno
import subprocess
import sys
import warnings
from types import SimpleNamespace

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from attention_jax.commands import cli
from attention_jax.devices import host_memory
from attention_jax.runs.config import from_config_dict, to_plain
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.size_of_text import SizeOfText, settled
from attention_jax.training.preemption import Preempted
from configs import bahdanau2015

_CACHE_OPTIONS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")

CONFIG = "--config=configs/quickstart.py:smoke"


@pytest.fixture
def train(launch, tmp_path):
    """Runs `launch.train` with the smoke config in a new directory."""

    def run(*arguments, config=CONFIG):
        return launch("train", config, f"--workdir={tmp_path / 'run'}", *arguments)

    yield run
    assert not (tmp_path / "run" / "config.json").exists()


def test_missing_config_is_named(launch, tmp_path):
    result = launch("train", f"--workdir={tmp_path}")
    assert result.error.startswith("--config: expected a file such as")


def test_a_config_file_may_have_a_colon_in_its_name(tmp_path):
    code = "from ml_collections import ConfigDict\n\ndef get_config(arg='none'):\n"
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "c:d.py").write_text(f"{code}    return ConfigDict({{'arg': arg}})\n")
    location = str(tmp_path / "a:b" / "c:d.py")
    assert cli.load_config(location).arg == "none"
    assert cli.load_config(f"{location}:x:y").arg == "x:y"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("--config=configs/quikstart.py", "found none at configs/quikstart.py; did you mean "
         "configs/quickstart.py?"),
        ("--config=nowhere/at/all.py", "--config: expected a file, found none at nowhere"),
        ("--config=configs/quickstart.py:smoek", "configs/quickstart.py:smoek: expected one of"),
        ("--config=README.md", "expected a Python file, found README.md"),
    ],
)  # fmt: skip
def test_unknown_config_is_named(train, config, words):
    assert words in train(config=config).error


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def get_config(:", "SyntaxError"),
        ("x = 1", "get_config"),
        ("def get_config(): return 3", "expected a ConfigDict, found int"),
        ("def get_config(): return {}['x']", "KeyError"),
    ],
)
def test_broken_config_file_is_named(train, tmp_path, code, words):
    (tmp_path / "broken.py").write_text(code)
    error = train(config=f"--config={tmp_path / 'broken.py'}").error
    assert words in error


def test_a_config_file_that_takes_print_away_is_named(tmp_path, repository):
    """In a process of its own, which others do not share."""
    code = "import builtins\nbuiltins.print = None\ndef get_config(): raise KeyError('x')"
    (tmp_path / "broken.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "launch.train", f"--config={tmp_path / 'broken.py'}",
         f"--workdir={tmp_path / 'run'}"],
        cwd=repository, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "KeyError" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--config.optimizer.learing_rate=1", "--config.optimizer.learing_rate: no such field; "
         "did you mean 'learning_rate'?"),
        ("--config.optimiser.learning_rate=1", "did you mean 'optimizer'?"),
        ("--config.modle.decoder.name=luong", "did you mean 'model'?"),  # and not training.mode
        ("--config.seed.x=1", "config.seed is a single value"),
        ("--config.objectives.nlll.weight=1", "did you mean 'nll'?"),
        ("--config.model=x", "--config.model: expected one of its fields"),
        ("--config.optimizer=sgd", "found the group; --config.optimizer.name=sgd chooses another"),
        ("--config.seed=abc", "--config.seed: expected int, found 'abc'"),
        ("--config.seed=1.5", "--config.seed: expected int, found '1.5'"),
        ("--config.optimizer.learning_rate=fast", "expected float, found 'fast'"),
        ("--config.search.forbid_unknown=maybe", "expected bool, found 'maybe'"),
        ("--config.learning_rate=1", "did you mean --config.optimizer.learning_rate?"),
        ("--config.seed=99999999999999999999", "config.seed: expected at most 4294967295, found 9"),
        ("--config.training.num_epochs=inf", "num_epochs: expected a finite number, found inf"),
        ("--config.evaluation.splits=('test',", "splits: expected values such as ('a', 'b')"),
        ("--config.seed=-1", "config.seed: expected at least 0, found -1"),
        ("--config.objectives.coverage_loss.weight=-0.5",
         "config.objectives.coverage_loss.weight: expected at least 0, found -0.5"),
        ("--config.optimizer.learning_rate=nan", "config.optimizer.learning_rate: expected"),
        ("--config.optimizer.name=sgdd", "found 'sgdd' (did you mean 'sgd'?)"),
        ("--config.model.attention.name=bahdanua", "did you mean 'bahdanau'?"),
        ("--config.data.name=imagenet", "config.data.name: expected one of"),
        ("--config.evaluation.splits=('dev',)", "found 'dev'"),
        ("--config.training.writers=wandbb", "found 'wandbb' (did you mean 'wandb'?)"),
        ("--profile_steps=5", "--profile_steps: expected FIRST:LAST with 1 <= FIRST <= LAST, "
         "found '5'"),
        ("--wordir=x", "wordir"),
        ("stray", "unexpected argument 'stray'"),
    ],
)  # fmt: skip
def test_wrong_argument_is_named(train, argument, words):
    assert words in train(argument).error


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("train", ["--config=configs/{}.py"]),
        ("train", ["--config=configs/bahdanau2015.py:parallel", "--config.data.train_source={}",
                   "--config.data.train_target={}"]),
        ("train", ["--config=configs/xu2015.py:pictures", "--config.data.train_table={}"]),
        ("evaluate", ["--workdir={}"]),
        ("translate", ["--workdir=runs/{},runs/{}"]),
        ("weights", ["--workdir=runs/one", "--output={}"]),
        ("align", ["apply", "--model={}", "--source=a", "--target=b", "--output={}"]),
    ],
)
def test_a_name_that_no_file_can_have_is_one_line(launch, tmp_path, program, options):
    if program == "train":
        options = [*options, f"--workdir={tmp_path / 'run'}"]
    error = launch(program, *(option.format("n" * 300, "n" * 300) for option in options)).error
    assert "nnn" in error and len(error) < 600


def test_missing_workdir_is_named(launch):
    assert launch("train", CONFIG).error == "--workdir: expected a value, found none"


def test_workdir_that_is_a_file_is_named(launch, tmp_path):
    (tmp_path / "file").write_text("")
    for workdir in (tmp_path / "file", tmp_path / "file" / "run"):
        error = launch("train", CONFIG, f"--workdir={workdir}").error
        assert str(workdir) in error
    assert (tmp_path / "file").read_text() == ""


def test_workdir_with_something_else_is_left_alone(launch, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    error = launch("train", CONFIG, f"--workdir={tmp_path}").error
    assert "'thesis.tex' and no config.json" in error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_unwritable_workdir_is_named(launch):
    error = launch("train", CONFIG, "--workdir=/proc/attention_jax").error
    assert error.startswith("/proc/attention_jax cannot be written: ")


def test_changed_config_is_refused_and_nothing_is_lost(launch, trained):
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    error = launch(
        "train", CONFIG, f"--workdir={trained}",
        "--config.seed=7", "--config.model.output_dropout=0.5",
    ).error  # fmt: skip
    assert "model.output_dropout is " in error and "seed is 0 there, 7 now" in error
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


def test_changed_config_names_three_fields_and_counts_the_others(launch, trained):
    changes = [f"--config.data.{name}=9" for name in ("batch_size", "eval_batch_size")]
    changes += ["--config.data.max_source_length=9", "--config.seed=9"]
    error = launch("train", CONFIG, f"--workdir={trained}", *changes).error
    assert error.count(" now") == 3 and "; and 1 more field; choose another" in error
    changes.append("--config.model.output_dropout=0.5")
    error = launch("train", CONFIG, f"--workdir={trained}", *changes).error
    assert error.count(" now") == 3 and "; and 2 more fields; choose another" in error


def test_renamed_field_is_answered_with_the_nearest_of_any_group(launch, tmp_path):
    config = "--config=configs/bahdanau2015.py:parallel"
    for name, words in (
        ("data.vocab_size", "or --config.data.subwords.size?"),
        ("batch_size", "did you mean --config.data.batch_size?"),
        ("model.hidden_size", "model.decoder.hidden_dim or --config.model.sources.source.encoder"),
        ("data.xyzzy", "expected one of alignment, batch_multiple, batch_size"),
    ):
        workdir = f"--workdir={tmp_path / 'run'}"
        error = launch("train", config, workdir, f"--config.{name}=3").error
        assert error.startswith(f"--config.{name}: no such field; ") and words in error


def test_unknown_metric_is_refused_before_training(launch, tmp_path):
    workdir = tmp_path / "run"
    error = launch("train", CONFIG, f"--workdir={workdir}", "--config.training.metric=wer").error
    assert error.startswith("config.training.metric: expected one of") and "'wer'" in error
    assert not workdir.exists()


def test_missing_text_files_are_named(launch, tmp_path):
    config = "--config=configs/bahdanau2015.py:parallel"
    arguments = ["--config.data.train_source=/none.en", "--config.data.train_target=/none.de"]
    error = launch("train", config, f"--workdir={tmp_path / 'run'}", *arguments).error
    assert error.startswith("/none.en: expected")
    assert not any(tmp_path.iterdir())


def test_a_run_that_never_trained_leaves_its_settings_to_the_next_text(launch, tmp_path):
    """As one that was killed while it prepared another text."""
    (tmp_path / "text").write_text("a b c\n" * 20)
    files = [f"--config.data.train_{side}={tmp_path / 'text'}" for side in ("source", "target")]
    nowhere = f"--config.data.test_table={tmp_path / 'none'}"
    config = bahdanau2015.get_config("parallel")
    config.data.train_source = config.data.train_target = "other"
    before = to_plain(from_config_dict(settled(config, print, SizeOfText(999, 9000))))
    (workdir := tmp_path / "run").mkdir()
    RunDirectory(workdir).write_config(before)
    result = launch(
        "train", "--config=configs/bahdanau2015.py:parallel", f"--workdir={workdir}", *files,
        nowhere,
    )  # fmt: skip
    said, error = result.err.splitlines()
    assert said.startswith("for 20 pairs of 60 target words: data.batch_size=16, ")
    assert result.code == 2 and error.startswith(f"error: {tmp_path / 'none'}: expected")


def test_symmetric_training_refuses_files_of_unequal_length(launch, tmp_path):
    (tmp_path / "a").write_text("x\ny\n")
    (tmp_path / "b").write_text("x\n")
    error = launch(
        "train", "--config=configs/cohn2016_symmetric.py:parallel", f"--workdir={tmp_path / 'run'}",
        f"--config.data.train_source={tmp_path / 'a'}",
        f"--config.data.train_target={tmp_path / 'b'}",
    ).error  # fmt: skip
    assert error == f"{tmp_path}/b: expected 2 lines as in {tmp_path}/a, found 1"
    assert not (tmp_path / "run").exists()


def test_want_of_word_alignments_is_named_before_any_data_is_read(launch, tmp_path):
    error = launch(
        "train", "--config=configs/coverage_vs_supervised.py:parallel",
        f"--workdir={tmp_path / 'run'}", "--config.data.train_source=/none.en",
        "--config.data.train_target=/none.de",
        "--config.objectives.supervised_alignment.weight=0.3",
    ).error  # fmt: skip
    assert error.startswith("config.data.alignment.method: expected word alignments")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ("0-0 1-1\n0-0\n0-5\n", "links:3: expected words of sentences of 2 and 2 words"),
        ("0-0\nzero\n\n", "links:2: expected links such as 0-1"),
        ("0-0\n", "links: expected 3 lines, one for each line of"),
    ],
)
def test_a_file_of_links_that_does_not_fit_is_named(launch, tmp_path, links, words):
    (tmp_path / "links").write_text(links)
    (tmp_path / "text").write_text("a b\nb\na c\n")
    files = [f"--config.data.{split}_{side}={tmp_path / 'text'}"
             for split in ("train", "validation", "test") for side in ("source", "target")]
    result = launch(
        "train", "--config=configs/coverage_vs_supervised.py:parallel",
        f"--workdir={tmp_path / 'run'}", *files, "--config.data.subwords.kind=words",
        "--config.data.alignment.method=file", f"--config.data.alignment.file={tmp_path / 'links'}",
        "--config.objectives.supervised_alignment.weight=0.3",
    )  # fmt: skip
    settings, error = result.err.splitlines()
    assert result.code == 2 and settings.startswith("for 3 pairs")
    assert error.startswith("error: ") and words in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("is_memory", [True, False])
def test_want_of_memory_is_one_line(is_memory, capsys, monkeypatch):
    monkeypatch.setattr(host_memory, "keep_freed_memory", lambda: None)
    words = "RESOURCE_EXHAUSTED: Out of memory\nallocating 9 bytes." if is_memory else "other"

    def main():
        raise RuntimeError(words)

    with pytest.raises(SystemExit if is_memory else RuntimeError) as raised:
        cli._guarded(main)
    if is_memory:
        assert raised.value.code == 2
        assert capsys.readouterr().err == (
            "error: RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes; smaller batches, beams "
            "or models take less\n"
        )


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("array is too big; `arr.size` is larger"), "array is too big; `arr.size`"),
        (MemoryError(), "out of memory; smaller batches"),
        (MemoryError("Unable to allocate 8 EiB"), "Unable to allocate 8 EiB; smaller"),
        (RuntimeError("Unable to initialize backend 'foo': no"), "JAX_PLATFORMS: expected devices"),
        (OSError(errno.EFBIG, "File too large", "x"), "x cannot be written: File too large"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), "x cannot be used: File name too"),
    ],
)
def test_what_the_machine_has_not_is_one_line(error, line, capsys, monkeypatch):
    monkeypatch.setattr(host_memory, "keep_freed_memory", lambda: None)

    def main():
        raise error

    with pytest.raises(SystemExit) as raised:
        cli._guarded(main)
    assert raised.value.code == 2 and capsys.readouterr().err.startswith(f"error: {line}")


def test_a_model_that_no_machine_holds_is_one_line(launch, tmp_path):
    result = launch(
        "train", CONFIG, f"--workdir={tmp_path / 'run'}",
        "--config.model.sources.source.encoder.hidden_dim=10000000",
    )  # fmt: skip
    assert result.error.startswith("config.model: expected parameters and optimiser that fit")


def test_being_told_to_stop_inside_a_callback_is_no_traceback(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    cli._quieten_libraries()
    stopped = SimpleNamespace(exc_type=Preempted, object=print)
    failed = SimpleNamespace(exc_type=OSError, object=print)
    sys.unraisablehook(stopped)
    sys.unraisablehook(failed)
    assert shown == [failed]


def test_a_compilation_cache_that_cannot_be_written_is_no_warning(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("jax._src.compilation_cache.put_executable_and_time", full)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = {name: getattr(jax.config, name) for name in _CACHE_OPTIONS}
    try:
        compilation_cache.reset_cache()
        with warnings.catch_warnings(record=True) as said:
            cli.use_compilation_cache()
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            assert jax.jit(lambda x: x * 3 + 1)(2) == 7
        assert not [str(warning.message) for warning in said]
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


def test_a_compilation_cache_that_cannot_be_made_is_a_line(monkeypatch, tmp_path, capsys):
    (tmp_path / "attention_jax").write_text("")  # where a folder should be
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = {name: getattr(jax.config, name) for name in _CACHE_OPTIONS}
    jax.config.update("jax_compilation_cache_dir", None)  # that of the tests
    try:
        cli.use_compilation_cache()
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
    said = capsys.readouterr().err
    assert said == (
        f"notice: compiled programs are not kept: {tmp_path / 'attention_jax' / 'xla'} cannot be "
        "written (Not a directory); JAX_COMPILATION_CACHE_DIR names another folder\n"
    )
