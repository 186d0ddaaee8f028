"""Folders that are no whole models are refused, and nothing is left of what was begun."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attention_jax.runs.foreign.importing as importing
from attention_jax.errors import CheckpointError, UserError
from attention_jax.runs.foreign.importing import import_model, read_foreign

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "foreign"
NORM = "model.encoder.layers.0.final_layer_norm.bias"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(GOLDEN / "marian", tmp_path / "marian")


def change_config(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def change_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def a_pickle(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


MISTAKES = {
    r"expected a folder with config\.json, found none": shutil.rmtree,
    r"config\.json: expected a file, found none": lambda f: (f / "config.json").unlink(),
    r"config\.json: expected JSON": lambda f: (f / "config.json").write_text("{"),
    r"model_type: expected one of .*marian.*, found 'gpt2'": lambda f: change_config(
        f, model_type="gpt2"
    ),
    r"expected text at model_type, found 3": lambda f: change_config(f, model_type=3),
    r"expected a whole number or null at d_model, found \"8\"": lambda f: change_config(
        f, d_model="8"
    ),
    r"activation_function: expected one of relu, .*, found 'tanh'": lambda f: change_config(
        f, activation_function="tanh"
    ),
    r"encoder_attention_heads: expected a divisor of d_model \(8\), found 3": lambda f: (
        change_config(f, encoder_attention_heads=3)
    ),
    r"expected special ids below 31": lambda f: change_config(f, pad_token_id=31),
    r"expected special ids .* different": lambda f: change_config(f, pad_token_id=0),
    r"model\.safetensors: expected a safetensors file, found none": lambda f: (
        f / "model.safetensors"
    ).unlink(),
    r"found pytorch_model\.bin, which only PyTorch reads": a_pickle,
    r"model\.safetensors is no safetensors file": lambda f: cut(f / "model.safetensors"),
    f"tensor '{NORM}' missing": lambda f: change_tensors(f, lambda t: t.pop(NORM)),
    r"expected shape \(8,\), found \(9,\)": lambda f: change_tensors(
        f, lambda t: t.update({NORM: np.zeros(9, np.float32)})
    ),
    r"tensor 'extra' and 1 more not of this model": lambda f: change_tensors(
        f, lambda t: t.update({name: np.zeros(9, np.float32) for name in ("extra", "more")})
    ),
    r"tensor 'lm_head.weight': expected that of 'model.shared.weight'": lambda f: change_tensors(
        f, lambda t: t.update({"lm_head.weight": np.zeros((31, 8), np.float32)})
    ),
    r"expected finite numbers of float32, found nan": lambda f: change_tensors(
        f, lambda t: t.update({NORM: np.full(8, np.nan, np.float32)})
    ),
    r"target\.spm: expected a file, found none": lambda f: (f / "target.spm").unlink(),
    r"source\.spm: expected a sentencepiece model": lambda f: (f / "source.spm").write_text("{}"),
    r"vocab\.json: expected a whole number": lambda f: (f / "vocab.json").write_text('{"a": "b"}'),
    r"expected '<unk>' in the vocabulary": lambda f: (f / "vocab.json").write_text('{"a": 7}'),
    r"expected a vocabulary of the 31 symbols .* 'a' with id 40": lambda f: (
        f / "vocab.json"
    ).write_text('{"<unk>": 1, "a": 40}'),
    r"expected an id for each symbol, found 7 for 'a' and 'b'": lambda f: (
        f / "vocab.json"
    ).write_text('{"<unk>": 1, "a": 7, "b": 7}'),
}


@pytest.mark.parametrize(("message", "spoil"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_what_is_wrong_with_a_folder_is_said_in_one_line(message, spoil, folder, tmp_path):
    spoil(folder)
    with pytest.raises(UserError, match=message) as caught:
        import_model(folder, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_tensors_may_be_in_several_files(folder):
    tensors = load_file(folder / "model.safetensors")
    whole = read_foreign(folder).params
    names = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(tensors)}
    (folder / "model.safetensors").unlink()
    for part in {*names.values()}:
        save_file({name: tensors[name] for name in names if names[name] == part}, folder / part)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    np.testing.assert_equal(read_foreign(folder).params, whole)
    (folder / "part-1.safetensors").unlink()
    with pytest.raises(UserError, match=r"part-1\.safetensors: expected a safetensors file, found"):
        read_foreign(folder)


def test_a_run_is_not_overwritten_and_half_of_one_is_not_left(folder, tmp_path, monkeypatch):
    def fail(*arguments, **keywords):
        raise CheckpointError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(importing.Checkpointer, "save", fail)
        with pytest.raises(CheckpointError):
            import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    import_model(folder, tmp_path / "run")
    before = sorted((path, path.stat().st_mtime) for path in (tmp_path / "run").rglob("*.json"))
    with pytest.raises(UserError, match="expected a new directory, found a run"):
        import_model(folder, tmp_path / "run")
    assert before == sorted(
        (path, path.stat().st_mtime) for path in (tmp_path / "run").rglob("*.json")
    )


def test_the_search_is_that_of_the_folder(folder):
    path = folder / "generation_config.json"
    known = {"num_beams": 4, "length_penalty": 0.8, "max_length": 300, "no_repeat_ngram_size": 3}
    path.write_text(json.dumps(known))
    assert read_foreign(folder).search == {
        "method": "beam", "beam_size": 4, "length_alpha": 0.8, "max_length_factor": 0.0,
        "max_length_constant": 299, "no_repeat_ngram_size": 3,
    }  # fmt: skip
    # Both count the symbol that the decoder starts from; the fewest do not count EOS.
    path.write_text(json.dumps({"min_length": 5, "max_length": 9}))
    assert read_foreign(folder).search == {
        "method": "greedy", "min_length_constant": 4, "max_length_factor": 0.0,
        "max_length_constant": 8,
    }  # fmt: skip
    path.write_text(json.dumps({"num_beams": 2, "length_penalty": 0.0}))
    search = {"method": "beam", "beam_size": 2, "length_normalization": "none"}
    assert read_foreign(folder).search == search
    path.unlink()
    assert read_foreign(folder).search == {"method": "greedy"}
