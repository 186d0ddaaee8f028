"""Mistakes of a Python caller are told by the arguments that he gave, and by no options."""

import inspect

import pytest

from attention_jax import api
from attention_jax.errors import ConfigError, UserError
from attention_jax.python_arguments import (
    by_argument,
    check_count,
    check_paths,
    check_shown,
    check_text,
    check_texts,
    in_arguments,
)

TRANSLATION = {"source": "further", "prefix": "prefixes"}


@pytest.fixture(scope="module")
def run(trained):
    return api.load(trained)


# Of each public function, what it is told, and how the message begins.
MISTAKES = {
    "translate": [
        (lambda run: run.translate(["1"], prefixes=[]), "prefixes: expected 1 lines, as in the in"),
        (
            lambda run: run.translate(["1"], {"fr": ["1"]}),
            "further: expected further sources (none, as the model reads one source), found 'fr'",
        ),
        (lambda run: run.translate(["1", "1" * 20_000]), "lines[1]: expected at most 10000 char"),
        (
            lambda run: run.translate(["1"], prefixes=["x" * 20_000]),
            "prefixes[0]: expected at most 10000 characters, found 20000",
        ),
    ],
    "translate_nbest": [
        (
            lambda run: api.load(run.directory, search={"method": "beam", "beam_size": 2})
            .translate_nbest(["1"], 3),
            "nbest: expected at most search.beam_size (2), found 3; search={'beam_size': 3} gives "
            "as many",
        ),
    ],
    "score": [
        (lambda run: run.score(["1"], ["one", "two"]), "targets: expected one for each of the 1"),
        (lambda run: run.score(["1"], ["one"], {"fr": ["1"]}), "further sources: expected none"),
    ],
    "evaluate": [
        (lambda run: run.evaluate(["1"], ["one"], name="a b"), "name: expected letters, digits"),
        (lambda run: run.evaluate(["1"], ["one"], gold=["0-0", ""]), "gold: expected 1 lines, one"),
        (lambda run: run.evaluate(["1"], ["one"], gold=["0-0 x"]), "gold[0]: expected links such"),
        (lambda run: run.evaluate(["1"], ["one"], gold=[[(0, 1, 2)]]), "gold[0]: expected links s"),
        (
            lambda run: run.evaluate(["1"], ["one"], gold=["0-0"], gold_sources=["1", "2"]),
            "gold_sources: expected 1 lines, one for each pair, found 2",
        ),
        (lambda run: run.evaluate(["1"], ["one"], gold_targets=["1"]), "gold_targets: expected g"),
        (lambda run: run.evaluate(["1"], ["one"], gold=["1-9"], gold_base=1), "gold[0]: "),
        (lambda run: run.evaluate(["1"], ["one"], gold=["0-0"], gold_base=2), "gold_base: expect"),
        (lambda run: run.evaluate(["1"], ["one"], gold_base=1), "gold_base: expected gold beside"),
        (lambda run: run.evaluate(["1"], ["one"], gold="none"), "none: expected"),
    ],
    "attend": [
        (lambda run: run.attend("1", "one", {"fr": "1"}), "further sources: expected none, found"),
    ],
    "attribute": [
        (lambda run: run.attribute("1", "one", "shap"), "method: expected input_gradient, "),
    ],
    "plot": [(lambda run: run.plot(), "plot: expected outputs or attention, found none")],
    "load": [
        (lambda run: api.load(), "paths: expected the directory of a run, found none"),
        (lambda run: api.load(run.directory, ensemble="max"), "ensemble: expected log_linear or m"),
        (lambda run: api.load(run.directory, direction="back"), "direction: expected forward or r"),
    ],
    "train": [
        (lambda run: api.train("bahdanau:smoke", "x"), "config: expected a file, found none at ba"),
        (lambda run: api.train("quickstart:smoke:x", "x"), "quickstart:smoke:x: "),
    ],
}  # fmt: skip


def test_each_public_function_has_its_mistakes():
    public = [
        name
        for owner in (api, api.Run)
        for name, member in vars(owner).items()
        if inspect.isfunction(member) and not name.startswith("_")
        and member.__module__ == api.__name__
    ]  # fmt: skip
    assert {*public} == {*MISTAKES}


@pytest.mark.parametrize(
    ("call", "begins"),
    [pytest.param(*each, id=f"{name}-{n}") for name, found in MISTAKES.items()
     for n, each in enumerate(found)],
)  # fmt: skip
def test_mistakes_name_arguments(run, call, begins, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        call(run)
    message = str(error.value)
    assert message.startswith(begins) and "\n" not in message
    assert "--" not in message


def test_another_config_in_the_directory_of_a_run(run):
    config = run.config
    config.seed += 1
    with pytest.raises(UserError) as error:
        api.train(config, run.directory)
    assert "choose another workdir" in str(error.value) and "--" not in str(error.value)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "--source: expected fr=FILE, with a line for each of the input, found none",
            "further: expected {'fr': [...]}, with a line for each of the input, found none",
        ),
        ("--source=fr line 3: expected", "further['fr'][2]: expected"),
        ("--source=fr: expected 2 lines", "further['fr']: expected 2 lines"),
        ("others; --config.data.vocabularies= trains", "others; config.data.vocabularies trains"),
        ("a new --workdir with --config.a.b=/c/d", "a new workdir with config.a.b=/c/d"),
        ("--search.first_token: expected 0", "search.first_token: expected 0"),
        ("as `launch.align train --model` writes it", "as `launch.align train --model` writes it"),
        ("the run's --prefix line 1: found '--prefix'", "the run's prefixes[0]: found '--prefix'"),
        ("input line 12: found", "lines[11]: found"),
    ],
)
def test_options_are_told_as_arguments(message, expected):
    assert in_arguments(message, TRANSLATION) == expected


def test_an_error_keeps_its_class():
    @by_argument(a="b")
    def call():
        raise ConfigError("--a: expected")

    with pytest.raises(ConfigError, match="^b: expected$"):
        call()


def test_a_long_message_is_cut_after_it_was_told():
    @by_argument()
    def call():
        raise UserError(f"--config: expected {'x' * 2000}--workdir")

    with pytest.raises(UserError) as error:
        call()
    assert len(str(error.value)) == 500 and str(error.value).startswith("config: expected x")


@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (check_texts, {"lines": "one"}, "lines: expected a list of texts, found one text, 'one'"),
        (check_texts, {"lines": ["one", 1]}, "lines[1]: expected a text, found 1"),
        (check_texts, {"lines": None}, "lines: expected a list of texts, found None"),
        (check_paths, [["a", "b"]], "as load('runs/one', 'runs/two'), found ['a', 'b']"),
        (check_paths, [], "paths: expected the directory of a run, found none"),
        (check_shown, [["output"]], "of several as plot(*outputs), found ['output']"),
    ],
)
def test_arguments_of_another_kind_are_one_line(check, given, message):
    with pytest.raises(UserError) as error:
        check(given)
    assert message in str(error.value)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3"])
def test_a_count_is_a_number_from_one(count):
    check_count(nbest=1)
    with pytest.raises(UserError, match=f"^nbest: expected a number from 1, found {count!r}$"):
        check_count(nbest=count)


def test_a_text_is_a_text():
    check_texts({"lines": ["one"]})
    with pytest.raises(UserError, match=r"source: expected a text, found \['one'\]"):
        check_text(source=["one"])
