"""Makes small models by the package transformers, with random parameters, and what they answer.

    python -m tests.golden.foreign.make [FAMILY ...]

writes those of `CASES`, by which imports are tested where there is no such package; with it, tests
make others.
"""

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import sentencepiece

SOURCES = ("a cat sat on the mat", "the dog", "a dog ate the cat and the mat", "ate that")
TARGETS = ("le chat est sur le tapis", "un chien a vu le chat", "le chien", "un tapis sale")
ASKED = ("the dog", *SOURCES[:2], ">>fra<< a cat \u2603 sat", "")  # one has an unknown piece
CUTS = (  # of which every tokenizer of bytes makes the same
    "I'll don't, she's 'S x'sy  12\u00bd\u2167 3.14 a_b", "  lead and trail  ",
    "\ta\r\n\n b\u00a0c",
    "\u4e2d\u6587\u6f22\u5b57 \u304b\u306a 12\u4e00\u4e8c", "\U0001f600 a\U0001f600b \u2603\u2581",
    "e\u0301 \u00e9 \u200b \x1c\x1f \x85 \u2003 \u0000",
    "Z\u00fcrich, d\u00e9j\u00e0-vu: \u00abStra\u00dfe\u00bb", "",
)
LENGTH = 12  # most symbols that a decoder reads and writes


