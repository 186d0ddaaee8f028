"""Parameters by logical axes and role: what each dimension is, and what the whole is for.

An initialisation says how parameters of a role start, and rules say over which devices logical
axes are split (`devices/rules.py`). A role is one of

  kernel            an input or output matrix
  recurrent         square matrices side by side, from a hidden state to its gates
  word_embedding    one row for each word, read by an encoder or decoder
  embedding         one row for each symbol, else: an output, a position, a distance
  attention_kernel  a matrix inside an attention score
  attention_vector  the vector that ends an additive score
  direction         such a vector whose length does not count, so that it is never zero
  coverage_kernel   a matrix inside an attention score, of what has been attended to; nearly zero at
                    first, for it has a row or three where other matrices have hundreds
  head_output       matrices that join heads: heads x depth of a head x depth
  mixing            a vector that mixes heads into one another
  scale             ones, a gain
  bias              zeros, but for `uniform`
  forget_bias       the bias of an LSTM, whose forget gate may start open

and a logical axis is, unless a part has one of its own, one of

  vocab             entries of a vocabulary: embedded words, logits
  source_vocab      source words in a table of a mechanism's own
  embed             an embedded word, and what runs through a stack of self-attention
  positions         positions, distances between two, or slots of a window
  input             what a recurrent layer reads
  hidden            a recurrent state, or a hidden layer
  gates             gates of a cell, side by side
  kernel            window of a convolution: its positions, each with all that stands there
  feed_forward      hidden layer of a feed-forward sublayer
  annotation        what an encoder ends with, or makes of a position
  query, key, value what asks, what it is compared with, what is averaged
  query_key         a query and a key, side by side
  attention         hidden layer of a score
  coverage          what is known of a slot's past
  channels, filters what a convolution makes: of the memory, of the weights before
  heads             heads; `memory_heads` where keys and values have fewer than queries,
                    `mixed_heads` where heads read one another
  head_dim          depth of a head's queries, keys or values
  context           what attention has read
  features          what a readout makes predictions of
  prediction        what a predictor makes, such as mean and variance
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.sharding import PartitionSpec
from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.types import Array

Initializer = Callable[[Array, tuple[int, ...]], Array]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """Parameter: its shape, axes and role, before it is drawn; layers declare trees of them.

    Attributes:
      shape: Its dimensions.
      axes: The logical axis of each dimension.
      role: What it is for.
      start: What it starts from, all of it, in place of what the initialization has for the role.
      shared_by: Of what there are several with one copy of it: `heads` that ask one memory, for
        what only the memory depends on; `layers` of a stack of self-attention.
    """

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    role: str
    start: float | None = None
    shared_by: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuses axes that are not those of the shape, and roles that such a shape cannot have."""
        if len(self.axes) != len(self.shape):
            raise ValueError(
                f"axes: expected one for each dimension of {self.shape}, found {self.axes}"
            )
        if not self.shared_by <= _SHARING:
            raise ValueError(
                f"shared_by: expected {' or '.join(sorted(_SHARING))}, found "
                f"{', '.join(sorted(self.shared_by))}"
            )
        if self.role not in _ROLES:
            raise ValueError(f"role: expected one of {', '.join(_ROLES)}, found {self.role!r}")
        if len(self.shape) < (least := _LEAST_DIMENSIONS.get(self.role, 0)):
            raise ValueError(
                f"role: expected {least} dimensions or more for {self.role!r}, found {self.shape}"
            )

    @classmethod
    def of(cls, role: str, **sizes: int) -> "Parameter":
        """Returns a parameter of a role, its axes named beside their sizes."""
        return cls(tuple(sizes.values()), tuple(sizes), role)

    def stacked(self, size: int, axis: str) -> "Parameter":
        """Returns several of it as one parameter, stacked on a leading axis."""
        return dataclasses.replace(self, shape=(size, *self.shape), axes=(axis, *self.axes))

    def starting_at(self, start: float) -> "Parameter":
        """Returns the same, which starts from a number whatever the initialization."""
        return dataclasses.replace(self, start=start)

    def shared(self, *by: str) -> "Parameter":
        """Parameter sharing: returns the same, of which there is one copy for several."""
        return dataclasses.replace(self, shared_by=self.shared_by | {*by})


def shared_names(parameters: Mapping[str, Any], by: str) -> frozenset[str]:
    """Parameter sharing: returns the names of those that `heads`, or `layers`, share."""
    return frozenset(
        name
        for name, each in parameters.items()
        if isinstance(each, Parameter) and by in each.shared_by  # others are trees
    )


def affine(**sizes: int) -> dict[str, Parameter]:
    """Affine layer: returns the kernel and the bias of a map from its first axis to its second."""
    kernel = Parameter.of("kernel", **sizes)
    return {"kernel": kernel, "bias": Parameter(kernel.shape[1:], kernel.axes[1:], "bias")}


