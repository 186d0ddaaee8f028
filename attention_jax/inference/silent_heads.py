"""What is lost without a head: the loss while nothing of what the head reads goes on."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.data.tasks import Split
from attention_jax.inference.head_names import modules
from attention_jax.inference.trained import TrainedRun
from attention_jax.layers.attention import Mechanism
from attention_jax.objectives import Objective
from attention_jax.training.measuring.validation import Measurement, batches_of_process
from attention_jax.types import AttentionOutput, BidirectionalModel, Model, Params

Place = tuple[str, int]  # the path of a head's module, and its number in it
_OUTPUT = "output_kernel"


@dataclasses.dataclass(frozen=True)
class _Silenced(Mechanism):
    """A mechanism of heads that split depths, one of which reads nothing.

    Attributes:
      head: Which one.
    """

    head: int = 0

    def attend(self, *arguments: Any, **keywords: Any) -> tuple[AttentionOutput, Any]:
        output, state = super().attend(*arguments, **keywords)
        parts = jnp.split(output.context, self.num_heads, axis=-1)
        parts[self.head] = jnp.zeros_like(parts[self.head])
        return dataclasses.replace(output, context=jnp.concatenate(parts, axis=-1)), state


def losses_without(
    run: TrainedRun, split: Split, cross: Sequence[Place]
) -> Iterator[tuple[Place, float]]:
    """Yields each head and by how much the negative log-likelihood of a token grows without it.

    Args:
      run: A run with heads; of both directions it is the forward model's.
      split: What the loss is measured on.
      cross: The heads that attend to the source. Where they split depths instead of having outputs
        of their own they are silenced in a decoder with a single attention only.
    """
    batches = batches_of_process(split, run.config, run.strategy)
    measure = _measurement(run, run.model)
    whole = measure(run.params, batches)["nll"]
    for path in modules(run.params):
        kernel = functools.reduce(lambda tree, name: tree[name], path, run.params).get(_OUTPUT)
        for head in range(0 if kernel is None else kernel.shape[0]):
            without = _without_output(run.params, (*path, _OUTPUT), head)
            yield ("/".join(path), head), measure(without, batches)["nll"] - whole
    for place in cross if _splits_depths(run.model, len(cross)) else ():
        measure = _measurement(run, _without_context(run.model, place[1]))
        yield place, measure(run.params, batches)["nll"] - whole


def _measurement(run: TrainedRun, model: Model) -> Callable[..., dict[str, float]]:
    return Measurement(model, Objective(run.config.objectives), run.strategy, run.shardings)


def _without_output(params: Params, names: Sequence[str], head: int) -> Any:
    """Returns parameters with which nothing of a head's context goes on."""
    first, *rest = names
    if rest:
        return {**params, first: _without_output(params[first], rest, head)}
    kernel = params[first]
    silent = jax.device_put(kernel.at[head].set(jnp.zeros((), kernel.dtype)), kernel.sharding)
    return {**params, first: silent}


def _splits_depths(model: Any, number: int) -> bool:
    """Tells whether these are all the heads of a decoder, none with an output of its own."""
    if isinstance(model, BidirectionalModel):
        model = model.forward
    mechanism = getattr(model.decoder, "mechanism", None)
    if number < 2 or mechanism is None:
        return False
    return mechanism.num_heads == number and mechanism.parts.heads is None


def _without_context(model: Any, head: int) -> Any:
    """Returns a model of the same parameters whose decoder gets zeros from a head."""
    if isinstance(model, BidirectionalModel):
        return dataclasses.replace(model, forward=_without_context(model.forward, head))
    silenced = _Silenced(**vars(model.decoder.mechanism), head=head)
    decoder = dataclasses.replace(model.decoder, mechanism=silenced)
    return dataclasses.replace(model, decoder=decoder)
