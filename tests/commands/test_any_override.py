"""Random overrides of random fields: a config, or one line of moderate length."""

import functools
import random
from collections.abc import Iterator

import pytest
from absl import flags
from ml_collections import ConfigDict

from attention_jax.commands import cli
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.size_of_text import settled

_CONFIGS = (
    "bahdanau2015.py:smoke", "gnmt2016.py:smoke", "transformer_lm.py:smoke",
    "vaswani2017.py:smoke", "cohn2016_symmetric.py:smoke", "luong2015.py:parallel",
)  # fmt: skip
_VALUES = (
    "", "0", "-1", "3", "1e400", "nan", "0.5", "true", "None", "x", "abc" * 1000, "\udcff", "a\nb",
    "\x1b[2J", "('a',)", "('a', 'b'", "{'a': 1}", "(" * 500, "9" * 5000, str(2**63), "1_000",
    "\u0663", "adam", "multi_head", "plateau", "__import__('os')", "%s {0} \\", "~nosuchuser",
    "(('(', ('data',)),)", "--", "words", "file",
)  # fmt: skip


def _fields(values: ConfigDict, where: str) -> Iterator[str]:
    for name in values.keys():
        path = f"{where}.{name}"
        if isinstance(values[name], ConfigDict):
            yield from _fields(values[name], path)
        else:
            yield path


def _resolved(location: str, arguments: list[str], monkeypatch) -> ConfigDict:
    """Returns what the command line makes of a config, as `launch.train` reads it."""
    monkeypatch.setattr(flags, "FLAGS", flags.FlagValues())
    argv = ["train", f"--config={location}", *arguments]
    cli._parse(argv, "", cli.prepare_experiment)
    return flags.FLAGS["config"].value


def _checked(values: ConfigDict) -> None:
    from_config_dict(settled(values, print))


@pytest.mark.parametrize("config", _CONFIGS)
def test_any_override_is_a_config_or_a_line(config, repository, monkeypatch, capsys):
    location = str(repository / "configs" / config)
    paths = list(_fields(_resolved(location, [], monkeypatch), "config"))
    random_ = random.Random(config)
    refused = 0
    for _ in range(25):
        chosen = random_.choices(paths, k=random_.choice((1, 1, 2)))
        arguments = [f"--{path}={random_.choice(_VALUES)}" for path in chosen]
        try:
            values = _resolved(location, arguments, monkeypatch)
            cli._answered(functools.partial(_checked, values))
        except SystemExit as end:
            refused += 1
            said = capsys.readouterr().err
            assert end.code == 2 and said.startswith("error: "), (arguments, said)
            assert len(said) <= 520 and said.count("\n") == 1, (arguments, said)
            assert said[:-1].replace("\udcff", "").isprintable(), (arguments, said)
    assert refused > 5
