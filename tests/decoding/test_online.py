"""Outputs that are written while a line is being read are those of a search of the whole line."""

import dataclasses
import itertools
import os

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.configuration import typed
from attention_jax.data.examples import Inputs
from attention_jax.data.incoming import incoming_lines, incoming_tokens
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.online import OnlineTranslator, translate_standard_input
from attention_jax.decoding.searcher import Searcher
from attention_jax.decoding.translate import Translator
from attention_jax.errors import DataError, UserError
from attention_jax.evaluation.latency import latency_scores, tokens_read
from attention_jax.models import MODELS
from tests.parameters import drawn
from tests.training.tiny import tiny_config
from tests.training.untrained import untrained

D = 8
SCORE = {"name": "normed_bahdanau", "attention_dim": D}
MONOTONIC = {"name": "monotonic", "score": SCORE}
LINES = ("1234567", "7", "77115", "000000000000000000", "31")


LUONG = {"name": "luong", "hidden_dim": D, "attentional_dim": D, "bridge": "zero"}
TRANSFORMER = {
    "name": "transformer", "num_layers": 1, "feed_forward_dim": D,
    "self_attention": {"name": "scaled_dot"},
}  # fmt: skip


# Seed, scale and r of parameters whose attention goes on reading as the output grows.
DRAWN = {"monotonic": (2, 2.0, -0.5), "mocha": (1, 2.0, -2.0), "transformer": (9, 1.0, -4.0)}


def run_of(
    folder, attention=MONOTONIC, decoder=LUONG, direction="forward", drawn_as="monotonic", **fields
):
    """An untrained run and its task."""
    encoder = {"hidden_dim": D, "direction": direction}
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {"source": {"input": {"embedding_dim": D}, "encoder": encoder}},
        "attention": attention,
        "decoder": decoder,
        **fields,
    }
    model = typed(MODELS.config("encoder_decoder"), values, "config.model")
    run, task = untrained(dataclasses.replace(tiny_config(), model=model), folder)
    seed, scale, r = DRAWN[drawn_as]
    params = drawn(run.model, seed, scale)
    for tree in (params["decoder"], params["decoder"].get("layer_0", {})):
        if "gain" in tree.get("attention", {}):
            tree["attention"] |= {"gain": jnp.float32(8.0), "stop_bias": jnp.float32(r)}
    return dataclasses.replace(run, params=params), task


# Segment to segment transduction, whose sum over alignments has a term for every slot.
SUMMED = {
    "attention": {"name": "bahdanau", "attention_dim": D},
    "decoder": {"name": "transducer", "hidden_dim": D, "bridge": "zero"},
    "readout": {"name": "marginal", "hidden_dim": D, "alignment": {"name": "segments"}},
}
MOCHA = {"name": "mocha", "score": SCORE, "chunk_score": {"name": "luong_general"}}
RUNS = {
    "monotonic": {},
    "mocha": {"attention": MOCHA},
    "transformer": {"decoder": TRANSFORMER},
}


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("online") / "run"
    return run_of(folder, **RUNS[request.param], drawn_as=request.param)[0]


def searched(run, lines=LINES, **search):
    """The hypotheses of the ordinary search."""
    config = dataclasses.replace(run.config.search, **search)
    searcher = Searcher(run.model, config, seed=0)
    found = searcher(run.params, Inputs(list(lines), run.source_vocabulary), run.config.data)
    return [one[0] for one in found]


def with_search(run, **search):
    config = dataclasses.replace(run.config.search, **search)
    return dataclasses.replace(run, config=dataclasses.replace(run.config, search=config))


