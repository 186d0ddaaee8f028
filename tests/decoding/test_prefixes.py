"""Prefixes of a user's: outputs of trained runs begin with them, in every unit of text."""

import dataclasses
import json

import numpy as np
import pytest

from attention_jax.analysis.matrices import write_matrices
from attention_jax.configuration import typed
from attention_jax.data.text.symbol_kinds import STEP
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.origins import written_outputs
from attention_jax.decoding.prefixes import PREFIX, check_prefixable
from attention_jax.decoding.scoring import Scorer
from attention_jax.decoding.searcher import Searcher
from attention_jax.decoding.translate import Translator
from attention_jax.errors import DataError, UserError
from attention_jax.models import MODELS
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.training.untrained import untrained, untrained_run, write_text

LINES = ["the cat sees a dog.", "", "a tree.", "the dog sees the tree.", "a cat."]
BEGINNINGS = {
    "words": ["eine Katze", "", "", "Hund", "Baum."],
    "characters": ["eine Kat", "", "", "Hu", "Baum."],
    "bpe": ["eine Katze", "", "", "Hu", "Baum"],
}


def with_search(run, **search):
    config = dataclasses.replace(run.config, search=SearchConfig(**search))
    return dataclasses.replace(run, config=config)


@pytest.fixture(scope="module", params=BEGINNINGS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefixes")
    return untrained_run(folder / "run", *write_text(folder), kind=request.param)[0]


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_outputs_begin_as_they_are_told_and_the_others_as_before(run, method):
    """Their probabilities are those of teacher forcing."""
    run = with_search(run, method=method, beam_size=3, min_length_ratio=1.0)
    translator, prefixes = Translator(run), BEGINNINGS[run.target_vocabulary.kind]
    free = translator.translate(LINES)
    forced = translator.translate(LINES, prefixes=prefixes)
    texts = [*translator.format(forced)]
    for text, prefix, one, other in zip(texts, prefixes, free, forced, strict=True):
        if prefix:
            assert text.startswith(prefix)
        elif one.hypotheses:
            (left,), (right,) = one.hypotheses, other.hypotheses
            assert left.tokens.tolist() == right.tokens.tolist()
            assert (left.log_prob, left.score) == (right.log_prob, right.score)
    assert texts[1] == ""
    written = [(each.source, each.hypotheses[0]) for each in forced if each.hypotheses]
    sources, outputs = zip(*written, strict=True)
    known = written_outputs(run, sources, [output.tokens for output in outputs])
    for pair, output in zip(Scorer(run)(known), outputs, strict=True):
        np.testing.assert_allclose(output.log_prob, pair.log_prob, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(output.score, pair.score, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefixes")
    return untrained_run(folder / "run", *write_text(folder))[0]


@pytest.mark.parametrize(
    ("prefixes", "words_of_error"),
    [
        (["die"], "--prefix: expected 2 lines, as in the input, found 1"),
        (["", "die " * 40], "--prefix line 2: expected at most 14 tokens with the end of the outp"),
        (["", "x" * 20_000], "--prefix line 2: expected at most 10000 characters, found 20000"),
    ],
)
def test_mistakes_are_one_line(words, prefixes, words_of_error):
    with pytest.raises(DataError) as error:
        Translator(words).translate(["a dog.", "a"], prefixes=prefixes)
    assert words_of_error in str(error.value) and "\n" not in str(error.value)


def test_an_empty_line_has_no_prefix(words):
    with pytest.raises(DataError, match="--prefix line 2: expected none beside an empty line .* f"):
        Translator(words).translate(["a dog.", " "], prefixes=["", "die"])


def test_an_output_has_room_for_its_prefix_and_its_end(words):
    run = with_search(words, method="greedy", max_length_factor=0.0, max_length_constant=4)
    (output,) = Translator(run).translate(["a cat sees."], prefixes=["die Katze."])
    assert len(output.hypotheses[0].tokens) == 4
    with pytest.raises(DataError, match="expected at most 4 tokens with the end .*, found 5$"):
        Translator(run).translate(["a cat sees."], prefixes=["die Katze sieht."])


def test_lines_without_prefixes_are_searched_as_if_there_were_no_option(words):
    translator = Translator(words)
    translator.translate(["a dog."])
    translator.translate(["a dog."], prefixes=[" "])
    assert translator._decode._search._cache_size() == 1


def test_only_targets_that_are_texts_have_prefixes(words):
    check_prefixable(words)
    language_model = typed(MODELS.config("language_model"), {}, "config.model")
    config = dataclasses.replace(words.config, model=language_model)
    with pytest.raises(UserError, match="--prefix: expected a model that reads sources, found a l"):
        check_prefixable(dataclasses.replace(words, config=config))
    actions = SymbolVocabulary("word_actions", [STEP, "die"])
    with pytest.raises(UserError, match="--prefix: expected a run whose targets are texts, found"):
        check_prefixable(dataclasses.replace(words, target_vocabulary=actions))


@pytest.mark.parametrize("opens", [False, True], ids=["not_told", "told"])
def test_a_first_token_is_no_part_of_a_prefix(words, opens):
    """Also where the texts themselves begin with it."""
    first = words.target_vocabulary.encode("Hund")[0]
    run = with_search(words, method="greedy", first_token=first)
    prefix = "Hund Katze" if opens else "Katze"
    translator = Translator(run)
    (text,) = translator.format(translator.translate(["a dog."], prefixes=[prefix]))
    assert text.startswith("Hund Katze")


def copying(words, folder):
    """A run like that of words, untrained, which copies."""
    decoder = {"name": "luong", "hidden_dim": 8, "attentional_dim": 8}
    values = {
        "name": "encoder_decoder", "target_embedding_dim": 8, "decoder": decoder,
        "sources": {"source": {"input": {"name": "tokens", "embedding_dim": 8},
                               "encoder": {"hidden_dim": 8}}},
        "attention": {"name": "bahdanau", "attention_dim": 8},
        "readout": {"name": "pointer_generator"},
    }  # fmt: skip
    config = typed(MODELS.config("encoder_decoder"), values, "config.model")
    return untrained(dataclasses.replace(words.config, model=config), folder / "run")[0]


def test_a_word_that_only_the_source_has_is_told_where_it_can_be_copied(words, tmp_path):
    """It has the id of the extended vocabulary."""
    run = copying(words, tmp_path)
    for search in ({"method": "greedy"}, {"beam_size": 2}):
        translator = Translator(with_search(run, **search))
        found = translator.translate(["Zyx Qop.", "a dog."], prefixes=["die Qop", ""])
        size = run.target_vocabulary.size
        assert found[0].hypotheses[0].tokens[1] == size + 1  # the second word of its own
        assert [*translator.format(found)][0].startswith("die Qop")


UNKNOWN_BEGINNINGS = {
    "words": "Zyx' Katze (Qop",
    "characters": "eine ♖♘at",
    "bpe": "die ♖♘ Katze ♗",
}


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_unknown_words_are_forced_as_unk_and_written_as_they_were_told(run, method):
    """Also where the search itself may not write the unknown word."""
    run = with_search(run, method=method, forbid_unknown=True, max_length_constant=40)
    prefix = UNKNOWN_BEGINNINGS[run.target_vocabulary.kind]
    translator = Translator(run, nbest=1)
    found = translator.translate(["the cat.", "a dog."], prefixes=[prefix, ""])
    [output] = found[0].hypotheses
    told = run.target_vocabulary.encode(prefix)
    assert told.count(SpecialIds.UNK) >= 2
    assert output.tokens[: len(told)].tolist() == told
    assert SpecialIds.UNK not in output.tokens[len(told) :]
    printed = [line.split(" ||| ")[1] for line in translator.format(found, alignments=True)]
    assert printed[0].startswith(prefix) and not any("<unk>" in text for text in printed)
    assert "<unk>" not in output.vocabulary(run.target_vocabulary).tokens(output.tokens)
    [pair] = Scorer(run)(written_outputs(run, ["the cat."], [output.tokens]))
    np.testing.assert_allclose(output.log_prob, pair.log_prob, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("search", [{"method": "greedy"}, {"beam_size": 2}])
def test_a_model_that_copies_is_told_words_that_no_source_has(words, tmp_path, search):
    """Beside a word that its source has; there UNK is nothing that it would write itself."""
    translator = Translator(with_search(copying(words, tmp_path), **search))
    found = translator.translate(["Zyx Qop.", "a dog."], prefixes=["die Abc Qop", "Def"])
    size = words.target_vocabulary.size
    assert found[0].hypotheses[0].tokens[1:3].tolist() == [SpecialIds.UNK, size + 1]
    texts = [*translator.format(found)]
    assert texts[0].startswith("die Abc Qop") and texts[1].startswith("Def")


def test_what_replaces_unknown_words_leaves_those_that_were_told(words):
    run = with_search(words, method="greedy", replace_unknown=True)
    translator = Translator(run)
    (text,) = translator.format(translator.translate(["a dog."], prefixes=["Zyx die"]))
    assert text.startswith("Zyx die") and "<unk>" not in text


@pytest.mark.parametrize("suffix", [".npz", ".jsonl"])
def test_files_of_attention_have_the_words_that_were_told(words, tmp_path, suffix):
    run, path = with_search(words, method="greedy"), tmp_path / f"matrices{suffix}"
    translator, lines = Translator(run), ["a dog."]
    found = translator.translate(lines, prefixes=["Zyx die"])
    write_matrices(path, run, translator.shown(found), lines, {})
    if suffix == ".npz":
        with np.load(path) as file:
            assert file["0/tokens"][0] == "Zyx"
    else:
        row = json.loads(path.read_text(encoding="utf-8"))
        assert row["tokens"][0] == "Zyx" and row["output"].startswith("Zyx die")


def test_few_lengths_of_prefixes_are_compiled(words):
    translator = Translator(with_search(words, method="greedy", max_length_constant=20))
    for count in (1, 3, 8):
        translator.translate(["a dog."], prefixes=["die " * count])
    assert translator._decode._search._cache_size() == 1


def test_prefixes_of_a_split_do_not_depend_on_its_batches(tmp_path):
    run, task = untrained_run(tmp_path / "run", *write_text(tmp_path))
    split = task.split("test").select(range(7))
    values = [ids[: number % 3] for number, ids in enumerate(split.target_ids)]
    split = split.with_field(PREFIX, values)
    decode = Searcher(run.model, SearchConfig(beam_size=2, max_length_constant=9))
    data = [dataclasses.replace(run.config.data, eval_batch_size=size) for size in (2, 16)]
    one, other = (decode(run.params, split, each) for each in data)
    for prefix, (left,), (right,) in zip(values, one, other, strict=True):
        assert left.tokens.tolist() == right.tokens.tolist()
        assert left.tokens[: len(prefix)].tolist() == prefix.tolist()


def test_no_further_source_can_be_taken_for_a_prefix():
    assert not PREFIX.name.isidentifier()  # as names of further sources have to be
