"""Parameters in safetensors files: there and back, mistakes, and the same logits in PyTorch."""

import dataclasses
import functools
import json
import math
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open

from attention_jax.configuration import typed
from attention_jax.data.lexicon import LEXICON_FILE
from attention_jax.errors import UserError
from attention_jax.experiment import run_experiment
from attention_jax.models import MODELS, build_model
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.weights import (
    IDS,
    initial_weights,
    load_weights,
    save_weights,
)
from attention_jax.runs.hashes import hash_files
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from attention_jax.updates.averaging import MovingAverage
from tests.training.tiny import tiny_config

B, S, T, V, D, HEADS, WIDTH, LAYERS = 2, 5, 4, 13, 8, 2, 12, 2
STACK = {"num_layers": LAYERS, "feed_forward_dim": WIDTH}


def transformer(**changes):
    stack = {**STACK, **changes}
    fields = {
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": D},
                "encoder": {"name": "self_attention", **stack},
            }
        },
        "decoder": {"name": "transformer", **stack},
        "attention": {
            "name": "multi_head", "num_heads": HEADS, "head_dim": D // HEADS, "use_bias": True
        },
        "tie_embeddings": "all",
    }  # fmt: skip
    return moved_from_start("encoder_decoder", fields)


def moved_from_start(name, fields):
    """Builds a model whose parameters are all different."""
    model = build_model(typed(MODELS.config(name), fields, "config.model"), V, V)
    leaves, tree = jax.tree.flatten(jax.jit(model.init)(jax.random.key(0)))
    rng = np.random.default_rng(0)
    moved = [leaf + 0.2 * rng.standard_normal(leaf.shape, np.float32) for leaf in leaves]
    return model, tree.unflatten(map(jnp.asarray, moved))


def test_parameters_come_back_as_they_were(tmp_path):
    _, params = transformer()
    path = tmp_path / "weights.safetensors"
    save_weights(params, path, {"seed": 3})
    found = load_weights(path, params)
    assert jax.tree.structure(found) == jax.tree.structure(params)
    jax.tree.map(np.testing.assert_array_equal, found, params)
    with safe_open(path, framework="np") as file:
        assert json.loads(file.metadata()["config"]) == {"seed": 3}
        assert "encoder.layer_0.self_attention.query_projection" in set(file.keys())
    assert [each.name for each in tmp_path.iterdir()] == ["weights.safetensors"]


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    params = {"a": jnp.ones((2, 3)), "b": {"c": jnp.ones(2)}}
    save_weights(params, path)
    for like, message in (
        ({**params, "d": jnp.ones(1)}, "tensor 'd' missing"),
        ({"a": params["a"]}, "tensor 'b.c' not of this model"),
        ({**params, "a": jnp.ones((3, 2))}, r"tensor 'a': expected shape \(3, 2\), found \(2, 3\)"),
    ):
        with pytest.raises(UserError, match=message):
            load_weights(path, like)
    with pytest.raises(UserError, match="expected a safetensors file, found none"):
        load_weights(tmp_path / "none", params)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(UserError, match="is no safetensors file"):
        load_weights(path, params)
    with pytest.raises(UserError, match="cannot be written"):
        save_weights(params, tmp_path / "weights.safetensors" / "below")


def write_tensor(path, kind, content, shape=(2, 3)):
    """Writes a file by hand, of any type of numbers."""
    entry = {"dtype": kind, "shape": shape, "data_offsets": [0, len(content)]}
    header = json.dumps({"a": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + content)


def test_floats_of_every_type_are_read(tmp_path):
    path = tmp_path / "weights.safetensors"
    numbers = np.array([[0.5, -2.0, 3.0], [0.0, 1.0, -0.25]])
    types = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": jnp.bfloat16}
    for kind, dtype in types.items():
        write_tensor(path, kind, numbers.astype(dtype).tobytes())
        found = load_weights(path, {"a": jnp.ones((2, 3))})["a"]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, numbers)
    write_tensor(path, "F32", np.float32(3).tobytes(), ())
    assert load_weights(path, {"a": jnp.ones(())})["a"] == 3


@pytest.mark.parametrize(
    ("kind", "size"), [("F8_E4M3", 1), ("I64", 8), ("I32", 4), ("U8", 1), ("BOOL", 1)]
)
def test_numbers_that_are_no_floats_are_refused(kind, size, tmp_path):
    path = tmp_path / "weights.safetensors"
    write_tensor(path, kind, bytes(6 * size))
    expected = f"weights.safetensors: tensor 'a': expected numbers of type F64, .* found {kind}$"
    with pytest.raises(UserError, match=expected):
        load_weights(path, {"a": jnp.ones((2, 3))})


