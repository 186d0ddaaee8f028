"""Imports of models that the package transformers makes here, in forms of which no file is kept."""

import pytest

from tests.foreign_models import check_logits, check_outputs, vocabulary_of
from tests.golden.foreign.make import write_case

pytest.importorskip("transformers", reason="makes models of other programs")
pytest.importorskip("torch", reason="in which transformers computes")
pytestmark = pytest.mark.filterwarnings("ignore")  # of these packages

MARIAN = {
    "plain": {},
    "depths and heads that differ": {
        "encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 4,
        "activation_function": "gelu", "scale_embedding": False,
    },
    "a vocabulary for each side": {"separate": True, "activation_function": "relu"},
    "an output of its own": {"tie_word_embeddings": False, "activation_function": "gelu_new"},
}  # fmt: skip


@pytest.mark.parametrize("changes", MARIAN.values(), ids=MARIAN)
def test_marian(changes, tmp_path):
    write_case(tmp_path / "folder", "marian", **changes)
    source, _ = vocabulary_of(tmp_path / "folder")
    name = "target_vocab.json" if "separate" in changes else "vocab.json"
    target, special = vocabulary_of(tmp_path / "folder", name)
    check_logits(tmp_path / "folder", source, target, special)
    check_outputs(tmp_path / "folder", tmp_path / "run", target, special)


T5 = {
    "gated, with an output of its own": {"feed_forward_proj": "gated-gelu", "output": True},
    "other depths": {"num_decoder_layers": 1, "feed_forward_proj": "gated-silu", "d_kv": 5},
}


@pytest.mark.parametrize("changes", T5.values(), ids=T5)
def test_t5(changes, tmp_path):
    write_case(tmp_path / "folder", "t5", **changes)
    ids, special = vocabulary_of(tmp_path / "folder")
    check_logits(tmp_path / "folder", ids, ids, special)
    check_outputs(tmp_path / "folder", tmp_path / "run", ids, special)


BART = {
    "scaled embeddings, with a space before texts": {
        "scale_embedding": True, "activation_function": "relu", "adds_space": True,
        "encoder_layers": 1, "decoder_attention_heads": 4,
    },
    "an output of its own": {"tie_word_embeddings": False},
}  # fmt: skip


@pytest.mark.parametrize("changes", BART.values(), ids=BART)
def test_bart(changes, tmp_path):
    write_case(tmp_path / "folder", "bart", **changes)
    ids, special = vocabulary_of(tmp_path / "folder")
    check_logits(tmp_path / "folder", ids, ids, special)
    check_outputs(tmp_path / "folder", tmp_path / "run", ids, special)
