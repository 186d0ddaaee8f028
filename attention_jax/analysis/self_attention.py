"""What the positions of a source, and of a known target, attend to on their own side."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.evaluation.head_statistics import Heads, Reach
from attention_jax.layers.attention import Mechanism
from attention_jax.ops.normalizers import softmax_normalizer
from attention_jax.ops.summation import sum_type
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Array, AttentionOutput, Batch, BidirectionalModel, Memory, Params

# The sides of a model, their mechanisms of self-attention, and what tells their lengths.
_SIDES = (("encoder", "mechanism", "source_mask"), ("decoder", "past", "target_mask"))


class Attended(NamedTuple):
    """What the positions of one sequence attend to.

    Attributes:
      weights: Of each head, without padding.
      reach: How many positions each may attend to: those before it, or those in a window.
    """

    weights: Heads
    reach: Reach


@dataclasses.dataclass(frozen=True)
class _Recorded(Mechanism):
    """A mechanism that keeps what each of its calls attends to, which are the layers in order.

    Attributes:
      kept: Weights `B T H S` and reach `B T H` of each call; tracers while a model is traced.
    """

    kept: list[tuple[Array, Array]] = dataclasses.field(default_factory=list, compare=False)

    def attend(self, *arguments: Any, **keywords: Any) -> tuple[AttentionOutput, Any]:
        output, state = super().attend(*arguments, **keywords)
        # Where all scores are alike, softmax gives weight to all that may be attended to.
        spec = dataclasses.replace(
            self.parts.spec, score=_no_score, normalizer=softmax_normalizer, reads=(), trackers=()
        )
        even = dataclasses.replace(self, parts=self.parts._replace(spec=spec))
        alike, _ = super(_Recorded, even).attend(*arguments, **keywords)
        self.kept.append((_of_heads(output), (_of_heads(alike) > 0).sum(-1)))
        return output, state


def _of_heads(output: AttentionOutput) -> Array:
    return output.aux.get("head_weights", output.weights[..., None, :])


def _no_score(params: Params, query: Array, memory: Memory, *unused: Any) -> Array:
    return jnp.zeros((*query.shape[:-1], memory.mask.shape[-1]), sum_type(query))


def self_attention(run: TrainedRun, split: Split) -> dict[str, list[Attended]]:
    """Returns the self-attention of every layer of a Transformer's sides.

    Args:
      run: A trained model.
      split: Its sources and targets; targets are attended to as they are written by force.

    Returns:
      By the path of the layer's module, for each pair weights `H N N` and reach `H N`; empty where
      positions do not attend to one another.
    """
    is_both = isinstance(run.model, BidirectionalModel)
    model = _forward(run)
    params = jax.device_put(jax.device_get(run.params["forward"] if is_both else run.params))
    prefix = "forward/" if is_both else ""
    sides = _sides(model)
    if not sides:
        return {}
    attend = jax.jit(lambda params, batch: _weights(model, sides, params, batch))
    found: dict[str, dict[int, Attended]] = {}
    for batch in make_eval_batches(split, run.config.data):
        arrays = jax.device_get(attend(params, batch))
        for part, _, mask in sides:
            for layer, kept in enumerate(arrays[part]):
                pairs = found.setdefault(f"{prefix}{part}/layer_{layer}/self_attention", {})
                pairs |= _cut(*kept, batch[mask].sum(-1), batch["index"])
    return {layer: [pairs[index] for index in sorted(pairs)] for layer, pairs in found.items()}


def has_self_heads(run: TrainedRun) -> bool:
    """Tells whether positions attend to one another with several heads on some side."""
    model = _forward(run)
    mechanisms = [getattr(getattr(model, part), field) for part, field, _ in _sides(model)]
    return any(mechanism.num_heads > 1 for mechanism in mechanisms)


def _forward(run: TrainedRun) -> Any:
    return run.model.forward if isinstance(run.model, BidirectionalModel) else run.model


def _sides(model: Any) -> list[tuple[str, str, str]]:
    return [side for side in _SIDES if _attends(model, side[0], side[1])]


def _attends(model: Any, part: str, field: str) -> bool:
    """Tells whether a side is a stack whose layers call a mechanism of self-attention."""
    side = getattr(model, part, None)  # a language model has no encoder
    if side is None:
        return False
    parameters = side.parameters.get("layer_0", {})
    is_stack = isinstance(parameters, dict) and "self_attention" in parameters
    mechanism = getattr(side, field, None)
    return is_stack and isinstance(mechanism, Mechanism) and mechanism.parts.is_alignment


def _weights(
    model: Any, sides: list[Any], params: Params, batch: Batch
) -> dict[str, list[tuple[Array, Array]]]:
    kept: dict[str, list[tuple[Array, Array]]] = {part: [] for part, _, _ in sides}
    for part, field, _ in sides:
        side = getattr(model, part)
        recorded = _Recorded(**vars(getattr(side, field)), kept=kept[part])
        model = with_side(model, part, dataclasses.replace(side, **{field: recorded}))
    model.apply(params, batch)
    return kept


def with_side(model: Any, part: str, side: Any) -> Any:
    """Returns a model with another `encoder` or `decoder` of the same parameters."""
    if part == "encoder":
        return model.with_encoder(side)
    return dataclasses.replace(model, **{part: side})


def _cut(
    weights: np.ndarray, reach: np.ndarray, lengths: np.ndarray, indices: np.ndarray
) -> dict[int, Attended]:
    """Takes padding and filler rows away from `B N H N` and `B N H`."""
    return {
        int(index): Attended(
            np.moveaxis(weights[row], 1, 0)[:, : lengths[row], : lengths[row]],
            reach[row, : lengths[row]].T,
        )
        for row, index in enumerate(indices)
        if index >= 0
    }