@pytest.mark.parametrize(
    ("kind", "dtype", "number", "found"),
    [
        ("F32", np.float32, np.nan, "nan"),
        ("F16", np.float16, -np.inf, "-inf"),
        ("BF16", jnp.bfloat16, np.inf, "inf"),
        ("F64", np.float64, 1e300, "inf"),
    ],
)
def test_numbers_that_are_not_finite_are_refused(kind, dtype, number, found, tmp_path):
    path = tmp_path / "weights.safetensors"
    write_tensor(path, kind, np.array([1, number, 1, 1, 1, 1]).astype(dtype).tobytes())
    expected = f"weights.safetensors: tensor 'a': expected finite numbers .* found {found}$"
    with pytest.raises(UserError, match=expected):
        load_weights(path, {"a": jnp.ones((2, 3))})


def test_training_starts_from_a_file(tmp_path):
    config = tiny_config()
    first = assemble(config, RunDirectory(tmp_path / "one"))
    params = first.start(jax.random.key(5)).params
    path = tmp_path / "weights.safetensors"
    save_weights(params, path)
    training = dataclasses.replace(
        config.training, initial_weights=str(path), averaging=MovingAverage()
    )
    config = dataclasses.replace(config, training=training)
    state = assemble(config, RunDirectory(tmp_path / "two")).start(jax.random.key(6))
    jax.tree.map(np.testing.assert_array_equal, state.params, params)
    jax.tree.map(np.testing.assert_array_equal, state.average, params)
    assert int(state.step) == 0


def test_a_training_that_continues_needs_no_file_to_start_from(tmp_path):
    config = tiny_config(num_steps=2)
    path, run = tmp_path / "weights.safetensors", RunDirectory(tmp_path / "run")
    params = assemble(config, RunDirectory(tmp_path / "other")).start(jax.random.key(5)).params
    save_weights(params, path)
    settings = dataclasses.replace(config.training, initial_weights=str(path))
    run_experiment(dataclasses.replace(config, training=settings), run.path)
    path.unlink()
    longer = dataclasses.replace(config, training=dataclasses.replace(settings, num_steps=3))
    run_experiment(longer, run.path)
    assert Checkpointer(run.checkpoints).steps()[-1] == 3
    with pytest.raises(UserError, match="expected a safetensors file, found none"):
        run_experiment(longer, tmp_path / "new")


def test_parameters_of_other_vocabularies_are_refused(tmp_path):
    config = tiny_config()
    one = RunDirectory(tmp_path / "one")
    params = assemble(config, one).start(jax.random.key(5)).params
    path = tmp_path / "weights.safetensors"
    training = dataclasses.replace(config.training, initial_weights=str(path))
    config = dataclasses.replace(config, training=training)
    save_weights(params, path, vocabularies=hash_files(one.vocabularies))
    assemble(config, RunDirectory(tmp_path / "two"))
    save_weights(params, path, vocabularies="another")
    with pytest.raises(UserError, match="^config.training.initial_weights: expected .* vocab"):
        assemble(config, RunDirectory(tmp_path / "three"))


@pytest.mark.parametrize("of_file", ["whole", "without", "ids"])
def test_a_lexicon_beside_vocabularies_does_not_change_what_ids_mean(tmp_path, of_file):
    params = {"table": np.ones((2, 3), np.float32)}
    path, folders = tmp_path / "weights.safetensors", (tmp_path / "mine", tmp_path / "theirs")
    for folder in folders:
        folder.mkdir()
        (folder / "target.txt").write_text("das\nHaus\n")
    mine, theirs = folders
    (theirs / LEXICON_FILE).write_bytes(b"of the one that reads")
    if of_file == "whole":  # written of a run without a lexicon
        save_weights(params, path, vocabularies=hash_files(mine))
        mine = theirs
    elif of_file == "without":
        save_weights(params, path, vocabularies=hash_files(theirs, LEXICON_FILE))
    else:  # a pruned run's
        about = {IDS: hash_files(theirs, LEXICON_FILE)}
        save_weights(params, path, {}, hash_files(theirs), about)
    found = initial_weights(str(path), params, mine)
    np.testing.assert_array_equal(found["table"], params["table"])
    (mine / "target.txt").write_text("Haus\ndas\n")
    with pytest.raises(UserError, match="found those of others"):
        initial_weights(str(path), params, mine)


