import io
import os
import pathlib
import platform
import subprocess
import tarfile

import pytest

from attention_jax.runs import provenance
from attention_jax.runs.provenance import describe_run, processor, short_commit, usable_cpus


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A source tree of its own with one commit."""
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "package" / "part" / "module.py"))
    (tmp_path / "docs" / "results").mkdir(parents=True)
    for name in ("code.py", "docs/results/page.md", "docs/page.md"):
        (tmp_path / name).write_text("before")
    person = ("-c", "user.name=n", "-c", "user.email=e@x.org", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "."), (*person, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


def test_results_that_are_being_written_leave_the_commit_unmarked(tree):
    clean = provenance.commit()
    assert len(clean) == 40 and provenance.is_of_this_code(clean)
    (tree / "docs" / "results" / "page.md").write_text("after")
    assert provenance.commit() == clean
    (tree / "docs" / "page.md").write_text("after")
    assert provenance.commit() == f"{clean}-modified"


def test_nothing_is_known_to_be_of_modified_code(tree):
    clean = provenance.commit()
    (tree / "code.py").write_text("after")
    assert not provenance.is_of_this_code(clean)
    assert not provenance.is_of_this_code(provenance.commit())


def test_a_short_commit_keeps_the_mark():
    assert short_commit("fa5db86c12" + 30 * "0") == "fa5db86c12"
    assert short_commit("fa5db86c12" + 30 * "0" + "-modified") == "fa5db86c12, modified"
    assert short_commit(None) == "unknown"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_a_process_bound_to_one_core_says_one():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert usable_cpus() == 1
        hardware = describe_run(seed=0)["hardware"]
        assert hardware["cpus"] == 1 and hardware["processor"]
    finally:
        os.sched_setaffinity(0, before)
    assert usable_cpus() == len(before)


def test_a_copy_without_history_is_named_by_a_variable(tmp_path, monkeypatch):
    place = tmp_path / "attention_jax" / "runs" / "provenance.py"
    monkeypatch.setattr(provenance, "__file__", str(place))
    assert provenance.commit() is None
    monkeypatch.setattr(provenance, "_ARCHIVED", "4567def")
    assert provenance.commit() == "4567def"
    monkeypatch.setenv("ATTENTION_JAX_COMMIT", "0123abc")
    assert provenance.commit() == "0123abc"


def test_an_archive_names_its_commit(repository, tmp_path):
    if not (repository / ".git").exists():
        pytest.skip("a copy without its history")
    git = ["git", "-C", str(repository)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    packed = subprocess.run(
        [*git, "archive", "--worktree-attributes", "HEAD", "attention_jax/runs/provenance.py"],
        capture_output=True, check=True,
    )  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        text = archive.extractfile("attention_jax/runs/provenance.py").read().decode()
    assert f'_ARCHIVED = "{head.stdout.strip()}"' in text


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("model name\t: A B\nflags\t\t: fpu avx2\n\nmodel name\t: A B\nflags\t: fpu avx2\n", "A B"),
        ("flags\t\t: fpu avx2 avx512f avx512bw\nmodel name\t: A: B\n", "A: B (AVX-512)"),
        ("processor\t: 0\n", platform.machine()),
    ],
)
def test_a_processor_is_named_with_its_vector_instructions(monkeypatch, cpuinfo, expected):
    monkeypatch.setattr(pathlib.Path, "read_text", lambda *_, **__: cpuinfo)
    assert processor() == expected


def test_own_files_that_have_changed_since_a_run_are_named(extension):
    extension("objectives", "kept", "a = 1\n")
    extension("objectives", "mine", "a = 1\n")
    facts = describe_run(seed=0)
    assert provenance.changed_own_files(facts) == []
    extension("objectives", "mine", "a = 2\n")
    extension("objectives", "new", "a = 1\n")  # of which the run knew nothing
    assert provenance.changed_own_files(facts) == ["objectives/mine.py"]
    assert provenance.changed_own_files({}) == []