@pytest.mark.parametrize("search", [{}, {"min_length_ratio": 1.5, "no_repeat_ngram_size": 3}])
def test_outputs_are_those_of_greedy_search(run, search):
    """And each is written as soon as its attention has stopped."""
    if search and run.model.decoder.config.name == "transformer":
        pytest.skip("what is searched for is one of the others' concern")
    translator, waits = OnlineTranslator(with_search(run, **search)), []
    for line, expected in zip(LINES, searched(run, **search), strict=True):
        tokens = translator.search(iter(run.source_vocabulary.encode(line)))
        found = list(itertools.islice(tokens, 99))  # more than any may have
        assert [token for token, _ in found] == expected.tokens[:-1].tolist()
        read, counts = tokens_read(expected.weights), [count for _, count in found]
        for place in range(0 if search else len(found)):
            # Late ones wait for the end of the line, which says how long an output may be.
            if place + 1 < run.config.search.longest(int(read[place]) + 1):
                assert counts[place] == read[place]
        assert np.all(np.array(counts) >= read) and counts == sorted(counts)
        waits += [count < len(line) for count in counts]
        assert search or line != LINES[0] or len(set(counts[:8])) > 2  # it goes on reading
    assert 0 < sum(waits) < len(waits)


@pytest.fixture
def stdin(monkeypatch):
    """The writing end of a pipe that is the standard input."""
    reader, writer = os.pipe()
    with open(reader, encoding="utf-8") as file, open(writer, "wb", buffering=0) as other:
        monkeypatch.setattr("sys.stdin", file)
        yield other


@pytest.mark.timeout(120)  # it would wait forever where more is read than is needed
def test_an_output_begins_before_its_line_has_ended(stdin, tmp_path):
    run, _ = run_of(tmp_path / "run")
    line, expected = LINES[0], searched(run)[0]
    counts = tokens_read(expected.weights)
    assert counts[0] < len(line)
    parts, sent, text = translate_standard_input(run), 0, ""
    for count in counts[:5]:  # whether late ones are the last that may be, the line's end tells
        stdin.write(line[sent:count].encode())
        sent = max(sent, count)
        text += next(parts)  # no more of the line is there
    stdin.write(line[sent:].encode() + b"\r\n\n")
    stdin.close()
    found = text + "".join(parts)
    assert found.partition(" ||| ")[0] == run.target_vocabulary.decode(expected.tokens)
    *told, blank, nothing = found.partition(" ||| ")[2].split("\n")
    assert (blank, nothing) == ("", "") and [*map(int, told[0].split())][:5] == [*counts[:5]]
    translator = Translator(run)
    assert [found.partition(" ||| ")[0]] == [*translator.format(translator.translate([line]))]


def test_evaluation_tells_the_latency(tmp_path):
    run, task = run_of(tmp_path / "run")
    assert "online" in run.model.provides
    evaluation = Evaluation(run, task)
    outputs = evaluation.decode("test")
    metrics = evaluation.write(outputs)
    expected = latency_scores(one[0].weights for one in outputs.found)
    assert expected and expected.items() <= metrics.items()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"direction": "bidirectional"}, "sources.source.encoder: .* 'recurrent' with direction"),
        ({"attention": {"name": "bahdanau", "attention_dim": D}}, "attention: .* found 'bahdanau'"),
        ({"attention": {**MONOTONIC, "evaluation": "expected"}}, "with evaluation 'expected'"),
        ({"decoder": {**LUONG, "bridge": "mean"}}, "decoder: .* starts from nothing, with bridge"),
        ({"decoder": {**TRANSFORMER, "num_layers": 2}}, "decoder: .* transformer of one layer"),
        (
            {"attention": {"name": "step_pointer"}},
            "attention: .* found 'step_pointer', which reads how many slots there are",
        ),
        (SUMMED, "readout.name: .* found 'marginal', which sums over all slots"),
    ],
)
def test_models_that_wait_for_the_whole_source_are_refused(tmp_path, fields, message):
    run, _ = run_of(tmp_path / "run", **fields)
    assert "online" not in run.model.provides
    with pytest.raises(UserError, match=f"^--online: .*{message}") as error:
        OnlineTranslator(run)
    assert "\n" not in str(error.value)


def test_searches_and_flags_that_do_not_fit_are_refused(tmp_path):
    run, _ = run_of(tmp_path / "run")
    for search, words in (
        ({"method": "beam"}, "--search.method=greedy, for what is written stays, found 'beam'"),
        ({"replace_unknown": True}, "without replace_unknown"),
        ({"shortlist": 5}, "expected --search.shortlist=0, for the source is not yet known"),
        ({"dtype": "int8"}, "expected --search.dtype=float32, found 'int8'"),
    ):
        with pytest.raises(UserError, match=words):
            OnlineTranslator(with_search(run, **search))
    with pytest.raises(UserError, match="--online: expected no --nbest beside it"):
        next(translate_standard_input(run, "nbest"))