# ---- In PyTorch ----------------------------------------------------------------------------------
@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="the bench extra (torch) is not installed")


def tensors_of(torch, params, path):
    """Takes parameters through a file."""
    save_weights(params, path)
    with safe_open(path, framework="np") as file:
        return {name: torch.from_numpy(file.get_tensor(name)) for name in file.keys()}


@pytest.mark.parametrize(
    "changes", [{}, {"norm_order": "pre", "activation": "gelu", "positions": "learned"}]
)
def test_pytorch_gives_the_same_logits(changes, torch, tmp_path):
    model, params = transformer(**changes)
    tensors = tensors_of(torch, params, tmp_path / "weights.safetensors")
    rng = np.random.default_rng(1)
    source, target = (rng.integers(4, V, (B, size)) for size in (S, T))
    lengths = np.array([S, 3])
    batch = {
        "source": jnp.asarray(source), "source_mask": jnp.arange(S) < lengths[:, None],
        "target": jnp.asarray(target), "target_mask": jnp.ones((B, T), bool),
    }  # fmt: skip
    expected = jax.jit(model.apply)(params, batch).predictions.logits
    with torch.no_grad():
        found = torch_logits(torch, tensors, source, lengths, target, changes)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def torch_logits(torch, tensors, source, lengths, target, changes):
    """The same Transformer, of PyTorch's own layers."""
    is_pre = changes.get("norm_order") == "pre"
    options = dict(dropout=0.0, layer_norm_eps=1e-6, batch_first=True, norm_first=is_pre)
    if changes.get("activation") == "gelu":
        # No module: the copies that a stack makes of its layer would lose it.
        gelu = torch.nn.functional.gelu
        options["activation"] = functools.partial(gelu, approximate="tanh")
    ends = [torch.nn.LayerNorm(D, 1e-6) if is_pre else None for _ in range(2)]
    layer = torch.nn.TransformerEncoderLayer(D, HEADS, WIDTH, **options)
    encoder = torch.nn.TransformerEncoder(layer, LAYERS, ends[0], enable_nested_tensor=False)
    layer = torch.nn.TransformerDecoderLayer(D, HEADS, WIDTH, **options)
    decoder = torch.nn.TransformerDecoder(layer, LAYERS, ends[1])
    for side, stack, end in zip(("encoder", "decoder"), (encoder, decoder), ends, strict=True):
        for number in range(LAYERS):
            fill_layer(torch, stack.layers[number], tensors, f"{side}.layer_{number}.")
        if is_pre:
            fill_norm(end, tensors, f"{side}.norm.")
    table = tensors["target_embedding"]
    before = np.concatenate([np.ones((B, 1), np.int64), target[:, :-1]], 1)
    padding = torch.from_numpy(np.arange(S) >= lengths[:, None])
    causal = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    placed_source = placed(torch, tensors, source, "encoder.")
    memory = encoder(placed_source, src_key_padding_mask=padding)
    features = decoder(
        placed(torch, tensors, before, "decoder."), memory, tgt_mask=causal,
        memory_key_padding_mask=padding,
    )  # fmt: skip
    return (features @ table.T + tensors["output_bias"]).numpy()


