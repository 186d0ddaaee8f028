"""Train step with gradient accumulation, and evaluation step: pure functions to be jitted."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from attention_jax.objectives import Objective, Pairs
from attention_jax.types import Batch, Call, Model, Params
from attention_jax.updates.averaging import Averaging, update_average
from attention_jax.updates.freezing import Freezing
from attention_jax.updates.gradient_exchange import GradientExchange
from attention_jax.updates.gradient_spikes import add_norm, is_spike
from attention_jax.updates.schedules import Schedule
from attention_jax.updates.state import TrainState

TrainStep = Callable[[TrainState, Batch, Array], tuple[TrainState, Pairs]]
EvalStep = Callable[[Params, Batch], Pairs]
# What a skipped update leaves as it is.
_UPDATED = ("params", "optimizer", "average", "norms", "carried")


def make_train_step(
    model: Model,
    objective: Objective,
    optimizer: optax.GradientTransformationExtraArgs,
    schedule: Schedule,
    *,
    averaging: Averaging,
    accumulate_steps: int = 1,
    freezing: Freezing = Freezing(),
    exchange: GradientExchange = GradientExchange(),
    max_gradient_ratio: float = 0.0,
) -> TrainStep:
    """Makes the function that takes one optimiser step.

    Args:
      model: What to train.
      objective: The loss, from `build_objective`.
      optimizer: From `build_optimizer`.
      schedule: The learning rate, from `build_schedule`.
      averaging: Whether a moving average is kept; that of `start_state`.
      accumulate_steps: Parts into which a batch is split to save memory. The gradient is that
        of the whole batch, whatever the parts' numbers of tokens. The number of rows must be a
        multiple of it; see `sharding.pad_rows`.
      freezing: Which parameters keep their values, and at which steps.
      exchange: What devices tell one another, if each runs this with its rows; see `Strategy`.
      max_gradient_ratio: How many times the median norm a gradient may have; see `start_state`.

    Returns:
      `train_step(state, batch, rng) -> (state, metrics)`. `rng` is the same key at every step:
      the step's own is `fold_in(rng, state.step)`. The metrics are (sum, count) pairs: those of
      the objective, `gradient_norm` (before clipping), `learning_rate` and `skipped`.

      Where loss or gradient are not finite, or the gradient stands out, parameters, optimiser and
      average keep their bits, the step counts as skipped, and its other metrics count nothing. The
      norm of one that stood out is `skipped_norm`.
    """

    def train_step(state: TrainState, batch: Batch, rng: Array) -> tuple[TrainState, Pairs]:
        rng = exchange.key(jax.random.fold_in(rng, state.step))
        loss, gradient, metrics = _gradient(
            model, objective, state, batch, rng, accumulate_steps, exchange
        )
        gradient = freezing.hold(state.step, gradient, optax.tree.zeros_like(gradient))
        norm = optax.tree.norm(gradient)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        spike = finite & is_spike(state.norms, norm, max_gradient_ratio)
        good, made = finite & ~spike, state.step - state.skipped
        learning_rate = schedule(state.step, state.plateau.scale)
        kept = tuple(getattr(state, field) for field in _UPDATED)

        def update(kept: tuple) -> tuple:
            params, optimizer_state, average, norms, carried = kept
            updates, optimizer_state = optimizer.update(
                gradient, optimizer_state, params, learning_rate=learning_rate
            )
            params = freezing.hold(state.step, optax.apply_updates(params, updates), params)
            average = update_average(averaging, average, params, made)
            norms, carried = add_norm(norms, norm, made), objective.follow(carried, metrics)
            return params, optimizer_state, average, norms, carried

        # A branch and not a selection: where both are at hand, XLA copies the optimiser's state.
        kept = jax.lax.cond(good, update, lambda kept: kept, kept)
        new_state = dataclasses.replace(
            state,
            **dict(zip(_UPDATED, kept, strict=True)),
            step=state.step + 1,
            skipped=state.skipped + ~good,
            skipped_in_a_row=jnp.where(good, 0, state.skipped_in_a_row + 1),
        )
        one = jnp.ones(())
        metrics |= {"gradient_norm": (norm, one), "learning_rate": (learning_rate, one)}
        metrics = _of_update(metrics, good)
        if state.norms is not None:
            metrics["skipped_norm"] = (jnp.where(spike, norm, 0.0), one * spike)
        return new_state, metrics

    return train_step


def _of_update(metrics: Pairs, good: Bool[Array, ""]) -> Pairs:
    """Says of an update whether it was skipped; of one that was, nothing else counts."""
    one = jnp.ones(())
    metrics = _where(good, metrics, jax.tree.map(jnp.zeros_like, metrics))
    return {**metrics, "skipped": (one - good, one)}


def make_eval_step(
    model: Model,
    objective: Objective,
    exchange: GradientExchange = GradientExchange(),
    call: Call = Call(),
) -> EvalStep:
    """Makes the function that measures a batch with known targets.

    Args:
      model: What to measure.
      objective: The loss.
      exchange: As for `make_train_step`.
      call: How the model is called, such as with masks.

    Returns:
      `eval_step(params, batch) -> metrics`, the objective's (sum, count) pairs.
    """

    def eval_step(params: Params, batch: Batch) -> Pairs:
        output = model.apply(exchange.gather(params), batch, call)
        return exchange.add_up(objective(output, batch)[1])

    return eval_step


def _gradient(
    model: Model,
    objective: Objective,
    state: TrainState,
    batch: Batch,
    rng: Array,
    parts: int,
    exchange: GradientExchange,
) -> tuple[Float[Array, ""], Params, Pairs]:
    """Returns the loss of a batch, its gradient and its metrics."""
    # Sums are divided by the whole batch's counts, so that the parts' losses add up to its loss.
    counts = exchange.add_up(objective.counts(batch))
    params = exchange.gather(state.params)

    def part_loss(params: Params, part: Batch, rng: Array) -> tuple[Array, Pairs]:
        output = model.apply(params, part, Call(train=True, rng=rng))
        return objective(output, part, state.step, counts, state.carried)

    value_and_gradient = jax.value_and_grad(part_loss, has_aux=True)
    if parts == 1:
        (loss, metrics), gradient = value_and_gradient(params, batch, rng)
        return exchange.add_up((loss, exchange.scatter(gradient), metrics))

    def add_part(total: tuple[Array, Params], inputs: tuple[Batch, Array]) -> tuple:
        part, index = inputs
        (loss, metrics), gradient = value_and_gradient(
            params, part, jax.random.fold_in(rng, index)
        )
        return jax.tree.map(jnp.add, total, (loss, exchange.scatter(gradient))), metrics

    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, state.params))
    (loss, gradient), metrics = jax.lax.scan(
        add_part, zero, (_split(batch, parts), jnp.arange(parts))
    )
    metrics = jax.tree.map(lambda leaf: leaf.sum(axis=0), metrics)
    return exchange.add_up((loss, gradient, metrics))


def _split(batch: Batch, parts: int) -> Batch:
    """Deals the rows out to `parts` parts, on a new leading axis.

    Part p gets the rows p, p + parts, ...: each device that holds a slice of the rows then holds
    a slice of every part, and nothing moves between devices.
    """

    def split(leaf: Array) -> Array:
        rows = leaf.shape[0]
        if rows % parts:
            raise ValueError(
                f"expected a multiple of {parts} rows, one for each part, found {rows}"
            )
        return jnp.swapaxes(leaf.reshape(rows // parts, parts, *leaf.shape[1:]), 0, 1)

    return jax.tree.map(split, dict(batch))


def _where(condition: Bool[Array, ""], yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