def test_command_answers_with_one_line(launch, trained):
    arguments = [f"--workdir={trained}", "--online"]
    error = launch("translate", *arguments, stdin=b"12\n").error
    assert error.startswith("--online: model.sources.source.encoder: expected annotations that")


# ---- The standard input as it comes --------------------------------------------------------------
def test_lines_are_read_character_by_character(stdin):
    stdin.write(b"\xef\xbb\xbf\xc3")
    lines = incoming_lines()
    stdin.write(b"\xa4b\n\ncd")
    first = next(lines)
    assert next(first) == "ä"
    assert [*next(lines)] == []  # what was left of the first is skipped
    stdin.close()
    assert [[*line] for line in lines] == [["c", "d"]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "standard input: expected one sentence a line, found an empty file"),
        (b"a\nb\xff\n", "standard input:2: expected UTF-8 text, found byte 0xff"),
        (b"a\n\xc3", "standard input:2: expected UTF-8 text, found byte 0xc3"),
        (b"a\0", "standard input:1: expected UTF-8 text, found a NUL character"),
    ],
)
def test_what_is_no_text_is_told_when_it_is_met(stdin, content, words):
    stdin.write(content)
    stdin.close()
    with pytest.raises(DataError, match=words):
        for line in incoming_lines():
            "".join(line)


def strip(text):
    return text.strip(" \t\r\n")


TEXTS = ["the cat, sees (a) tree.", "  the  tree sees\tthe cat \r", "der Baum", "", " \t"]
VOCABULARIES = {
    kind: SymbolVocabulary.train(kind, TEXTS) for kind in ("words", "characters", "symbols")
}  # fmt: skip


@pytest.mark.parametrize("kind", [*VOCABULARIES, "bpe"])
def test_tokens_of_a_line_are_those_of_the_whole_and_texts_only_grow(kind):
    vocabulary = VOCABULARIES.get(kind) or SubwordVocabulary.train(TEXTS * 4, 40)
    for text in TEXTS:
        ids = list(incoming_tokens(iter(text), vocabulary, strip, "input line 1"))
        assert ids == vocabulary.encode(strip(text))
        written = [vocabulary.decode(ids[:end]) for end in range(len(ids) + 1)]
        for before, after in zip(written, written[1:], strict=False):
            assert after.startswith(before)


def test_a_token_comes_as_soon_as_it_is_known():
    def characters(text):
        for character in text:
            seen.append(character)
            yield character

    for kind, expected in (("characters", ["the", "the "]), ("words", ["the ", "the cat "])):
        seen, known = [], []
        tokens = incoming_tokens(characters("the cat sees"), VOCABULARIES[kind], strip, "")
        for _ in range(3 if kind == "characters" else 1):
            next(tokens)
        known.append("".join(seen))
        next(tokens)
        known.append("".join(seen))
        if kind == "characters":
            assert known == ["the", "the c"]  # a space may be the last of the line
        else:
            assert known == expected


@pytest.mark.parametrize(("kind", "count"), [("letter_parts", 3), ("letters_and_parts", 4)])
def test_parts_of_a_letter_are_known_once_it_is_there(kind, count):
    vocabulary = SymbolVocabulary.train(kind, ["한글 é"])
    read = iter("한글")
    tokens = incoming_tokens(read, vocabulary, strip, "")
    assert [next(tokens) for _ in range(count)] == vocabulary.encode("한")
    assert [*read] == ["글"]


def test_texts_that_change_with_what_follows_are_refused():
    vocabulary = SymbolVocabulary.train("characters", ["ας", "ασα"])
    with pytest.raises(DataError, match="input line 3: expected text whose words do not change"):
        list(incoming_tokens(iter("ΑΣΑ"), vocabulary, str.lower, "input line 3"))
    with pytest.raises(DataError, match="input line 1: expected at most 10000 characters"):
        list(incoming_tokens(iter("a" * 10_001), VOCABULARIES["words"], strip, "input line 1"))
