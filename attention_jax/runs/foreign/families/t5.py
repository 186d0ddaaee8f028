"""T5, of version 1.0 (one table for all symbols) and 1.1 (gated layers, an output of its own).

Pre-norm by the mean square, no biases but those of buckets of relative positions, products that are
not scaled, and a decoder that starts from padding. Where the output is tied, version 1.0 divides
features by the root of their depth; here, the gain of the last norm is divided by it.

Source: Raffel et al. 2020, "Exploring the limits of transfer learning"; Shazeer 2020 for 1.1.
"""

from typing import Any

import numpy as np
import sentencepiece

from attention_jax.errors import UserError
from attention_jax.runs.foreign.folder import Folder, Tensors
from attention_jax.runs.foreign.layers import joined_heads, split_heads
from attention_jax.runs.foreign.model import (
    ForeignModel,
    Special,
    name_here,
    output_bias,
    piece_vocabulary,
    search_of,
    settings,
    transformer_config,
    tying,
)
from attention_jax.runs.foreign.unigram import FILE, Unigram, read_unigram

DEFAULTS = {
    "vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_heads": 8,
    "num_layers": 6, "num_decoder_layers": 0, "feed_forward_proj": "relu",
    "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
    "dropout_rate": 0.1, "layer_norm_epsilon": 1e-6, "tie_word_embeddings": True,
    "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip
_ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu_erf", "gelu_new": "gelu", "gated-gelu": "geglu",
    "gated-silu": "swiglu",
}  # fmt: skip
_MODEL = "spiece.model"


def read(folder: Folder) -> ForeignModel:
    """Reads the model; raises `UserError` if the folder does not hold a whole one."""
    config = settings(folder, DEFAULTS)
    # Later versions write down what followed from the tying before.
    is_scaled = folder.maybe_json("config.json", {"scale_decoder_outputs": bool}).get(
        "scale_decoder_outputs", config["tie_word_embeddings"]
    )
    model = _model_config(config)
    name, (content, ids, unknown) = _pieces(folder, config["vocab_size"])
    named = (config[f"{name}_token_id"] for name in ("pad", "decoder_start", "eos"))
    rows = Special(*named, unknown).rows(config["vocab_size"])
    vocabulary = piece_vocabulary(folder, name, content, ids, rows)
    with folder.tensors() as tensors:
        params = _parameters(tensors, config, rows)
    if is_scaled:
        params["decoder"]["norm"]["scale"] /= np.sqrt(np.float32(config["d_model"]))
    model["tie_embeddings"] = tying(params)
    return ForeignModel(model, params, vocabulary, vocabulary, search_of(folder, rows))


def _model_config(config: dict[str, Any]) -> dict[str, Any]:
    stack = {
        "feed_forward_dim": config["d_ff"], "use_bias": False,
        "activation": name_here(config, "feed_forward_proj", _ACTIVATIONS),
        "norm": "rms", "norm_order": "pre", "norm_epsilon": config["layer_norm_epsilon"],
        "positions": "none",
        "scales_embeddings": False, "dropout": config["dropout_rate"],
        "hidden_dropout": config["dropout_rate"],
    }  # fmt: skip
    buckets = {
        "num_buckets": config["relative_attention_num_buckets"],
        "max_distance": config["relative_attention_max_distance"],
    }
    attention = {
        "name": "multi_head", "num_heads": config["num_heads"], "head_dim": config["d_kv"],
        "dropout": config["dropout_rate"], "score": {"name": "luong_dot"},
        "refinements": {"relative_buckets": buckets},
    }  # fmt: skip
    encoder, decoder = (
        {"num_layers": number, **stack}
        for number in (config["num_layers"], _decoder_layers(config))
    )
    return transformer_config(config["d_model"], encoder, attention, decoder)


def _decoder_layers(config: dict[str, Any]) -> int:
    return config["num_decoder_layers"] or config["num_layers"]


