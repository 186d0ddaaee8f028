"""Commands of examples, in help texts and on pages, parsed as their programs parse them."""

import contextlib
import dataclasses
import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from absl import flags

from attention_jax.commands import align, cli, sweep_request
from attention_jax.decoding.translate import check_nbest
from attention_jax.devices.ahead_of_time import targets
from attention_jax.host import children
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.size_of_text import USUAL, settled
from attention_jax.search import SearchConfig
from attention_jax.sweeps.sweep import Sweep
from launch.gke import options

OTHER_MODULES = ("pytest",)  # which Python is told to run on pages
# Programs whose options have a config file, and those that ask the run in --workdir.
WITH_CONFIG = ("train", "compile_check", "gke.manifest")
WITH_RUN = ("evaluate", "score", "translate")
# Programs that define flags when they are imported: their options are looked for in their help.
UNPARSED = (
    "experiments.compare_runs", "experiments.benchmarks.scaling.plan",
    "experiments.benchmarks.scaling.measure",
)  # fmt: skip
LAUNCHERS = {"local": ["logs"], "supervise": ["retries", "wait"]}
STARTED = re.compile(r"launch/(?:slurm|tpu_vm)/\w+\.\w+")


@dataclasses.dataclass(frozen=True)
class Example:
    """A command: its program, a module of `launch`, of `experiments`, or a script; arguments."""

    program: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join([self.program, *self.arguments])


def lines(text: str) -> list[str]:
    """The lines of a shell script, continued ones joined."""
    return text.replace("\\\n", " ").splitlines()


def commands(line: str) -> Iterator[Example]:
    """The commands of this project in a line of a shell; what others have in it is left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if not re.fullmatch("[|&;]+", word):
            words.append(word)
            continue
        if found := command([*words]):
            yield found
        words = []


def command(words: list[str]) -> Example | None:
    """A command, without variables before it, and without what it reads and writes."""
    for sign in ("<", ">"):
        if sign in words:
            place = words.index(sign)
            del words[place : place + 2]
    while words and re.match(r"[A-Z_]+=", words[0]):
        del words[0]
    for place, word in enumerate(words):
        if word == "-m" and re.fullmatch(r"(launch|experiments)\.[\w.]+", words[place + 1]):
            name = words[place + 1].removeprefix("launch.")
            return Example(name, (*words[place + 2 :],))
        if STARTED.fullmatch(word):
            return Example(word, (*words[place + 1 :],))
        if match := re.fullmatch(r"launch/(\w+)\.sh|attention-([\w-]+)", word):
            name = match[1] or match[2].replace("-", "_")
            return Example(name, (*words[place + 1 :],))
        assert word != "-m" or words[place + 1] in OTHER_MODULES, shlex.join(words)
    return None


@contextlib.contextmanager
def flags_of(define) -> Iterator[None]:
    """Flags that a program defines, alone, for as long as the block runs."""
    # Some programs define theirs when they are imported, as tests of them have done.
    others = [
        (module, flag)
        for module, defined in flags.FLAGS.flags_by_module_dict().items()
        if module.startswith("experiments.")
        for flag in defined
    ]
    for _, flag in others:
        delattr(flags.FLAGS, flag.name)
    before = {*flags.FLAGS}
    try:
        define()
        yield
    finally:
        for name in {*flags.FLAGS} - before:
            delattr(flags.FLAGS, name)
        for module, flag in others:
            flags.DEFINE_flag(flag, module_name=module)


def check(example: Example, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parses an example as its program does, and looks at what it has parsed."""
    name, arguments = example.program, [*example.arguments]
    assert "..." not in str(example)
    if name in LAUNCHERS:
        _, rest = children.split(arguments, LAUNCHERS[name])
        started = command(rest[1:] if name == "local" else rest)
        assert started is not None
        return check(started, run, monkeypatch)
    if "/" in name:  # a script, which hands on what its training takes
        trained = arguments[arguments.index("--") + 1 :] if "--" in arguments else arguments
        is_training = name.endswith(("pod.sh", "train.sbatch"))
        if is_training and any(each.startswith("--config=") for each in trained):
            check(Example("train", (*trained,)), run, monkeypatch)
        return None
    if name in UNPARSED:
        return None
    argv = [name, *arguments]
    monkeypatch.setattr(sys, "argv", argv)
    if name in WITH_RUN:  # the run is the reader's
        argv = [re.sub("^--workdir=.*", f"--workdir={run}", each) for each in argv]
    with flags_of(lambda: _define_flags(name)):
        assert cli.parse_flags(_prepared(name, argv), flags.FLAGS) == [name]
        _check_values(name)
    return None


def _define_flags(name: str) -> None:
    if name.startswith("gke."):
        options.define_flags()
        if name == "gke.sweep":  # what its main defines when it is run
            flags.DEFINE_string("workdir", None, "The sweep.")
            flags.DEFINE_list("run", [], "Numbers of runs.")
    elif name != "align":  # whose flags are those of its command
        importlib.import_module(f"attention_jax.commands.{name}").define_flags()


def _prepared(name: str, argv: list[str]) -> list[str]:
    if name == "align":
        return align.prepare(argv)
    if name == "evaluate":
        return cli.prepare_evaluation(argv)
    if name in WITH_RUN:
        return cli.prepare_search(argv)
    if name == "sweep":
        return sweep_request.prepare(argv)
    return cli.prepare_experiment(argv) if name in WITH_CONFIG else argv


def _check_values(name: str) -> None:
    """Checks what a program finds out after its flags are parsed, without doing its work."""
    if "config" in flags.FLAGS:
        from_config_dict(settled(flags.FLAGS["config"].value, print, USUAL))
    # A search is asked for in vain where there is no optuna.
    if name == "sweep" and not (cli.value("search") and find_spec("optuna") is None):
        plan = sweep_request.asked_plan()
        assert plan is None or Sweep(Path(), plan).experiments  # None without a config
    if "topology" in flags.FLAGS:
        memory = flags.FLAGS["memory_gib"].value if "memory_gib" in flags.FLAGS else None
        targets.parse_target(cli.require("topology"), cli.value("slices"), memory)
    if name == "translate":
        # Of the run of a reader, who has searched as is usual.
        check_nbest(SearchConfig(**_told("search")), cli.value("nbest"))
    if name == "score":
        assert (cli.value("target") is None) != (cli.value("nbest") is None)


def _told(group: str) -> dict:
    """What a command line says of a group of fields."""
    said = [each for each in sys.argv if each.startswith(f"--{group}.")]
    values = cli.overridden(group)
    names = [each.partition("=")[0].removeprefix(f"--{group}.") for each in said]
    return {name: values[name] for name in names}
