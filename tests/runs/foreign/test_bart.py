"""Folders of BART: in the forms that authors have published, and refused where they are none."""

import json
import re
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attention_jax.errors import UserError
from attention_jax.runs.foreign.importing import read_foreign
from tests.golden.foreign.make import CUTS
from tests.runs.foreign.test_importing import GOLDEN, change_config


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(GOLDEN / "bart", tmp_path / "bart")


def change_tokenizer(folder, **fields):
    """Changes fields by their places, with `__` between names."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    for place, value in fields.items():
        *outer, name = place.split("__")
        record = content
        for each in outer:
            record = record[each]
        record[name] = value
    path.write_text(json.dumps(content))


def in_two_files(folder):
    """Writes vocab.json and merges.txt in place of tokenizer.json."""
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = ["#version: 0.2", *map(" ".join, model["merges"])]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")


def test_the_tokenizer_may_be_in_two_files(folder):
    one = read_foreign(folder).source
    merges = json.loads((folder / "tokenizer.json").read_text())["model"]["merges"]
    change_tokenizer(folder, model__merges=[*map(" ".join, merges)])
    older = read_foreign(folder).source
    change_tokenizer(folder, model__merges=merges)
    in_two_files(folder)
    two = read_foreign(folder).source
    for other in (older, two):
        assert other.symbols == one.symbols and other.silent_ids == one.silent_ids
        assert [*map(other.encode, CUTS)] == [*map(one.encode, CUTS)]
    assert one.decode([4 + one.symbols.index("<unused_301>"), *one.encode("a")]) == "a"
    own = folder / "tokenizer_config.json"
    own.write_text(json.dumps({**json.loads(own.read_text()), "add_prefix_space": True}))
    assert read_foreign(folder).source.encode("a") == one.encode(" a")


def test_the_authors_files_have_no_output(folder):
    whole, path = read_foreign(folder), folder / "model.safetensors"
    tensors = {name.removeprefix("model."): each for name, each in load_file(path).items()}
    del tensors["final_logits_bias"]
    save_file(tensors, path)
    found = read_foreign(folder)
    never = found.params.pop("output_bias")
    assert never[1] == -40 and not np.delete(never, 1).any()
    whole.params.pop("output_bias")
    np.testing.assert_equal(found.params, whole.params)
    assert found.model == whole.model


def test_outputs_begin_with_the_symbol_of_texts(folder):
    foreign = read_foreign(folder)
    assert [foreign.search["first_token"]] == foreign.target.encode("")
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"max_length": 9}))
    assert "first_token" not in read_foreign(folder).search


def cut_to(folder, size):
    """Cuts the tables of the model to as many symbols."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name, each in tensors.items():
        if name.endswith(("shared.weight", "embed_tokens.weight", "lm_head.weight")):
            tensors[name] = each[:size]
    tensors["final_logits_bias"] = tensors["final_logits_bias"][:, :size]
    save_file(tensors, path)
    change_config(folder, vocab_size=size)


@pytest.mark.parametrize("in_one", [True, False])
def test_a_mask_beyond_the_table_is_left_out(folder, in_one):
    """As in summarisers, whose tables end before it."""
    if not in_one:
        in_two_files(folder)
    whole = read_foreign(folder)
    cut_to(folder, 300)
    found = read_foreign(folder)
    assert whole.source.symbols[297] == "<mask>"
    assert [*found.source.symbols] == [*whole.source.symbols[:297]]
    assert found.source.silent_ids == {i for i in whole.source.silent_ids if i < 301}
    assert [*map(found.source.encode, CUTS)] == [*map(whole.source.encode, CUTS)]
    np.testing.assert_array_equal(found.params["output_bias"], whole.params["output_bias"][:301])


MISTAKES = {
    r"bart: expected '<unk>' in the vocabulary, found none": lambda f: change_tokenizer(
        f, model__vocab={"a": 7}, model__merges=[], added_tokens=[]
    ),
    r"tokenizer\.json: expected a file, found none": lambda f: (f / "tokenizer.json").unlink(),
    r"merges\.txt: expected a file, found none": lambda f: (
        in_two_files(f), (f / "merges.txt").unlink(),
    ),
    r"merges\.txt:2: expected two pieces, found 'a b c'": lambda f: (
        in_two_files(f), (f / "merges.txt").write_text("a t\na b c\n"),
    ),
    r"merges\.txt: expected UTF-8, found something else": lambda f: (
        in_two_files(f), (f / "merges.txt").write_bytes(b"\xff"),
    ),
    r"bart: expected merges of two pieces of the vocabulary, found 'q q'": lambda f: (
        change_tokenizer(f, model__merges=["q q"])
    ),
    r"model\.type: expected BPE, which joins bytes, found 'Unigram'": lambda f: change_tokenizer(
        f, model__type="Unigram"
    ),
    r'expected .*ByteLevel.* at pre_tokenizer\.type, found "Metaspace"': lambda f: (
        change_tokenizer(f, pre_tokenizer__type="Metaspace")
    ),
    r"pre_tokenizer\.use_regex: expected true, found false": lambda f: change_tokenizer(
        f, pre_tokenizer__use_regex=False
    ),
    r"normalizer: expected none, found .*NFC": lambda f: change_tokenizer(
        f, normalizer={"type": "NFC"}
    ),
    r"model\.ignore_merges: expected none, found True": lambda f: change_tokenizer(
        f, model__ignore_merges=True
    ),
    r"added_tokens: expected special symbols, .* found 'cat'": lambda f: change_tokenizer(
        f, added_tokens=[{"content": "cat", "id": 7, "special": False}]
    ),
    r"bart: expected a vocabulary of the 299 symbols .*, found 'Ġdog' with id 299": (
        lambda f: change_config(f, vocab_size=299)
    ),
    r"expected shape \(303, 9\), found \(303, 8\)": lambda f: change_config(
        f, d_model=9, encoder_attention_heads=3, decoder_attention_heads=3
    ),
    r"'model.encoder.embed_positions.weight': expected shape \(92, 8\)": lambda f: change_config(
        f, max_position_embeddings=90
    ),
    r"forced_bos_token_id: expected that of a symbol .*, found 2": lambda f: (
        f / "generation_config.json"
    ).write_text('{"forced_bos_token_id": 2}'),
}  # fmt: skip


@pytest.mark.parametrize(("message", "spoil"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_what_is_wrong_with_a_folder_is_said_in_one_line(message, spoil, folder):
    spoil(folder)
    with pytest.raises(UserError) as caught:
        read_foreign(folder)
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)
