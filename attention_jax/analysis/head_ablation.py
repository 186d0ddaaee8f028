"""What is lost without a head: the loss while nothing of what the head reads goes on."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.analysis.head_names import layer_number, modules
from attention_jax.analysis.self_attention import with_side
from attention_jax.data.examples import Split
from attention_jax.decoding.teacher_forcing import TeacherForcing, batches_of_process
from attention_jax.layers.attention import Mechanism
from attention_jax.objectives import Objective
from attention_jax.runs.load import TrainedRun
from attention_jax.types import AttentionOutput, BidirectionalModel, Model, Params

Place = tuple[str, int]  # the path of a head's module, and its number in it
_OUTPUT = "output_kernel"


@dataclasses.dataclass(frozen=True)
class _Silenced(Mechanism):
    """A mechanism of heads that split depths, one of which reads nothing in one layer.

    Attributes:
      head: Which one.
      layer: In which of the layers that share the mechanism.
      num_layers: How many they are; a model calls it for one after the other.
      calls: How often it was called while models were traced, as its length.
    """

    head: int = 0
    layer: int = 0
    num_layers: int = 1
    calls: list[None] = dataclasses.field(default_factory=list, compare=False)

    def attend(self, *arguments: Any, **keywords: Any) -> tuple[AttentionOutput, Any]:
        output, state = super().attend(*arguments, **keywords)
        self.calls.append(None)
        if (len(self.calls) - 1) % self.num_layers != self.layer:
            return output, state
        parts = jnp.split(output.context, self.num_heads, axis=-1)
        parts[self.head] = jnp.zeros_like(parts[self.head])
        return dataclasses.replace(output, context=jnp.concatenate(parts, axis=-1)), state


def losses_without(
    run: TrainedRun, split: Split, places: Sequence[Place]
) -> Iterator[tuple[Place, float]]:
    """Yields each head and by how much the negative log-likelihood of a token grows without it.

    Args:
      run: A run with heads; of both directions it is the forward model's.
      split: What the loss is measured on.
      places: All heads. Those that split depths, instead of having outputs of their own, are
        silenced where their mechanism is called.
    """
    batches = batches_of_process(split, run.config, run.strategy)
    measure = _measurement(run, run.model)
    whole = measure(run.params, batches)["nll"]
    known = set()
    for path in modules(run.params):
        kernel = functools.reduce(lambda tree, name: tree[name], path, run.params).get(_OUTPUT)
        for head in range(0 if kernel is None else kernel.shape[0]):
            without = _without_output(run.params, (*path, _OUTPUT), head)
            known.add(place := ("/".join(path), head))
            yield place, measure(without, batches)["nll"] - whole
    for place in places:
        model = None if place in known else _without_context(run.model, *place)
        if model is not None:
            yield place, _measurement(run, model)(run.params, batches)["nll"] - whole


def _measurement(run: TrainedRun, model: Model) -> Callable[..., dict[str, float]]:
    return TeacherForcing(model, Objective(run.config.objectives), run.strategy, run.shardings)


def _without_output(params: Params, names: Sequence[str], head: int) -> Any:
    """Returns parameters with which nothing of a head's context goes on."""
    first, *rest = names
    if rest:
        return {**params, first: _without_output(params[first], rest, head)}
    kernel = params[first]
    silent = jax.device_put(kernel.at[head].set(jnp.zeros((), kernel.dtype)), kernel.sharding)
    return {**params, first: silent}


def _without_context(model: Any, layer: str, head: int) -> Any:
    """Returns a model of the same parameters that gets zeros from a head, where heads split depths.

    Args:
      model: The model.
      layer: The path of the head's module.
      head: Its number there.

    Returns:
      The model, or None where heads do not split depths.
    """
    if isinstance(model, BidirectionalModel):
        forward = _without_context(model.forward, layer, head)
        return forward and dataclasses.replace(model, forward=forward)
    is_encoder = "encoder" in layer.split("/")
    part, field = "encoder" if is_encoder else "decoder", "mechanism"
    if not is_encoder and layer.endswith("self_attention"):
        field = "past"
    side = getattr(model, part)
    mechanism = getattr(side, field)
    if mechanism.num_heads < 2 or mechanism.parts.heads is not None:
        return None
    number = layer_number(layer)
    layers = {} if number is None else {"layer": number, "num_layers": side.config.num_layers}
    silenced = _Silenced(**vars(mechanism), head=head, **layers)
    return with_side(model, part, dataclasses.replace(side, **{field: silenced}))
