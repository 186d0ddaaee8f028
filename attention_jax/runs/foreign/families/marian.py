"""Marian: the Transformers of OPUS-MT, as Hugging Face's transformers saves them.

Post-norm, sines before cosines, embeddings scaled by the root of their depth, a bias of the logits,
and a decoder that starts from padding. Source and target are cut into pieces by two models.

Source: Junczys-Dowmunt et al. 2018, "Marian"; Tiedemann and Thottingal 2020, "OPUS-MT".
"""

from typing import Any

import numpy as np

from attention_jax.errors import UserError
from attention_jax.runs.foreign.folder import Folder, Tensors
from attention_jax.runs.foreign.layers import LayerSizes, stack
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

# The fields that are read, and what transformers takes where one is missing.
DEFAULTS = {
    "vocab_size": 58101, "decoder_vocab_size": 0, "d_model": 1024,
    "encoder_layers": 12, "encoder_ffn_dim": 4096, "encoder_attention_heads": 16,
    "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
    "activation_function": "gelu", "scale_embedding": False,
    "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "pad_token_id": 58100, "eos_token_id": 0, "decoder_start_token_id": 58100,
    "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
}  # fmt: skip
# Their names here; `gelu_new` and its like are the approximation by tanh.
ACTIVATIONS = {
    "relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu_erf", "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
}  # fmt: skip
_TABLES = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
_SINES = "embed_positions.weight"  # older files hold them; they follow from the sizes


def read(folder: Folder) -> ForeignModel:
    """Reads the model; raises `UserError` if the folder does not hold a whole one."""
    config = settings(folder, DEFAULTS)
    model = model_config(config, {
        "norm_epsilon": 1e-5, "positions": "sinusoidal_halves",
        "scales_embeddings": config["scale_embedding"],
    })  # fmt: skip
    joint, source_ids, target_ids = _vocabularies(folder)
    sizes = config["vocab_size"], config["decoder_vocab_size"] or config["vocab_size"]
    special = _special(config, target_ids, folder)
    target_rows = special.rows(sizes[1])
    source_rows = target_rows if joint else _special({}, source_ids, folder).rows(sizes[0])
    source, target = (
        piece_vocabulary(folder, name, folder.content(name), ids, rows)
        for name, ids, rows in (
            ("source.spm", source_ids, source_rows), ("target.spm", target_ids, target_rows),
        )
    )  # fmt: skip
    with folder.tensors() as tensors:
        params = _parameters(tensors, config, source_rows, target_rows)
    model["tie_embeddings"] = tying(params)
    return ForeignModel(model, params, source, target, search_of(folder, target_rows))


def model_config(config: dict[str, Any], of_stacks: dict[str, Any]) -> dict[str, Any]:
    """Returns the config here of a model whose config.json has Marian's fields, as BART's does.

    Raises:
      UserError: If the activation has no name here, or heads do not divide the depth.
    """
    depth, activation = config["d_model"], name_here(config, "activation_function", ACTIVATIONS)
    stacks = {}
    for side in ("encoder", "decoder"):
        heads = config[f"{side}_attention_heads"]
        if heads < 1 or depth % heads:
            raise UserError(
                f"config.json: {side}_attention_heads: expected a divisor of d_model ({depth}), "
                f"found {heads}"
            )
        stacks[side] = {
            "num_layers": config[f"{side}_layers"],
            "feed_forward_dim": config[f"{side}_ffn_dim"],
            "activation": activation,
            "dropout": config["dropout"],
            "hidden_dropout": config["activation_dropout"],
            **of_stacks,
        }
    attention, of_encoder = (_attention(config, side) for side in ("decoder", "encoder"))
    own = {} if of_encoder == attention else {"self_attention": of_encoder}
    encoder = {**stacks["encoder"], **own}
    return transformer_config(depth, encoder, attention, stacks["decoder"])


