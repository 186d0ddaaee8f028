"""What tests of the programs share."""

import pytest

from tests.launch.commands import Commands
from tests.runs import smoke_run


@pytest.fixture(scope="session")
def launch():
    """Runs a program: `launch("train", "--workdir=x", ...) -> Result`."""
    commands = Commands()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def trained():
    """The directory of a trained run; not to be changed."""
    directory, result = smoke_run()
    assert result.returncode == 0, result.stderr
    return directory
