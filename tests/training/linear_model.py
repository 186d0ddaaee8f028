"""A linear sequence-to-sequence model whose loss and gradient NumPy can compute."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.ops.summation import upcast
from attention_jax.types import Call, ModelOutput

VOCABULARY = 6
DEPTH = 3


@dataclasses.dataclass(frozen=True)
class LinearModel:
    """logits_t = (mean of the source's embeddings + embedding of the last target) W + b.

    `dropout` acts on the hidden vectors; `dtype` is that of the computation.
    """

    dropout: float = 0.0
    dtype: Any = jnp.float32
    provides = {}
    begins_from = "source"
    fields = ("source", "source_mask")

    def init(self, rng):
        shapes = {"output": (DEPTH, VOCABULARY), "source": (VOCABULARY, DEPTH)}
        params = {
            name: jax.random.normal(jax.random.fold_in(rng, index), shape)
            for index, (name, shape) in enumerate(shapes.items())
        }
        target = jax.random.normal(jax.random.fold_in(rng, 9), (VOCABULARY, DEPTH))
        return {"decoder": {"target": target, "bias": jnp.zeros(VOCABULARY)}, **params}

    def parameter_axes(self):
        axes = {"output": ("hidden", "vocab"), "source": ("words", "hidden")}
        decoder = {"target": ("words", "hidden"), "bias": ("vocab",)}
        return {
            "decoder": {name: PartitionSpec(*names) for name, names in decoder.items()},
            **{name: PartitionSpec(*names) for name, names in axes.items()},
        }

    def apply(self, params, batch, call=Call()):
        params = jax.tree.map(lambda leaf: leaf.astype(self.dtype), params)
        mask = jnp.asarray(batch["source_mask"])[..., None]
        source = (params["source"][batch["source"]] * mask).sum(1)
        source = source / jnp.maximum(mask.sum(1), 1).astype(self.dtype)
        last = jnp.pad(jnp.asarray(batch["target"])[:, :-1], ((0, 0), (1, 0)), constant_values=1)
        hidden = source[:, None] + params["decoder"]["target"][last]
        if call.train and self.dropout:
            keep = jax.random.bernoulli(call.rng, 1 - self.dropout, hidden.shape)
            hidden = jnp.where(keep, hidden / (1 - self.dropout), 0)
        logits = hidden @ params["output"] + params["decoder"]["bias"]
        return ModelOutput(SoftmaxPredictions(upcast(logits)), None)

    def slots(self, memory):
        return None

    def start(self, params, batch):
        raise NotImplementedError

    def step(self, params, memory, state, tokens):
        raise NotImplementedError


def random_batch(seed=0, rows=8, filler=0, source_length=5, target_length=4):
    """A NumPy batch of random lengths whose last `filler` rows are padding."""
    draw = np.random.default_rng(seed)
    sizes = {"source": source_length, "target": target_length}
    batch = {}
    for name, size in sizes.items():
        lengths = draw.integers(1, size + 1, rows)
        lengths[rows - filler :] = 0
        mask = np.arange(size) < lengths[:, None]
        ids = draw.integers(3, VOCABULARY, (rows, size))
        batch[name] = np.where(mask, ids, 0).astype(np.int32)
        batch[f"{name}_mask"] = mask
    batch["index"] = np.where(np.arange(rows) < rows - filler, np.arange(rows), -1).astype(np.int32)
    return batch


def loss_and_gradient(params, batch, weights=None):
    """Cross-entropy summed over real tokens and its gradient, in NumPy float64.

    `weights` multiplies every token, `B T`; 1 / number of tokens, for example.
    """
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    source_mask, mask = batch["source_mask"], batch["target_mask"]
    lengths = np.maximum(source_mask.sum(1), 1)[:, None]
    mean = (params["source"][batch["source"]] * source_mask[..., None]).sum(1) / lengths
    last = np.concatenate([np.ones_like(batch["target"][:, :1]), batch["target"][:, :-1]], 1)
    hidden = mean[:, None] + params["decoder"]["target"][last]
    logits = hidden @ params["output"] + params["decoder"]["bias"]
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    weights = mask * (1.0 if weights is None else weights)
    onehot = np.eye(VOCABULARY)[batch["target"]]
    loss = -(weights * np.log((probabilities * onehot).sum(-1))).sum()
    d_logits = (probabilities - onehot) * weights[..., None]
    d_hidden = d_logits @ params["output"].T
    gradient = jax.tree.map(np.zeros_like, params)
    gradient["decoder"]["bias"] += d_logits.sum((0, 1))
    gradient["output"] += np.einsum("btd,btv->dv", hidden, d_logits)
    np.add.at(gradient["decoder"]["target"], last, d_hidden)
    d_source = (d_hidden.sum(1) / lengths)[:, None] * source_mask[..., None]
    np.add.at(gradient["source"], batch["source"], d_source)
    return loss, gradient
