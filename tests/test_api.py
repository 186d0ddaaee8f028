"""The Python API: what a notebook asks of a trained run, beside what the programs print."""

import _thread
import doctest
import json
import pathlib
import re
import shutil
import threading

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from attention_jax import api
from attention_jax.data.pictures import read_picture
from attention_jax.errors import UserError
from attention_jax.paths import user_cache
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.config import from_config_dict
from attention_jax.training import preemption
from attention_jax.training.reporting.meter import Meter
from configs.vaswani2017 import get_config
from tests.pictures import draw_squares
from tests.training.untrained import untrained


@pytest.fixture(scope="module")
def run(trained):
    jax.config.update("jax_compilation_cache_dir", None)
    yield api.load(trained)
    jax.config.update("jax_compilation_cache_dir", None)


def test_what_is_compiled_for_a_run_is_kept(run):
    assert pathlib.Path(jax.config.jax_compilation_cache_dir).is_relative_to(user_cache())


def test_translate_gives_what_the_program_prints(run, launch, trained):
    lines = ["123", "", "45"]
    outputs = run.translate(lines)
    printed = launch("translate", f"--workdir={trained}", stdin="\n".join(lines).encode()).out
    expected = ["one two three", "", "four five"]
    assert [output.text for output in outputs] == printed.splitlines() == expected
    first, blank = outputs[0], outputs[1]
    assert first.source == "123" and first.tokens[-1] == "</s>" and len(first.source_tokens) == 4
    assert first.attention.shape == (len(first.tokens), 4)
    np.testing.assert_allclose(first.attention.sum(-1), 1, rtol=1e-5)
    assert blank.attention.shape == (0, 0) and blank.tokens == ()


def test_translate_nbest_is_best_first(run):
    [outputs] = api.load(run.directory, search={"beam_size": 4}).translate_nbest(["12"], 4)
    scores = [output.score for output in outputs]
    assert len(outputs) == 4 and scores == sorted(scores, reverse=True)
    assert not any(output.heads for output in outputs)


def test_translate_begins_as_it_is_told(run):
    """A whole target is as likely as it is scored; a free line is as before."""
    target = "nine eight"
    begun, free = run.translate(["12", "45"], prefixes=[target, ""])
    [before] = run.translate(["45"])
    assert begun.text.startswith(target) and free.text == before.text
    [pair] = run.score(["12"], [begun.text])
    np.testing.assert_allclose(pair.log_prob, begun.log_prob, atol=1e-5)
    [lists] = run.translate_nbest(["12"], 1, prefixes=["nine"])
    assert [output.tokens[0] for output in lists] == ["nine"]


def test_score_is_the_probability_that_the_search_found(run):
    outputs = run.translate(["123", "45"])
    found = run.score([output.source for output in outputs], [output.text for output in outputs])
    for output, pair in zip(outputs, found, strict=True):
        np.testing.assert_allclose(pair.log_prob, output.log_prob, atol=1e-5)
        np.testing.assert_allclose(pair.score, output.score, atol=1e-5)
        assert len(pair.log_probs) == len(output.tokens)
    [worse] = run.score(["123"], ["nine nine nine"])
    assert worse.log_prob < found[0].log_prob


def test_several_runs_predict_together(run):
    both = api.load(run.directory, run.directory, ensemble="mean")
    outputs, [expected] = both.translate(["123"]), run.translate(["123"])
    assert outputs[0].text == expected.text
    np.testing.assert_allclose(outputs[0].log_prob, expected.log_prob, atol=1e-5)
    np.testing.assert_allclose(outputs[0].attention, expected.attention, atol=1e-5)


def test_evaluate_gives_what_the_program_writes(run, tmp_path):
    copy = shutil.copytree(run.directory, tmp_path / "run")
    metrics = api.load(copy).evaluate(["123", "45"], ["one two three", "nine"], name="mine")
    place = copy / "evaluations" / "mine"
    assert json.loads((place / "results.json").read_text())["mine"] == metrics
    assert 50 < metrics["chrf"] < 100 and (place / "viewer.mine.html").exists()
    assert api.load(copy).results == run.results


GOLD = ["0-0 1-1 2-2", "0-0 1-1"]
LINKS = [[(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)]]


def test_evaluate_takes_gold_links_as_the_program_does(run, launch, tmp_path):
    sources, targets, digits = ["123", "45"], ["one two three", "four five"], ["1 2 3", "4 5"]
    files = {}
    for name, lines in (("s.txt", sources), ("t.txt", targets), ("g", GOLD), ("d", digits)):
        files[name] = tmp_path / name
        files[name].write_text("".join(f"{line}\n" for line in lines))
    copy = shutil.copytree(run.directory, tmp_path / "run")
    launch(
        "evaluate", f"--workdir={copy}", f"--source={files['s.txt']}", f"--target={files['t.txt']}",
        f"--alignment={files['g']}", f"--alignment_source={files['d']}", "--name=theirs",
    )  # fmt: skip
    [theirs] = json.loads((copy / "evaluations/theirs/results.json").read_text()).values()
    ours, found = api.load(copy), []
    for n, (gold, words) in enumerate([(files["g"], files["d"]), (GOLD, digits), (LINKS, digits)]):
        found.append(ours.evaluate(sources, targets, name=f"n{n}", gold=gold, gold_sources=words))
    assert found[0] == found[1] == found[2] == theirs
    assert 0 <= theirs["aer"] < 50