def layer_norm_parameters(depth: int) -> dict[str, Parameter]:
    """Layer normalization: returns the gain and the bias of vectors of a depth."""
    return {name: Parameter.of(name, embed=depth) for name in ("scale", "bias")}


@dataclasses.dataclass(frozen=True)
class Initialization:
    """Initialization: how parameters start.

    Attributes:
      name: `default` (orthogonal recurrence, LeCun-normal matrices), `bahdanau2015` (appendix
        B.1: attention nearly zero, so that it starts uniform), `xavier` (Glorot-uniform matrices,
        embeddings of variance 1 / depth, as for the Transformer) or `uniform` (Sutskever 2014
        with 0.08, Luong 2015 with 0.1; GNMT with 0.04).
      scale: Of `uniform`, half the width of the interval.
      embedding_scale: Of `default`, the standard deviation of word embeddings, and of an output
        that is tied to them. With 0.1, GNMT's stack of LSTMs does not learn to attend in the small;
        with 1 it does.
      forget_bias: What the forget gates of LSTMs start from.
    """

    name: str = setting("default", choices=("default", "bahdanau2015", "xavier", "uniform"))
    scale: float = setting(0.1, above=0.0)
    embedding_scale: float = setting(0.1, above=0.0)
    forget_bias: float = setting(0.0)

    def __post_init__(self) -> None:
        """Rejects a scale that would change nothing."""
        for field, name in (("scale", "uniform"), ("embedding_scale", "default")):
            if self.name != name and getattr(self, field) != 0.1:
                raise ValueError(
                    f"{field}: expected only with the name {name!r}, found {getattr(self, field)}"
                )

    def initializer(self, role: str) -> Initializer:
        """Returns the function (rng, shape) -> array for a role."""
        if role == "scale":
            return _ones
        # The papers that draw everything from one interval draw biases, too.
        if role == "bias":
            return _zeros if self.name != "uniform" else self._uniform
        if role == "forget_bias":
            return self._forget_bias
        if self.name == "uniform":
            return self._uniform
        if role == "word_embedding":
            if self.name == "default":
                return _normal(self.embedding_scale)
            role = "embedding"  # no scale of its own but in `default`
        return _TABLES[self.name][role]

    def _uniform(self, rng: Array, shape: tuple[int, ...]) -> Array:
        return jax.random.uniform(rng, shape, minval=-self.scale, maxval=self.scale)

    def _forget_bias(self, rng: Array, shape: tuple[int, ...]) -> Array:
        bias = self.initializer("bias")(rng, shape)
        # The gates stand in the order i, f, g, o: the second quarter is the forget gate's.
        depth = shape[-1] // 4
        return bias.at[..., depth : 2 * depth].add(self.forget_bias)


def draw(tree: Any, rng: Array, initialization: Initialization) -> Any:
    """Draws arrays for a tree of `Parameter`, each with a random key of its own."""
    leaves, structure = jax.tree.flatten(tree)
    # By place among the leaves, sorted by name: a new leaf changes the draws of its group.
    keys = jax.random.split(rng, max(len(leaves), 1))
    return structure.unflatten(
        initialization.initializer(leaf.role)(key, leaf.shape)
        if leaf.start is None
        else jnp.full(leaf.shape, leaf.start, float)
        for leaf, key in zip(leaves, keys, strict=False)
    )


def declare(
    module: nn.Module, tree: Mapping[str, Any], initialization: Initialization
) -> dict[str, Any]:
    """Declares a tree of `Parameter` on a Linen module, and returns the arrays.

    Parameters without elements are left out, for checkpoints cannot hold them; `project` stands
    in for them. A group without parameters is not declared and comes back empty.
    """
    arrays = {}
    for name, node in tree.items():
        # A context of depth zero makes kernels without rows, for one.
        node = _without_empty(node)
        arrays[name] = {}
        if node:
            # Flax traces how a parameter starts whenever it is read, too, and looks at the shapes.
            start = _undrawn if module.has_variable("params", name) else draw
            # One Linen parameter for a whole group, whose path Flax folds into its key.
            arrays[name] = module.param(
                name, lambda rng, start=start, node=node: start(node, rng, initialization)
            )
    return arrays