def layer_sizes(config: dict[str, Any], side: str) -> LayerSizes:
    """Returns the sizes of the encoder's or of the decoder's layers."""
    of_side = (config[f"{side}_{name}"] for name in ("ffn_dim", "attention_heads"))
    return LayerSizes(config[f"{side}_layers"], config["d_model"], *of_side)


def _attention(config: dict[str, Any], side: str) -> dict[str, Any]:
    heads = config[f"{side}_attention_heads"]
    return {
        "name": "multi_head", "num_heads": heads, "head_dim": config["d_model"] // heads,
        "use_bias": True, "dropout": config["attention_dropout"],
    }  # fmt: skip


def _vocabularies(folder: Folder) -> tuple[bool, dict[str, int], dict[str, int]]:
    """Reads the ids of source and target pieces, and whether they are the same."""
    separate = folder.maybe_json("tokenizer_config.json", {"separate_vocabs": bool})
    source = folder.json("vocab.json", {str: int})
    if not separate.get("separate_vocabs", False):
        return True, source, source
    return False, source, folder.json("target_vocab.json", {str: int})


def _special(config: dict[str, Any], ids: dict[str, int], folder: Folder) -> Special:
    """Returns the special ids: those that the config has, and else those of the vocabulary."""
    named = {}
    for field, symbol in (("pad_token_id", "<pad>"), ("eos_token_id", "</s>"), ("", "<unk>")):
        if field not in config and symbol not in ids:
            raise UserError(f"{folder.path}: expected {symbol!r} in the vocabulary, found none")
        named[symbol] = config.get(field, ids.get(symbol))
    pad = named["<pad>"]
    return Special(pad, config.get("decoder_start_token_id", pad), named["</s>"], named["<unk>"])


def embedding_tables(
    tensors: Tensors, config: dict[str, Any], sizes: tuple[int, int], place: str = "model."
) -> dict[str, np.ndarray]:
    """Weight tying: reads the embeddings of source and target and the output, what is tied once.

    Args:
      tensors: Those of the folder.
      config: As for `model_config`.
      sizes: Numbers of source and of target symbols.
      place: What the names of tensors begin with.

    Returns:
      Tables by their names among the parameters here, with rows in the other program's order.
    """
    depth, (source, target) = config["d_model"], sizes
    shared, of_source, of_target = (f"{place}{name}.weight" for name in _TABLES)
    tied = ["lm_head.weight"] if config["tie_word_embeddings"] else []
    if config["share_encoder_decoder_embeddings"] and tied:
        names = [shared, of_source, of_target, *tied]
        return {"target_embedding": tensors.take_tied(names, target, depth)}
    # A table that several have is stored once, and may also be there without use.
    of_source, of_target = (name if name in tensors else shared for name in (of_source, of_target))
    found = {
        "source_embedding": tensors.take(of_source, source, depth),
        "target_embedding": tensors.take_tied([of_target, *tied], target, depth),
    }
    tensors.leave_out(shared)
    return found if tied else {**found, "output": tensors.take("lm_head.weight", target, depth)}


def _parameters(
    tensors: Tensors, config: dict[str, Any], source_rows: np.ndarray, target_rows: np.ndarray
) -> dict[str, Any]:
    sizes = len(source_rows) - 1, len(target_rows) - 1
    tables = embedding_tables(tensors, config, sizes)
    tensors.leave_out(f"model.encoder.{_SINES}", f"model.decoder.{_SINES}")
    bias = tensors.take("final_logits_bias", 1, sizes[1])[0]
    return {
        **{
            name: table[source_rows if name == "source_embedding" else target_rows]
            for name, table in tables.items()
        },
        "output_bias": output_bias(bias, target_rows),
        "encoder": stack(
            tensors, "model.encoder", layer_sizes(config, "encoder"), attends=False
        ),
        "decoder": stack(tensors, "model.decoder", layer_sizes(config, "decoder"), attends=True),
    }
