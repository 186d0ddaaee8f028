"""BART: Transformers that restore spoilt texts, and what is made of them, such as summarisers.

Post-norm, embeddings that are normalised with learned positions, a bias of the logits, and a
decoder that starts from the end of a text. Texts are cut into merged bytes, and begin with a symbol
of their own, with which outputs may be made to begin.

Source: Lewis et al. 2020, "BART: Denoising sequence-to-sequence pre-training".
"""

from typing import Any

import numpy as np

from attention_jax.errors import UserError
from attention_jax.runs.foreign.byte_level import read_byte_level
from attention_jax.runs.foreign.families.marian import (
    DEFAULTS,
    embedding_tables,
    layer_sizes,
    model_config,
)
from attention_jax.runs.foreign.folder import Folder, Tensors
from attention_jax.runs.foreign.layers import norm, stack
from attention_jax.runs.foreign.model import (
    ForeignModel,
    Special,
    output_bias,
    search_of,
    settings,
    tying,
)

_DEFAULTS = {
    **DEFAULTS, "vocab_size": 50265, "max_position_embeddings": 1024, "pad_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
_UNKNOWN = "<unk>"
_FIRST = 2  # the row of the first position: those before once were of padding


def read(folder: Folder) -> ForeignModel:
    """Reads the model; raises `UserError` if the folder does not hold a whole one."""
    config = settings(folder, _DEFAULTS)
    model = model_config(config, {
        "norm_epsilon": 1e-5, "norm_embeddings": True, "positions": "learned",
        "max_positions": config["max_position_embeddings"],
        "scales_embeddings": config["scale_embedding"],
    })  # fmt: skip
    tokenizer = read_byte_level(folder)
    if _UNKNOWN not in tokenizer.ids:
        raise UserError(f"{folder.path}: expected {_UNKNOWN!r} in the vocabulary, found none")
    named = (config[f"{name}_token_id"] for name in ("pad", "decoder_start", "eos"))
    rows = Special(*named, tokenizer.ids[_UNKNOWN]).rows(config["vocab_size"])
    vocabulary = tokenizer.vocabulary(folder, rows)
    with folder.tensors() as tensors:
        params = _parameters(tensors, config, rows)
    model["tie_embeddings"] = tying(params)
    return ForeignModel(model, params, vocabulary, vocabulary, search_of(folder, rows))


def _parameters(tensors: Tensors, config: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    size = config["vocab_size"]
    # The authors' files are of a model without an output, which has no name in front.
    place = "model." if any(name.startswith("model.") for name in tensors.names) else ""
    tables = embedding_tables(tensors, config, (size, size), place)
    bias = np.zeros(size, np.float32)
    if "final_logits_bias" in tensors:
        bias = tensors.take("final_logits_bias", 1, size)[0]
    return {
        **{name: table[rows] for name, table in tables.items()},
        "output_bias": output_bias(bias, rows),
        "encoder": _stack(tensors, config, place, "encoder"),
        "decoder": _stack(tensors, config, place, "decoder"),
    }


def _stack(tensors: Tensors, config: dict[str, Any], place: str, side: str) -> dict[str, Any]:
    depth, whole = config["d_model"], f"{place}{side}"
    number = config["max_position_embeddings"] + _FIRST
    return {
        "positions": tensors.take(f"{whole}.embed_positions.weight", number, depth)[_FIRST:],
        "embedding_norm": norm(tensors, f"{whole}.layernorm_embedding", depth),
        **stack(tensors, whole, layer_sizes(config, side), attends=side == "decoder"),
    }
