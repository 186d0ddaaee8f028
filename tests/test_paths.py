"""Names of directories that mean something to libraries are hidden from them."""

import functools
import os
import re
import subprocess
import sys

import pytest

from attention_jax import api, paths
from attention_jax.errors import UserError
from attention_jax.files import replacing
from attention_jax.paths import expanded, plainly_named
from attention_jax.plotting.figure import new_figure, save_figure
from attention_jax.runs.run_directory import RunDirectory

# Patterns, templates and addresses to one library or another; and what is not UTF-8.
NAMES = ("job[5]", "a*?b", "**", "{0}", "a\\b", "a b", "a\nb", "it's", 'a"b', "ü你", "a\udce9")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_signs_is_reached_by_a_plain_one(tmp_path, name):
    (tmp_path / name).mkdir()
    with plainly_named(tmp_path / name) as plain:
        (plain / "file").write_text("here")
        link = str(plain)
    assert (tmp_path / name / "file").read_text() == "here"
    assert link.isascii() and not set(link) & set("[]*?{}\\ \n'\"")
    assert not os.path.lexists(link) and not os.path.exists(os.path.dirname(link))


def test_a_plain_name_is_kept(tmp_path):
    with plainly_named(tmp_path / "run_1-2.x=3") as plain:
        assert plain == tmp_path / "run_1-2.x=3"


def test_what_looks_like_an_object_store_is_reached_by_another_name():
    with plainly_named("/s3/bucket/run") as plain:
        assert not str(plain).startswith("/s3/") and os.readlink(plain) == "/s3/bucket/run"
    with plainly_named("/s3x/run") as plain:
        assert str(plain) == "/s3x/run"


def test_the_directory_of_the_link_has_a_plain_name_too(tmp_path, monkeypatch):
    (tmp_path / "t[m]p").mkdir()
    monkeypatch.setattr(paths.tempfile, "tempdir", str(tmp_path / "t[m]p"))
    with plainly_named(tmp_path / "a b") as plain:
        assert "t[m]p" not in str(plain)
    monkeypatch.setattr(paths, "_USUAL", ())
    with pytest.raises(UserError, match="a b: a name with other signs .*TMPDIR"):
        with plainly_named(tmp_path / "a b"):
            pass


def test_the_home_of_nobody_is_named(monkeypatch):
    for use in (expanded, RunDirectory):
        with pytest.raises(UserError, match="~nosuchuser/x: expected the home directory of a user"):
            use("~nosuchuser/x")
    monkeypatch.setenv("HOME", "/home/me")
    assert str(expanded("~/x")) == "/home/me/x"


@pytest.mark.parametrize("address", ["gs://bucket/run", "s3://bucket", "file:///tmp/run"])
def test_an_address_is_no_path(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figure = new_figure(1, 1)
    uses = (expanded, RunDirectory, api.load, opened, functools.partial(save_figure, figure))
    for use in uses:
        with pytest.raises(UserError, match=f"{address}: expected a path, found an address"):
            use(address)
    assert not list(tmp_path.iterdir())
    assert str(expanded("gs:/run")) == "gs:/run"  # a directory may be called so


def opened(path):
    with replacing(path):
        pass


@pytest.mark.parametrize(
    "command",
    [
        "launch.train --config=configs/quickstart.py --workdir=ADDRESS",
        "launch.local --logs=ADDRESS 1 true",
        "launch.local 1 true --workdir=ADDRESS",
        "launch.supervise true --workdir=ADDRESS",
        "launch.align train --source=README.md --target=README.md --output=ADDRESS",
        "experiments.copying --list --out=ADDRESS",
        "experiments.benchmarks.speed.mechanisms --out=ADDRESS",
    ],
)
def test_programs_refuse_addresses_in_one_line(command, repository, capfd):
    place = repository / "s3:"
    arguments = command.replace("ADDRESS", "s3://bucket/x.npz").split()
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=repository, check=False)
    error = capfd.readouterr().err
    assert done.returncode == 2, error
    assert "s3://bucket/x.npz: expected a path, found an address" in error
    assert error.count("\n") == 1 and not place.exists()


def test_flags_become_paths_by_expanding_them(repository):
    """`Path` would turn `gs://bucket/x` into a directory `gs:`, and take `~` for a name."""
    early = re.compile(r"\bPath\((cli\.\w+\(|flags\.FLAGS|_[A-Z]+\.value|options\[)")
    for folder in ("attention_jax/commands", "experiments", "launch"):
        for file in sorted((repository / folder).rglob("*.py")):
            assert not early.search(file.read_text()), file
