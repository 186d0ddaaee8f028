"""Variables of the environment that JAX refuses: one line, code 2."""

import os
import subprocess
import sys

import pytest
from jax._src.hardware_utils import has_visible_nvidia_gpu


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("JAX_PLATFORMS", "foo", "error: JAX_PLATFORMS: expected devices of this machine, found"),
        ("JAX_PLATFORMS", "cuda", "error: JAX_PLATFORMS: expected devices of this machine, found"),
        ("JAX_PLATFORMS", "cuda,cpu", "error: JAX_PLATFORMS: expected devices of this machine,"),
        ("JAX_ENABLE_X64", "perhaps", "error: a variable JAX_... of the environment: "),
    ],
)  # fmt: skip
def test_what_jax_refuses_is_a_line(trained, repository, variable, value, words):
    # As JAX looks for them; whatever else there is, a program without them must not go on.
    if value.startswith("cuda") and has_visible_nvidia_gpu():
        pytest.skip("there is such a device")
    result = subprocess.run(
        [sys.executable, "-m", "launch.translate", f"--workdir={trained}"],
        cwd=repository, env={**os.environ, variable: value}, input="1 2\n",
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(words) and result.stderr.count("\n") == 1