def placed(torch, tensors, tokens, prefix):
    length = tokens.shape[1]
    codes = tensors.get(f"{prefix}positions")
    if codes is None:
        angle = np.arange(length)[:, None] / 10000 ** (2 * (np.arange(D) // 2) / D)
        waves = np.where(np.arange(D) % 2, np.cos(angle), np.sin(angle))
        codes = torch.from_numpy(waves.astype(np.float32))
    embedded = tensors["target_embedding"][torch.from_numpy(tokens)]
    return embedded * math.sqrt(D) + codes[:length]


def fill_layer(torch, layer, tensors, prefix):
    """Copies one layer; names of ours on the right, those of PyTorch on the left."""
    attentions = {"self_attn": "self_attention"}
    norms = {"norm1": "self_norm", "norm2": "feed_forward_norm"}
    if hasattr(layer, "multihead_attn"):
        attentions["multihead_attn"] = "attention"
        norms = {"norm1": "self_norm", "norm2": "attention_norm", "norm3": "feed_forward_norm"}
    for theirs, ours in attentions.items():
        fill_heads(torch, getattr(layer, theirs), tensors, f"{prefix}{ours}.")
    for theirs, ours in norms.items():
        fill_norm(getattr(layer, theirs), tensors, f"{prefix}{ours}.")
    for theirs, ours in {"linear1": "hidden", "linear2": "output"}.items():
        getattr(layer, theirs).weight.copy_(tensors[f"{prefix}feed_forward.{ours}"].T)
        getattr(layer, theirs).bias.copy_(tensors[f"{prefix}feed_forward.{ours}_bias"])


def fill_norm(norm, tensors, prefix):
    norm.weight.copy_(tensors[f"{prefix}scale"])
    norm.bias.copy_(tensors[f"{prefix}bias"])


def fill_heads(torch, attention, tensors, prefix):
    """PyTorch has one kernel for all heads and for queries, keys and values."""
    rows, biases = [], []
    for name in ("query", "key", "value"):
        kernel = tensors[f"{prefix}{name}_projection"]  # heads x inputs x depth
        rows.append(kernel.permute(0, 2, 1).reshape(D, D))
        bias = tensors.get(f"{prefix}{name}_bias")  # of keys there is none: it changes nothing
        biases.append(torch.zeros(D) if bias is None else bias.reshape(D))
    attention.in_proj_weight.copy_(torch.cat(rows))
    attention.in_proj_bias.copy_(torch.cat(biases))
    attention.out_proj.weight.copy_(tensors[f"{prefix}output_kernel"].reshape(D, D).T)
    attention.out_proj.bias.copy_(tensors[f"{prefix}output_bias"])


def test_pytorch_gives_the_same_logits_of_a_language_model(torch, tmp_path):
    """One with what later papers added: gates, RMS norms, groups of heads, rotary positions."""
    attention = {"name": "multi_head", "num_heads": 4, "num_memory_heads": 2, "head_dim": 6}
    fields = {
        "embedding_dim": D,
        "attention": {**attention, "refinements": {"rope": {}}},
        "decoder": {
            "name": "transformer", **STACK, "activation": "swiglu", "norm": "rms",
            "norm_order": "pre", "positions": "none", "scales_embeddings": False,
        },
        "tie_embeddings": False,
    }  # fmt: skip
    model, params = moved_from_start("language_model", fields)
    tensors = tensors_of(torch, params, tmp_path / "weights.safetensors")
    target = np.random.default_rng(1).integers(4, V, (B, T))
    batch = {"target": jnp.asarray(target), "target_mask": jnp.ones((B, T), bool)}
    expected = jax.jit(model.apply)(params, batch).predictions.logits
    before = np.concatenate([np.ones((B, 1), np.int64), target[:, :-1]], 1)
    found = torch_language_logits(torch, tensors, before).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def torch_language_logits(torch, tensors, tokens):
    functional = torch.nn.functional

    def normalized(stream, name):
        return functional.rms_norm(stream, (D,), tensors[f"decoder.{name}.scale"], 1e-6)

    stream = tensors["embedding"][torch.from_numpy(tokens)]
    for number in range(LAYERS):
        layer = f"layer_{number}"
        weights = {
            name.removeprefix(f"decoder.{layer}."): tensor for name, tensor in tensors.items()
        }
        inputs = normalized(stream, f"{layer}.self_norm")[:, None]
        query, key, value = (
            inputs @ weights[f"self_attention.{name}_projection"]
            for name in ("query", "key", "value")
        )
        heads = functional.scaled_dot_product_attention(
            rotated(torch, query), rotated(torch, key), value, is_causal=True, enable_gqa=True
        )
        stream = stream + (heads @ weights["self_attention.output_kernel"]).sum(1)
        inputs = normalized(stream, f"{layer}.feed_forward_norm")
        hidden = inputs @ weights["feed_forward.hidden"] + weights["feed_forward.hidden_bias"]
        hidden = functional.silu(hidden) * (inputs @ weights["feed_forward.gate"])
        stream = stream + hidden @ weights["feed_forward.output"]
        stream = stream + weights["feed_forward.output_bias"]
    return normalized(stream, "norm") @ tensors["output"].T + tensors["output_bias"]


def rotated(torch, heads):
    """Turns pairs of neighbours of `B H T D` by angles that grow with the position."""
    depth = heads.shape[-1]
    speeds = 10000.0 ** (-torch.arange(0, depth, 2) / depth)
    turns = torch.polar(torch.ones(()), torch.arange(heads.shape[-2])[:, None] * speeds)
    pairs = torch.view_as_complex(heads.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)
