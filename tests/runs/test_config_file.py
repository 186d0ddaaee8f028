"""Config files that do anything: one line, and never an exit code of theirs."""

import re
import signal

import pytest
from ml_collections import ConfigDict

from attention_jax.errors import ConfigError
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.config_file import load_config

_HEAD = "from ml_collections import ConfigDict, config_dict\n"


@pytest.fixture
def load(tmp_path):
    """Loads a config file of this code."""

    def loaded(code, head=_HEAD):
        (tmp_path / "mine.py").write_text(head + code)
        return load_config(str(tmp_path / "mine.py"))

    return loaded


_RAISES = "def get_config():\n    raise {}"
_HOSTILE = """
class Error({base}):
    def __str__(self): raise {base}
def get_config(): raise Error
"""
_NESTED = """
def get_config():
    top = config = ConfigDict()
    for _ in range(1000):
        config.a = ConfigDict()
        config = config.a
    return top
"""
_ITSELF = "def get_config():\n    c = ConfigDict()\n    c.a = c\n    c.b = c\n    return c"
_DOUBLED = """
def get_config():
    c = ConfigDict({'x': 1})
    for _ in range(30): c = ConfigDict({'a': c, 'b': c}, convert_dict=False)
    return c
"""
_TEXT_OF_TEXTS = """
class Text(str):
    def __repr__(self): raise SystemExit(0)
    def __eq__(self, other): raise SystemExit(0)
    __hash__ = str.__hash__
def get_config(): return ConfigDict({'a': Text('b'), 'c': (Text('d'), True, 3, 0.5, None)})
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        (_RAISES.format("SystemExit(3)"), "SystemExit: 3"),
        (_RAISES.format("KeyboardInterrupt"), "KeyboardInterrupt"),
        (_RAISES.format("GeneratorExit('x')"), "GeneratorExit: x"),
        (_RAISES.format("BaseExceptionGroup('y', [KeyboardInterrupt()])"), "BaseExceptionGroup: y"),
        (_RAISES.format("MemoryError"), "MemoryError"),
        (_HOSTILE.format(base="Exception"), "Error: an error without a text"),
        (_HOSTILE.format(base="SystemExit"), "Error: an error without a text"),
        ("def get_config(): return get_config()", "RecursionError"),
        (_NESTED, "expected groups 32 deep, found more"),
        (_ITSELF, "does it hold itself?"),
        (_DOUBLED, "expected at most 100000 values, found more"),
        ("def get_config(): return ConfigDict({1: 2})", "config: expected names of fields"),
        ("def get_config(): return ConfigDict({'a': {4: 2}})", "config.a: expected names of"),
        ("def get_config(): return ConfigDict({'a': object()})", "config.a: expected a number"),
        ("def get_config(): return ConfigDict({'a': [{1, 2}]})", "config.a[0]: expected a number"),
        ("def get_config(): return ConfigDict({'a': config_dict.required_placeholder(int)})",
         "RequiredValueError"),
        (_RAISES.format("ValueError('x' * 10_000_000)"), "xxx"),
        (_RAISES.format("OSError('a\\nb\\r\\x1b[2J')"), "OSError: a b \\x1b[2J"),
    ],
)  # fmt: skip
def test_what_a_file_does_is_answered_in_a_line(load, code, words):
    with pytest.raises(ConfigError) as error:
        load(code)
    line = str(error.value)
    assert words in line and "mine.py: " in line
    assert line.isprintable() and len(line) <= 500


def test_what_comes_back_is_plain(load):
    config = load(_TEXT_OF_TEXTS).to_dict()
    assert config == {"a": "b", "c": ("d", True, 3, 0.5, None)}
    assert type(config["a"]) is type(config["c"][0]) is str


def test_references_within_a_config_are_resolved(load):
    config = load("def get_config():\n    c = ConfigDict({'a': 1})\n    c.b = c.get_ref('a')\n"
                  "    c.d = ConfigDict({'e': c.get_ref('a')})\n    return c")  # fmt: skip
    assert isinstance(config, ConfigDict)
    assert config.to_dict() == {"a": 1, "b": 1, "d": {"e": 1}}


def test_an_interrupt_while_a_file_is_run_is_no_mistake_of_the_file(load):
    code = "import signal\ndef get_config(): signal.raise_signal(signal.SIGINT)"
    before = signal.getsignal(signal.SIGINT)  # ignored where the tests run in the background
    with pytest.raises(KeyboardInterrupt):
        load(code)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_config_of_the_page_is_whole(repository, load):
    page = (repository / "docs" / "configuration.md").read_text(encoding="utf-8")
    code = re.search(r"^## A config of your own$.*?```python\n(.*?)```", page, re.S | re.M)[1]
    config = from_config_dict(load(code, head=""))
    assert config.model.decoder.hidden_dim == 256
    assert config.model.sources["source"].input.name == "tokens"  # what it leaves out


def test_configs_of_the_project_are_known_by_name_anywhere(tmp_path, monkeypatch, repository):
    expected = load_config(f"{repository / 'configs' / 'bahdanau2015.py'}:smoke")
    monkeypatch.chdir(tmp_path)
    assert load_config("bahdanau2015:smoke") == expected
    with pytest.raises(ConfigError, match="none at bahdanau2051; did you mean bahdanau2015[?]"):
        load_config("bahdanau2051")
    with pytest.raises(ConfigError, match="none at configs/wu2018.py; did you mean wu2018[?]"):
        load_config("configs/wu2018.py")
    (tmp_path / "bahdanau2015").write_text("")  # what is here comes first
    with pytest.raises(ConfigError, match="expected a Python file, found bahdanau2015"):
        load_config("bahdanau2015:smoke")


def test_the_config_of_a_run_is_one_as_well(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"seed": 3, "search": {"beam_size": 2}, "splits": ["test"]}')
    found = load_config(str(path))
    assert isinstance(found, ConfigDict)
    assert found.search.beam_size == 2
    with pytest.raises(ConfigError, match=r"expected nothing after .*config\.json, found 'smoke'"):
        load_config(f"{path}:smoke")
    path.write_text("[1]")
    with pytest.raises(ConfigError, match="expected an object"):
        load_config(str(path))