def write_pieces(path, texts, size=24, kind="unigram", **options):
    """Trains a sentencepiece model that normalises nothing, which needs the least room."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, model_type=kind, vocab_size=size,
        hard_vocab_limit=False, normalization_rule_name="identity", minloglevel=2, num_threads=1,
        **options,
    )  # fmt: skip
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(index) for index in range(processor.get_piece_size())]


def write_marian_tokenizer(folder, separate=False):
    """Two models and their pieces' ids; the first is a code of a language, the last is padding."""
    specials = {"pad_id": -1, "bos_id": -1, "eos_id": 0, "unk_id": 1}
    names = ("source.spm", SOURCES), ("target.spm", TARGETS)
    pieces = [write_pieces(folder / name, texts, **specials) for name, texts in names]
    if separate:  # of one size, for padding has the same id in both
        pieces[0].append(">>fra<<")
        size = max(map(len, pieces))
        for name, known in (("vocab", pieces[0]), ("target_vocab", pieces[1])):
            further = [f"further_{number}" for number in range(size - len(known))]
            write_ids(folder / f"{name}.json", [*known, *further, "<pad>"])
        (folder / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
        return [size + 1] * 2
    known = list(dict.fromkeys(["</s>", "<unk>", ">>fra<<", *pieces[0], *pieces[1], "<pad>"]))
    write_ids(folder / "vocab.json", known)
    return [len(known)] * 2


def write_ids(path, pieces):
    path.write_text(json.dumps({piece: index for index, piece in enumerate(pieces)}))


def marian(folder, seed, separate=False, **changes):
    """A model of Marian with its tokenizer; returns both."""
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    sizes = write_marian_tokenizer(folder, separate)
    fields = {
        "vocab_size": sizes[0], "decoder_vocab_size": sizes[1], "d_model": 8,
        "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 12, "decoder_ffn_dim": 10,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64,
        "activation_function": "swish", "scale_embedding": True, "pad_token_id": sizes[1] - 1,
        "decoder_start_token_id": sizes[1] - 1, "eos_token_id": 0, "forced_eos_token_id": 0,
        "share_encoder_decoder_embeddings": not separate,
    }  # fmt: skip
    model = MarianMTModel(MarianConfig(**{**fields, **changes}))
    model.generation_config.bad_words_ids = [[sizes[1] - 1]]
    save(model, folder, seed)
    return model, MarianTokenizer.from_pretrained(folder)


class Cut:
    """Texts cut as T5 does by its sentencepiece model, with the end of each."""

    def __init__(self, path):
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def __call__(self, texts=None, text_target=None, **how):
        from transformers import BatchEncoding

        rows = [[*self.processor.encode(text), 1] for text in texts or text_target]
        size = max(map(len, rows))
        ids = np.array([row + [0] * (size - len(row)) for row in rows])
        mask = np.array([[1] * len(row) + [0] * (size - len(row)) for row in rows])
        given = {"input_ids": ids, "attention_mask": mask}
        return BatchEncoding(given, tensor_type=how["return_tensors"])

    def batch_decode(self, rows, **how):
        known = self.processor.get_piece_size()
        return [self.processor.decode([i for i in row if i < known]) for row in rows.tolist()]


def t5(folder, seed, output=False, **changes):
    """A model of T5 with its sentencepiece model; returns both."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    pieces = write_pieces(folder / "spiece.model", (*SOURCES, *TARGETS), size=28, **special)
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 3}')
    fields = {
        "vocab_size": len(pieces) + 5, "d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2,
        "num_heads": 2, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
        "decoder_start_token_id": 0,
    }  # fmt: skip
    model = T5ForConditionalGeneration(T5Config(**{**fields, **changes}))
    if output:  # as the authors' files have it
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.shared.weight))
        model.config.tie_word_embeddings = False
    model.generation_config.bad_words_ids = [[0]]
    model.generation_config.forced_eos_token_id = 1
    save(model, folder, seed)
    return model, Cut(folder / "spiece.model")


def write_byte_level(folder, adds_space):
    """Merges of bytes, those of a few texts, as BART has them; returns their tokenizer."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import BartTokenizer

    trained, special = ByteLevelBPETokenizer(), ["<s>", "<pad>", "</s>", "<unk>"]
    trained.train_from_iterator(
        [*SOURCES, *TARGETS, *CUTS], 300, 2, special_tokens=special, show_progress=False
    )
    model = json.loads(trained.to_str())["model"]
    ids = {**model["vocab"], "<mask>": len(model["vocab"])}
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer = BartTokenizer(vocab=ids, merges=merges, add_prefix_space=adds_space)
    tokenizer.save_pretrained(folder)
    return tokenizer


def bart(folder, seed, adds_space=False, **changes):
    """A model of BART with its tokenizer; returns both."""
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = write_byte_level(folder, adds_space)
    fields = {
        "vocab_size": len(tokenizer) + 2, "d_model": 8, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_ffn_dim": 12, "decoder_ffn_dim": 10, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "max_position_embeddings": 40, "pad_token_id": 1,
    }  # fmt: skip
    model = BartForConditionalGeneration(BartConfig(**{**fields, **changes}))
    model.generation_config.bad_words_ids = [[1]]
    model.generation_config.forced_bos_token_id = 0
    save(model, folder, seed)
    return model, tokenizer


def save(model, folder, seed):
    """Draws all parameters far from zero, and saves the model."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        has_sines = "embed_positions" in name and model.config.model_type == "marian"
        if tensor.is_floating_point() and not has_sines:
            drawn = torch.randn(tensor.shape, generator=generator)
            is_gain = "norm" in name and name.endswith("weight")
            # Small tables and biases, or a tied output would be the input, or the same for all.
            is_small = "bias" in name or "shared" in name or "embed_tokens" in name
            tensor.data = drawn * 0.2 + 1 if is_gain else drawn * (0.3 if is_small else 0.6)
    model.generation_config.max_length = LENGTH
    model.eval().save_pretrained(folder)


def answers(model, tokenizer):
    """Returns what the model makes of texts, padded beside one another, and of known targets.

    Logits are computed in float64, so that they do not depend on the order of sums.
    """
    import torch

    given = tokenizer(list(ASKED), return_tensors="pt", padding=True)
    targets = [*TARGETS, ""]
    known = tokenizer(text_target=targets, return_tensors="pt", padding=True)["input_ids"]
    start = torch.full((len(known), 1), model.config.decoder_start_token_id)
    before = torch.cat([start, known[:, :-1]], 1)
    with torch.no_grad():
        written = model.generate(**given, num_beams=1, do_sample=False)
        logits = model.double()(**given, decoder_input_ids=before).logits.float()
    return {
        "source": given["input_ids"].numpy(), "source_mask": given["attention_mask"].numpy(),
        "target": known.numpy(), "logits": logits.numpy(), "written": written.numpy(),
        "texts": np.array(tokenizer.batch_decode(written, skip_special_tokens=True)),
    }  # fmt: skip


# With seeds whose outputs differ.
CASES = {"marian": (marian, 13), "t5": (t5, 6), "bart": (bart, 5)}


def write_case(folder, family, **changes):
    """Writes the folder of a model, and `answers.npz` beside its files."""
    folder.mkdir(parents=True, exist_ok=True)
    make, seed = CASES[family]
    model, tokenizer = make(folder, seed, **changes)
    known = answers(model, tokenizer)
    if family == "bart":
        cut = tokenizer(list(CUTS), return_tensors="np", padding=True)
        known |= {"cuts": cut["input_ids"], "cuts_mask": cut["attention_mask"]}
    np.savez_compressed(folder / "answers.npz", **known)


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        place = Path(__file__).parent / name
        shutil.rmtree(place, ignore_errors=True)
        write_case(place, name)
        for path in sorted(place.iterdir()):
            print(f"{path}: {path.stat().st_size:,} bytes")
