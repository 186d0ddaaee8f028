"""Unigram models of tokenizer.json: pieces are those of the sentencepiece model in its place."""

import base64
import json
import re
import shutil

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from attention_jax.errors import UserError
from attention_jax.runs.foreign.folder import Folder
from attention_jax.runs.foreign.importing import read_foreign
from attention_jax.runs.foreign.unigram import read_unigram
from tests.golden.foreign.make import ASKED, CUTS, SOURCES, TARGETS
from tests.runs.foreign.test_importing import GOLDEN

METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
CUT = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]}
TEXTS = (*ASKED, *CUTS, *SOURCES, *TARGETS, "ﬁne  Ａ½ the\u00a0cat\u3000sat", "</s> the <unk>")


def as_json(model, further=()):
    """The content of tokenizer.json for a sentencepiece model, with symbols after its pieces."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = [[piece.piece, piece.score] for piece in proto.pieces]
    special = {piece.piece: index for index, piece in enumerate(proto.pieces) if piece.type > 1}
    special |= {name: len(pieces) + number for number, name in enumerate(further)}
    table = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    precompiled = {"type": "Precompiled", "precompiled_charsmap": table}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "added_tokens": [
            {"content": name, "id": index, "special": True, **flags}
            for name, index in special.items()
        ],
        "normalizer": precompiled if table else None,
        "pre_tokenizer": CUT,
        "post_processor": None,
        "decoder": METASPACE,
        "model": {
            "type": "Unigram", "unk_id": special["<unk>"], "vocab": pieces, "byte_fallback": False,
        },
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """T5's, with tokenizer.json only."""
    folder = shutil.copytree(GOLDEN / "t5", tmp_path / "t5")
    sentinels = [f"<extra_id_{number}>" for number in (2, 1, 0)]
    content = as_json((folder / "spiece.model").read_bytes(), sentinels)
    (folder / "spiece.model").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


def change(folder, **fields):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_folder_may_hold_tokenizer_json_alone(folder):
    whole, found = read_foreign(GOLDEN / "t5"), read_foreign(folder)
    assert found.source.symbols == whole.source.symbols
    for text in TEXTS:
        assert found.source.split(text) == whole.source.split(text)
        assert found.source.encode(text) == whole.source.encode(text)
    assert found.params["target_embedding"].tobytes() == whole.params["target_embedding"].tobytes()


@pytest.fixture(scope="module")
def normalised(tmp_path_factory):
    """A folder whose texts are normalised as those of T5, and the model that it is of."""
    folder = tmp_path_factory.mktemp("normalised")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SOURCES, *TARGETS] * 2), model_prefix=str(folder / "spiece"),
        vocab_size=40, hard_vocab_limit=False, normalization_rule_name="nmt_nfkc", pad_id=0,
        eos_id=1, unk_id=2, bos_id=-1, minloglevel=2, num_threads=1,
    )  # fmt: skip
    model = (folder / "spiece.model").read_bytes()
    (folder / "tokenizer.json").write_text(json.dumps(as_json(model)))
    return folder, sentencepiece.SentencePieceProcessor(model_proto=model)


def test_texts_are_normalised(normalised):
    folder, model = normalised
    found = sentencepiece.SentencePieceProcessor(model_proto=read_unigram(Folder(folder)).model)
    for text in TEXTS:
        assert found.encode(text) == model.encode(text)
        assert found.encode(text, out_type=str) == model.encode(text, out_type=str)
    assert found.decode(found.encode("ﬁ")) == model.decode(model.encode("fi"))


def test_ids_are_those_of_the_other_program(normalised, repository):
    tokenizers = pytest.importorskip("tokenizers", reason="cuts texts of which no ids are kept")
    other = tokenizers.Tokenizer.from_file(str(normalised[0] / "tokenizer.json"))
    unigram = read_unigram(Folder(normalised[0]))
    found = sentencepiece.SentencePieceProcessor(model_proto=unigram.model)
    page = (repository / "docs" / "mechanisms.md").read_text(encoding="utf-8").split("\n")[:200]
    for text in (*SOURCES, *TARGETS, *(line for line in page if "<" not in line)):
        assert found.encode(text) == other.encode(text).ids


WRONG = {
    r"model\.unk_id: expected below 28, found 99": {"model": {"unk_id": 99}},
    r"model\.byte_fallback: expected false, found true": {"model": {"byte_fallback": True}},
    r"model\.vocab: expected pieces with scores, found \['a'\]": {"model": {"vocab": [["a"]]}},
    r'expected one of Unigram at model\.type, found "BPE"': {"model": {"type": "BPE"}},
    r"pre_tokenizer: expected words that each begin with '▁' .* found .*ByteLevel": {
        "pre_tokenizer": {"type": "ByteLevel"}
    },
    r"pre_tokenizer: expected .* found .*never": {
        "pre_tokenizer": {**METASPACE, "prepend_scheme": "never"}
    },
    r"normalizer: expected Precompiled, .* found .*NFC": {"normalizer": {"type": "NFC"}},
    r"normalizer: expected base64": {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}
    },
}


@pytest.mark.parametrize(("message", "fields"), WRONG.items(), ids=range(len(WRONG)))
def test_what_is_wrong_is_said_in_one_line(message, fields, folder):
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    if "model" in fields:
        fields = {"model": {**model, **fields["model"]}}
    change(folder, **fields)
    with pytest.raises(UserError) as caught:
        read_foreign(folder)
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)