def _pieces(folder: Folder, size: int) -> tuple[str, Unigram]:
    """Reads the pieces and the file that they are of; sentinels come after, the last one first.

    Sentinels are symbols of the vocabulary, but a text that spells one is cut as any other.
    """
    if folder.has(FILE) and not folder.has(_MODEL):
        return FILE, read_unigram(folder)
    processor, content = sentencepiece.SentencePieceProcessor(), folder.content(_MODEL)
    try:
        processor.LoadFromSerializedProto(content)
        number = processor.get_piece_size()
    except (RuntimeError, TypeError):
        number = 0
    if not number:
        raise UserError(f"{folder.path / _MODEL}: expected a sentencepiece model, found another")
    ids = {processor.id_to_piece(index): index for index in range(number)}
    further = folder.maybe_json("tokenizer_config.json", {"extra_ids": int}).get("extra_ids", 100)
    last = number + further - 1  # the id of the first sentinel
    ids |= {f"<extra_id_{each}>": last - each for each in range(further) if last - each < size}
    return _MODEL, Unigram(content, ids, processor.unk_id())


def _parameters(tensors: Tensors, config: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    size, depth = config["vocab_size"], config["d_model"]
    tables = ["shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    is_tied = config["tie_word_embeddings"] or "lm_head.weight" not in tensors
    table = tensors.take_tied([*tables, *(["lm_head.weight"] if is_tied else [])], size, depth)
    # Files of older versions hold one, without use.
    tensors.leave_out("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight")
    params = {
        "target_embedding": table[rows],
        "output_bias": output_bias(np.zeros(size, np.float32), rows),
        "encoder": _stack(tensors, config, "encoder", config["num_layers"]),
        "decoder": _stack(tensors, config, "decoder", _decoder_layers(config)),
    }
    if not is_tied:
        params["source_embedding"] = table[rows]
        params["output"] = tensors.take("lm_head.weight", size, depth)[rows]
    return params


def _stack(tensors: Tensors, config: dict[str, Any], side: str, layers: int) -> dict[str, Any]:
    buckets = config["relative_attention_num_buckets"], config["num_heads"]
    place = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    tree: dict[str, Any] = {"self_attention": {"bucket_bias": tensors.take(place, *buckets).T}}
    parts = ["self_attention", *(["attention"] if side == "decoder" else []), "feed_forward"]
    readers = {"self_attention": "SelfAttention", "attention": "EncDecAttention"}
    for number in range(layers):
        layer: dict[str, Any] = {}
        for index, part in enumerate(parts):
            place = f"{side}.block.{number}.layer.{index}"
            name = "self_norm" if part == "self_attention" else f"{part}_norm"
            layer[name] = _norm(tensors, f"{place}.layer_norm", config)
            if part in readers:
                layer[part] = _attention(tensors, f"{place}.{readers[part]}", config)
            else:
                layer[part] = _feed_forward(tensors, f"{place}.DenseReluDense", config)
        tree[f"layer_{number}"] = layer
    return {**tree, "norm": _norm(tensors, f"{side}.final_layer_norm", config)}


def _norm(tensors: Tensors, place: str, config: dict[str, Any]) -> dict[str, np.ndarray]:
    return {"scale": tensors.take(f"{place}.weight", config["d_model"])}


def _attention(tensors: Tensors, place: str, config: dict[str, Any]) -> dict[str, np.ndarray]:
    depth, heads = config["d_model"], config["num_heads"]
    inner = heads * config["d_kv"]
    tree = {
        f"{name}_projection": split_heads(tensors.take(f"{place}.{name[0]}.weight", inner, depth),
                                          heads)
        for name in ("query", "key", "value")
    }  # fmt: skip
    kernel = tensors.take(f"{place}.o.weight", depth, inner)
    return {**tree, "output_kernel": joined_heads(kernel, heads)}


def _feed_forward(tensors: Tensors, place: str, config: dict[str, Any]) -> dict[str, np.ndarray]:
    depth, width = config["d_model"], config["d_ff"]
    is_gated = config["feed_forward_proj"].startswith("gated-")
    hidden = "wi_0" if is_gated else "wi"
    tree = {
        "hidden": tensors.take(f"{place}.{hidden}.weight", width, depth).T,
        "output": tensors.take(f"{place}.wo.weight", depth, width).T,
    }
    if is_gated:
        tree["gate"] = tensors.take(f"{place}.wi_1.weight", width, depth).T
    return tree