def test_evaluate_asks_whether_gold_links_are_counted_from_one(run, tmp_path, capsys):
    copy = api.load(shutil.copytree(run.directory, tmp_path / "run"))
    copy.evaluate(["12"], ["one two"], name="n", gold=["1-1"], gold_sources=["1 2"])
    notice = "gold: no link names word 0: counted from 1? gold_base=1"
    assert notice in capsys.readouterr().err


def test_attend_is_the_attention_of_the_search_when_its_output_is_forced(run):
    [output] = run.translate(["123"])
    forced = run.attend("123", output.text)
    assert (forced.tokens, forced.source_tokens) == (output.tokens, output.source_tokens)
    np.testing.assert_allclose(forced.weights, output.attention, atol=1e-5)


def test_unknown_words_of_a_given_target_are_shown_as_they_were_given(run):
    target = "one zyx three"
    assert run.attend("123", target).tokens[:3] == ["one", "zyx", "three"]
    assert run.attribute("123", target, "input_gradient").tokens[:3] == ["one", "zyx", "three"]


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    """A Transformer that was trained for a step."""
    config = get_config("smoke")
    config.training.num_steps, config.evaluation.splits = 1, ()
    return api.train(config, tmp_path_factory.mktemp("transformer"))


def test_train_and_attend_name_every_layer_and_head(transformer):
    run, config = transformer, transformer.config
    forced = run.attend("123", "one two three")
    layers, heads = config.model.decoder.num_layers, config.model.attention.num_heads
    shape = layers * heads, len(forced.tokens), len(forced.source_tokens)
    assert forced.heads["attention"].shape == shape
    own = [name for name in forced.heads if name.endswith("self_attention")]
    assert len(own) == layers + config.model.sources.source.encoder.num_layers
    for name in own:
        np.testing.assert_allclose(forced.heads[name].sum(-1), 1, rtol=1e-5)


def test_translate_gives_the_heads_of_what_it_has_written(transformer, launch, tmp_path):
    """Those of every output, as `launch.translate --weights` writes them."""
    lines, path = ["123", "", "45"], tmp_path / "matrices.npz"
    run = api.load(transformer.directory, search={"method": "beam", "beam_size": 2})
    found = run.translate_nbest(lines, 2, heads=True)
    launch(
        "translate", f"--workdir={run.directory}", "--search.method=beam", "--search.beam_size=2",
        "--nbest=2", f"--weights={path}", stdin="\n".join(lines).encode(),
    )  # fmt: skip
    with np.load(path) as file:
        written = dict(file)
    assert [len(outputs) for outputs in found] == [2, 1, 2] and not found[1][0].heads
    for n, output in enumerate([*found[0], *found[2]]):
        assert [*written[f"{n}/tokens"]] == [*output.tokens]
        names = [name for name in written if name.startswith(f"{n}/heads/")]
        assert names == [f"{n}/heads/{layer}" for layer in output.heads] and len(names) > 1
        for name, weights in zip(names, output.heads.values(), strict=True):
            np.testing.assert_allclose(weights, written[name], atol=1e-5)
        np.testing.assert_allclose(output.attention, written[f"{n}/weights"], atol=1e-5)
    assert run.translate([""], heads=True)[0].heads == {}


def test_a_model_that_attends_to_nothing_has_no_heads(run, monkeypatch):
    monkeypatch.setattr(type(run.trained), "links_tokens", False)
    with pytest.raises(UserError, match="that attends to tokens of its source, found none"):
        run.translate(["123"], heads=True)
    assert run.translate(["123"])[0].text == "one two three"


def test_a_digit_counts_most_for_its_own_name(run):
    found, forced = run.attribute("123", "one two three"), run.attend("123", "one two three")
    assert (found.tokens, found.source_tokens) == (forced.tokens, forced.source_tokens)
    assert found.values.shape == forced.weights.shape
    assert found.weights[:3, :3].argmax(-1).tolist() == [0, 1, 2]
    assert isinstance(run.plot(found), Figure) and found.method == "integrated_gradients"


