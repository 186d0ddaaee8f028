"""Transformer layers, for encoder and decoder: sublayers around a residual stream.

  post-norm:  x = norm(x + dropout(sublayer(x)))
  pre-norm:   x = x + dropout(sublayer(norm(x))), with one more norm at the end of the stack
"""

import dataclasses
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import jax

from attention_jax.configuration import setting
from attention_jax.layers import absolute_positions
from attention_jax.layers.absolute_positions import POSITIONS, check_positions
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.mechanism import MECHANISMS, Mechanism, described
from attention_jax.layers.parameters import Parameter, shared_names
from attention_jax.layers.refinement import without_positions
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.normalization import layer_norm, rms_norm
from attention_jax.ops.products import add_bias, multiply_rows
from attention_jax.types import Array, Call, Params

_MAX_POSITIONS = 256
_ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "gelu_erf": functools.partial(jax.nn.gelu, approximate=False),
    "silu": jax.nn.silu,
    "swiglu": jax.nn.silu,
    "geglu": jax.nn.gelu,
}
_GATED = ("swiglu", "geglu")


@dataclasses.dataclass(frozen=True)
class StackConfig:
    """Transformer stack: its layers, all of the embeddings' depth.

    Attributes:
      num_layers: How many layers there are (6 in the paper).
      feed_forward_dim: Depth of the hidden layer between two attentions (2,048 in the paper).
      use_bias: Whether the feed-forward layers add biases.
      activation: Of that layer: `relu` as in the paper, `gelu` in its approximation by tanh or, as
        `gelu_erf`, without, `silu` (also called swish), or `swiglu` and `geglu`, which multiply
        that of `silu` and of `gelu` by a second projection (Shazeer 2020).
      norm: `layer` or `rms` (Zhang and Sennrich 2019).
      norm_order: `post` as in the paper, or `pre`.
      norm_epsilon: Added to the variance or the mean square by which vectors are normalised.
      positions: `sinusoidal`, with sines and cosines by turns, `sinusoidal_halves`, with all sines
        first, `learned`, or `none`, which leaves them to the attention.
      max_positions: Of learned positions: how many there are; the last one stands for all later.
      scales_embeddings: Whether embeddings are multiplied by the square root of their depth.
      norm_embeddings: Whether they are normalised with their positions, as in BART.
      dropout: Share of each sublayer's output, and of embeddings with positions, that is dropped.
      hidden_dropout: Share of the hidden layer that is dropped.
      self_attention: How positions attend to one another; None as the model's `attention`.
    """

    num_layers: int = setting(3, at_least=1)
    feed_forward_dim: int = setting(1024, at_least=1)
    use_bias: bool = setting(True)
    activation: str = setting("relu", choices=_ACTIVATIONS)
    norm: str = setting("layer", choices=("layer", "rms"))
    norm_order: str = setting("post", choices=("post", "pre"))
    norm_epsilon: float = setting(1e-6, above=0.0)
    positions: str = setting("sinusoidal", choices=POSITIONS)
    max_positions: int = setting(_MAX_POSITIONS, at_least=1)
    scales_embeddings: bool = setting(True)
    norm_embeddings: bool = setting(False)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    hidden_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    self_attention: Any | None = setting(None, named=MECHANISMS.config)

    def __post_init__(self) -> None:
        """Rejects a field that would change nothing."""
        check_positions(self.positions, self.max_positions, _MAX_POSITIONS)


def self_attention(
    stack: StackConfig, attention: Any, depth: int, place: str, is_alone: bool = False
) -> Mechanism:
    """Self-attention: builds the mechanism with which a sequence attends to itself.

    Args:
      stack: The stack's config.
      attention: That of the model's attention, for a stack that names no mechanism of its own; of
        one that asks several sources, what asks one of them.
      depth: Of the sequence.
      place: `self`, or `causal` where no position may see a later one.
      is_alone: Whether the model has no other attention, and the stack none of its own.

    Raises:
      ValueError: If the mechanism does not serve for that.
    """
    config = stack.self_attention or attention.of_one
    # Whose fields are to be named in a message: the stack's own, or the model's.
    own = f"{'decoder' if place == 'causal' else 'encoder'}.self_attention"
    where = "attention" if stack.self_attention is None else own

    def build(config: Any) -> Mechanism:
        try:
            return build_mechanism(config, depth, depth, depth, place=place)
        except ValueError as error:  # which names the model's attention
            message = re.sub(r"^attention(?=[.:])", where, str(error))
            raise ValueError(message) from None

    # Checked without refinements that compare positions: building these would fail with an error
    # about themselves, where the mechanism is what does not serve.
    plain = build(without_positions(config))
    if plain.carries:
        reason = f"which carries {' and '.join(plain.carries)}"
    elif not plain.traits.is_alignment:
        reason = "which does not choose between positions"
    elif place == "causal" and plain.traits.reads_length:
        reason = "which depends on the length of what is still being written"
    elif plain.provides:
        reason = "which an objective has to teach that sees attention to a source only"
    else:
        return build(config)
    is_shared = stack.self_attention is None and not is_alone
    advice = f"; {own} may be another one" if is_shared else ""
    what = "mechanism"
    if config.projects_heads:  # heads, which only hand it on
        where, what, config = f"{where}.score", "score", config.score
    raise ValueError(
        f"{where}.name: expected a {what} with which a sequence can attend to itself, "
        f"found {described(config)}, {reason}{advice}"
    )