def logical_axes(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Logical axes: returns those of a tree of `Parameter`, but for what `declare` leaves out."""
    return jax.tree.map(lambda parameter: PartitionSpec(*parameter.axes), _without_empty(tree))


def project(
    values: Float[Array, "*B D"], kernel: Float[Array, "D F"] | None
) -> Float[Array, "*B _F"]:
    """Multiplies by a kernel; one that was left out because it has no rows gives one zero."""
    if kernel is None:
        return jnp.zeros((*values.shape[:-1], 1), values.dtype)
    return values @ kernel


def _without_empty(node: Any) -> Any:
    if isinstance(node, Parameter):
        return None if 0 in node.shape else node
    kept = {name: _without_empty(child) for name, child in node.items()}
    return {name: child for name, child in kept.items() if child}


def _undrawn(tree: Any, rng: Array, initialization: Initialization) -> Any:
    """Returns arrays of the shapes that `draw` gives, which cost nothing to trace."""
    return jax.tree.map(lambda leaf: np.broadcast_to(np.float32(0), leaf.shape), tree)


def _zeros(rng: Array, shape: tuple[int, ...]) -> Array:
    return jnp.zeros(shape)


def _ones(rng: Array, shape: tuple[int, ...]) -> Array:
    return jnp.ones(shape)


def _normal(deviation: float) -> Initializer:
    return lambda rng, shape: deviation * jax.random.normal(rng, shape)


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns fan-in and fan-out of a matrix; a vector, or a scalar, makes one number."""
    if len(shape) > 1:
        return shape[-2], shape[-1]  # heads, if any, stand before
    return _depth(shape), 1


def _depth(shape: tuple[int, ...]) -> int:
    return shape[-1] if shape else 1


def _lecun(rng: Array, shape: tuple[int, ...]) -> Array:
    return jax.random.normal(rng, shape) / math.sqrt(max(_fans(shape)[0], 1))


def _lecun_vectors(rng: Array, shape: tuple[int, ...]) -> Array:
    """Draws a vector, or one for each head."""
    return jax.random.normal(rng, shape) / math.sqrt(max(_depth(shape), 1))


def _lecun_heads(rng: Array, shape: tuple[int, ...]) -> Array:
    # The sum over heads is part of the product: its fan-in is all heads' depths.
    return jax.random.normal(rng, shape) / math.sqrt(shape[0] * shape[1])


def _xavier(rng: Array, shape: tuple[int, ...]) -> Array:
    """Draws a matrix, or those of all heads side by side."""
    # Heads read the same input: together they are one matrix, with the fan-out of all.
    heads = shape[0] if len(shape) > 2 else 1
    fan_in, fan_out = _fans(shape)
    return _glorot(rng, shape, fan_in, heads * fan_out)


def _xavier_scores(rng: Array, shape: tuple[int, ...]) -> Array:
    """Draws a matrix, or one for each head, which reads an input of its own."""
    return _glorot(rng, shape, *_fans(shape))


def _xavier_heads(rng: Array, shape: tuple[int, ...]) -> Array:
    return _glorot(rng, shape, shape[0] * shape[1], shape[2])  # H Dv D, one matrix of HDv D


def _glorot(rng: Array, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return jax.random.uniform(rng, shape, minval=-limit, maxval=limit)


def _inverse_depth(rng: Array, shape: tuple[int, ...]) -> Array:
    return jax.random.normal(rng, shape) / math.sqrt(_depth(shape))


def _orthogonal(rng: Array, shape: tuple[int, ...]) -> Array:
    """Draws one orthogonal matrix for every gate, and for every head."""
    if len(shape) > 2:
        keys = jax.random.split(rng, shape[0])
        return jnp.stack([_orthogonal(key, shape[1:]) for key in keys])
    depth, width = shape  # D GD, G gates side by side
    # Each gate's matrix is orthogonal by itself: the wide one as a whole could not be.
    keys = jax.random.split(rng, width // depth)
    matrix = jax.nn.initializers.orthogonal()
    return jnp.concatenate([matrix(key, (depth, depth), float) for key in keys], axis=1)


_DEFAULT = {
    "kernel": _lecun,
    "recurrent": _orthogonal,
    "embedding": _normal(0.1),
    "attention_kernel": _lecun,
    "attention_vector": _lecun_vectors,
    "direction": _lecun_vectors,
    "coverage_kernel": _normal(0.01),
    "head_output": _lecun_heads,
    "mixing": _normal(0.1),
}
_TABLES = {
    "default": _DEFAULT,
    "bahdanau2015": {
        **_DEFAULT,
        "kernel": _normal(0.01),
        "embedding": _normal(0.01),
        "attention_kernel": _normal(0.001),
        "attention_vector": _zeros,
        "coverage_kernel": _normal(0.001),
        "head_output": _normal(0.01),
        "mixing": _normal(0.01),
    },
    "xavier": {
        **_DEFAULT,
        "kernel": _xavier,
        "embedding": _inverse_depth,
        "attention_kernel": _xavier_scores,
        "head_output": _xavier_heads,
    },
}
_SHARING = {"heads", "layers"}
_ROLES = (*_DEFAULT, "word_embedding", "scale", "bias", "forget_bias")
# Gates side by side, heads before what they join, quarters of a bias: the start needs these axes.
_LEAST_DIMENSIONS = {"recurrent": 2, "head_output": 3, "forget_bias": 1}