def test_plot_draws_outputs_and_attention(run):
    [output] = run.translate(["123"])
    figure = run.plot(output, run.attend("45", "four five"))
    assert isinstance(figure, Figure) and len(figure.axes) >= 2


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    """A run that describes pictures, untrained, and the paths of some."""
    folder = tmp_path_factory.mktemp("seeing")
    table = draw_squares(folder / "squares")
    sizes = {"rows": 2, "cell": 4, "channels": 3, "filters": 2, "embedding_dim": 4}
    reading = {"input": {"name": "pixels", **sizes}, "encoder": {"name": "grid", "rows": 2}}
    config = {
        "data": {"name": "pictures", "train_table": str(table), "height": 8, "cell": 4,
                 "colours": "rgb"},
        "model": {
            "name": "encoder_decoder",
            "target_embedding_dim": 4,
            "sources": {"source": reading},
            "attention": {"name": "bahdanau", "attention_dim": 4},
            "decoder": {"name": "luong", "hidden_dim": 4, "bridge": "mean"},
        },
        "training": {"num_steps": 1},
        "search": {"method": "greedy", "max_length_constant": 5},
    }  # fmt: skip
    run, _ = untrained(from_config_dict(config), folder / "run")
    return api.Run(run), [*map(str, sorted(table.parent.glob("red_*.png")))]


def test_pictures_are_drawn_as_each_word_has_seen_them(seeing):
    run, paths = seeing
    first, blank, second = run.translate([paths[0], "", paths[1]])
    assert first.source == paths[0] and blank.canvas is None
    for output in (first, second):
        assert output.source_tokens == [f"{cell}" for cell in range(8)]
        assert output.attention.shape == (len(output.tokens), 8)
    figure = run.plot(first, blank, second)
    # Each picture by itself, and once for every token.
    assert len(figure.axes) == 2 + len(first.tokens) + len(second.tokens)
    np.testing.assert_array_equal(
        np.asarray(figure.axes[0].images[0].get_array()), read_picture(paths[0], "rgb")
    )
    with pytest.raises(UserError, match="plot: expected outputs or attention, found none with any"):
        run.plot(blank)


def test_results_and_metrics_are_those_of_the_run(run):
    assert run.results["test"]["step"] == run.trained.step
    assert run.metrics


def test_train_goes_on_with_what_is_there(run, capsys):
    config = run.config
    again = api.train(config.to_dict(), run.directory)
    assert "This run is complete" in capsys.readouterr().out
    assert again.trained.step == run.trained.step


def test_train_takes_the_name_of_a_config(run, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(api, "run_experiment", lambda config, *rest, **how: asked.append(config))
    monkeypatch.setattr(api, "load", lambda workdir: run)
    monkeypatch.chdir(tmp_path)
    for config in ("vaswani2017:smoke", get_config("smoke")):
        assert api.train(config, "run") is run
    assert asked[0] == asked[1]


def short_config(**training):
    config = get_config("smoke")
    config.training = {**config.training, "num_steps": 3, **training}
    config.evaluation.splits = ()
    return config


def test_an_interrupt_of_train_is_a_keyboard_interrupt_after_the_step_is_saved(
    tmp_path, monkeypatch
):
    """As Ctrl-C in a notebook, whose process goes on."""
    add = Meter.add

    def interrupted(self, step, metrics):
        if step == 2:
            _thread.interrupt_main()
        return add(self, step, metrics)

    monkeypatch.setattr(Meter, "add", interrupted)
    monkeypatch.setattr(preemption.os, "_exit", lambda code: pytest.fail("ends the process"))
    with pytest.raises(KeyboardInterrupt):
        api.train(short_config(), tmp_path / "run")
    assert Checkpointer(tmp_path / "run" / "checkpoints").steps() == [2]


def test_train_leaves_signals_alone_off_the_main_thread(tmp_path):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(api.train(short_config(num_steps=1), tmp_path / "run"))
    )
    thread.start()
    thread.join()
    assert found[0].trained.step == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.translate("123"), "lines: expected a list of texts, found one text"),
        (lambda run: run.translate(["1"], prefixes="one"), "prefixes: expected a list of texts, f"),
        (lambda run: run.score(["1"], ["one", "two"]), "targets: expected one for each of the 1"),
        (lambda run: run.score(["1"], ["one"], {"fr": "1"}), "fr: expected a list of texts, found"),
        (lambda run: run.plot(), "plot: expected outputs or attention, found none"),
        (lambda run: run.score(["1" * 20_000], ["one"]), "pair 1: expected at most"),
        (lambda run: api.load(run.directory, search={"beam": 3}), "search.beam: no such field"),
        (lambda run: api.load(run.directory / "none"), "expected the directory of a run"),
        (lambda run: api.train(ConfigDict({"modle": {}}), "x"), "modle"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(run, call, words):
    with pytest.raises(UserError) as error:
        call(run)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_the_page_of_the_api_runs(repository, trained, tmp_path, monkeypatch):
    """Every block of Python of docs/python.md, one after the other, on a trained run."""
    page = (repository / "docs" / "python.md").read_text()
    (tmp_path / "runs").mkdir()
    shutil.copytree(trained, tmp_path / "runs" / "quickstart")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102
    assert len(blocks) >= 4 and names["outputs"][0].source == "attention"
    assert len(names["alternatives"]) == 3 and len(names["pairs"][1].log_probs) == 5


def test_the_examples_of_the_module_run(run, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    shutil.copytree(run.directory, tmp_path / "runs" / "numbers")
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(api)
    assert found.attempted >= 10 and not found.failed
    assert (tmp_path / "map.png").exists()