def stack_parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Returns what all layers of a stack share of their self-attention, if there is anything."""
    parameters = mechanism.parameters
    shared = shared_names(parameters, "layers")
    tree = {name: each for name, each in parameters.items() if name in shared}
    return {"self_attention": tree} if tree else {}


def layer_parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Returns what each layer of a stack has of its self-attention for itself."""
    parameters = mechanism.parameters
    shared = shared_names(parameters, "layers")
    return {name: each for name, each in parameters.items() if name not in shared}


def with_shared(params: Params) -> Params:
    """Gives each layer of a stack what all of them share of their self-attention."""
    if "self_attention" not in params:
        return params
    layers = {
        name: {**tree, "self_attention": {**params["self_attention"], **tree["self_attention"]}}
        for name, tree in params.items()
        if name.startswith("layer_")
    }
    return {**params, **layers}


def embedding_parameters(config: StackConfig, depth: int) -> dict[str, Any]:
    """Position embeddings: returns the table of learned ones and the norm of embeddings, if any."""
    positions, number = config.positions, config.max_positions
    tree = absolute_positions.position_parameters(positions, number, depth)
    if config.norm_embeddings:
        tree["embedding_norm"] = norm_parameters(config, depth)
    return tree


def place_embeddings(
    config: StackConfig, params: Params, embedded: Array, positions: Array
) -> Array:
    """Scales embedded tokens `*B T D`, adds the codes of their positions `T`, and normalises."""
    if config.scales_embeddings:
        # Embeddings of variance 1 / depth, as with `xavier`, become as large as the positions.
        embedded = embedded * math.sqrt(embedded.shape[-1])
    placed = absolute_positions.place(config.positions, params, embedded, positions)
    if config.norm_embeddings:
        return normalize(config, params["embedding_norm"], placed)
    return placed


def norm_parameters(config: StackConfig, depth: int) -> dict[str, Parameter]:
    """Returns the parameters of one normalisation."""
    scale = Parameter.of("scale", embed=depth)
    bias = Parameter.of("bias", embed=depth)
    return {"scale": scale} if config.norm == "rms" else {"scale": scale, "bias": bias}


def normalize(config: StackConfig, params: Params, vectors: Array) -> Array:
    """Layer norm: normalises a residual stream, as the config says."""
    if config.norm == "rms":
        return rms_norm(vectors, params["scale"], config.norm_epsilon)
    return layer_norm(vectors, params["scale"], params["bias"], config.norm_epsilon)


def final_norm_parameters(config: StackConfig, depth: int) -> dict[str, Any]:
    """Returns the parameters of the normalisation after a stack, which only pre-norm has."""
    return {"norm": norm_parameters(config, depth)} if config.norm_order == "pre" else {}


def finish(config: StackConfig, params: Params, stream: Array) -> Array:
    """Ends a stack: pre-norm leaves its residual stream to be normalised once."""
    return normalize(config, params["norm"], stream) if config.norm_order == "pre" else stream


def sublayer(
    config: StackConfig,
    norm: Params | None,
    stream: Array,
    function: Callable[[Array], tuple[Array, Any]],
    call: Call,
) -> tuple[Array, Any]:
    """Residual connection: adds what a function makes of the stream to it.

    Args:
      config: The stack.
      norm: Parameters of the normalisation; None where pre-norm has none, for a function that does
        not look at the stream.
      stream: `*B T D`.
      function: From the stream, normalised first with pre-norm, to (what is added, anything else).
      call: Mode and key.

    Returns:
      (stream, anything else).
    """
    is_post = config.norm_order == "post"
    # Post-norm normalises the sum of both, pre-norm only what the function reads.
    is_pre = not is_post and norm is not None
    change, other = function(normalize(config, norm, stream) if is_pre else stream)
    change = drop(change, config.dropout, call)
    stream = stream + change
    return (normalize(config, norm, stream) if is_post else stream), other


def drop(values: Array, rate: float, call: Call) -> Array:
    """Dropout: drops a share of the values."""
    return scale(values, dropout_factors(call, rate, values.shape, values.dtype))


def feed_forward_parameters(config: StackConfig, depth: int) -> dict[str, Parameter]:
    """Returns the parameters of the feed-forward sublayer."""
    width = config.feed_forward_dim
    tree = {
        "hidden": Parameter.of("kernel", embed=depth, feed_forward=width),
        "hidden_bias": Parameter.of("bias", feed_forward=width),
        "output": Parameter.of("kernel", feed_forward=width, embed=depth),
        "output_bias": Parameter.of("bias", embed=depth),
    }
    if not config.use_bias:
        tree = {name: each for name, each in tree.items() if not name.endswith("bias")}
    if config.activation in _GATED:
        tree["gate"] = Parameter.of("kernel", embed=depth, feed_forward=width)
    return tree


def feed_forward(config: StackConfig, params: Params, vectors: Array, call: Call) -> Array:
    """Feed-forward sublayer: transforms each position on its own.

    y = act(x W_1 + b_1) W_2 + b_2             (Vaswani et al. 2017, eq. 2)
    y = (act(x W_1 + b_1) (x V)) W_2 + b_2     (Shazeer 2020, eq. 6, with biases)
    """

    def layer(name: str, vectors: Array) -> Array:
        product, bias = multiply_rows(vectors, params[name]), params.get(f"{name}_bias")
        return product if bias is None else add_bias(product, bias)

    hidden = layer("hidden", vectors)
    hidden = _ACTIVATIONS[config.activation](hidden)
    if "gate" in params:
        hidden = hidden * multiply_rows(vectors, params["gate"])
    hidden = drop(hidden, config.hidden_dropout, call.fold(0))
    return layer("output", hidden)
