"""Train step with gradient accumulation, and evaluation step: pure functions, to be jitted."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from attention_jax.objectives import Objective, Pairs
from attention_jax.types import Batch, Call, Model, ModelOutput, Params
from attention_jax.updates.averaging import Averaging, update_average
from attention_jax.updates.freezing import Freezing
from attention_jax.updates.gradient_exchange import GradientExchange
from attention_jax.updates.gradient_spikes import add_norm, is_spike
from attention_jax.updates.schedules import Schedule
from attention_jax.updates.state import TrainState

TrainStep = Callable[[TrainState, Batch, Array], tuple[TrainState, Pairs]]
EvalStep = Callable[[Params, Batch], Pairs]
Measure = Callable[[ModelOutput, Batch], Pairs]
# The fields of the state that a skipped update leaves untouched.
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
    """Makes the train step: gradient, accumulated over parts of a batch, and one optimiser update.

    Args:
      model: What to train.
      objective: The loss, from `build_objective`.
      optimizer: From `build_optimizer`.
      schedule: The learning rate, from `build_schedule`.
      averaging: Whether a moving average is kept; the same as for `start_state`.
      accumulate_steps: Parts into which a batch is split to save memory. The gradient is that of
        the whole batch, however many tokens each part has. The number of rows must be a multiple
        of it; see `devices.pad_rows`.
      freezing: Which parameters keep their values, and at which steps.
      exchange: What devices communicate, if each runs this on its own rows; see `Strategy`.
      max_gradient_ratio: r of `gradient_spikes`; the same as for `start_state`.

    Returns:
      `train_step(state, batch, rng) -> (state, metrics)`. `rng` is the same key at every step:
      the step's own is `fold_in(rng, state.step)`. The metrics are (sum, count) pairs: those of
      the objective, `gradient_norm` (before clipping), `learning_rate` and `skipped`.

      If the loss or the gradient is not finite, or the gradient is a spike, then parameters,
      optimiser and average keep their bits, the step counts as skipped, and its other metrics have
      a count of 0. The norm of a spike is the metric `skipped_norm`.
    """

    def train_step(state: TrainState, batch: Batch, rng: Array) -> tuple[TrainState, Pairs]:
        rng = exchange.key(jax.random.fold_in(rng, state.step))
        loss, gradient, metrics = _gradient(
            model, objective, state, batch, rng, accumulate_steps, exchange
        )
        # Before the norm is taken: what is frozen must not make others be clipped.
        gradient = freezing.hold(state.step, gradient, optax.tree.zeros_like(gradient))
        norm = optax.tree.norm(gradient)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        spike = finite & is_spike(state.norms, norm, max_gradient_ratio)
        good, made = finite & ~spike, state.step - state.skipped
        learning_rate = schedule(state.step, state.plateau.scale)  # by steps, skipped ones too
        kept = tuple(getattr(state, field) for field in _UPDATED)

        def update(kept: tuple) -> tuple:
            params, optimizer_state, average, norms, carried = kept
            updates, optimizer_state = optimizer.update(
                gradient, optimizer_state, params, learning_rate=learning_rate
            )
            # Again after the update, for momentum and weight decay move a parameter of gradient
            # zero.
            params = freezing.hold(state.step, optax.apply_updates(params, updates), params)
            average = update_average(averaging, average, params, made)
            norms, carried = add_norm(norms, norm, made), objective.follow(carried, metrics)
            return params, optimizer_state, average, norms, carried

        # `cond` and not `where`: with both results at hand, XLA would copy the optimiser's state.
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
    """Adds the metric `skipped`; all other metrics of a skipped update get sum and count 0."""
    one = jnp.ones(())
    metrics = _where(good, metrics, jax.tree.map(jnp.zeros_like, metrics))
    return {**metrics, "skipped": (one - good, one)}


def make_eval_step(
    model: Model,
    objective: Objective,
    exchange: GradientExchange = GradientExchange(),
    call: Call = Call(),
    measures: Sequence[Measure] = (),
) -> EvalStep:
    """Makes the evaluation step: the metrics of a batch under teacher forcing.

    Args:
      model: What to measure.
      objective: The loss.
      exchange: As for `make_train_step`.
      call: How the model is called, for example with some heads masked.
      measures: What else is measured.

    Returns:
      `eval_step(params, batch) -> metrics`, (sum, count) pairs: the objective's and the measures'.
    """

    def eval_step(params: Params, batch: Batch) -> Pairs:
        output = model.apply(exchange.gather(params), batch, call)
        found = [objective(output, batch)[1], *(measure(output, batch) for measure in measures)]
        return exchange.add_up({name: pair for pairs in found for name, pair in pairs.items()})

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
    """Gradient accumulation: returns the loss of a batch, its gradient and its metrics."""
    # Sums are divided by the whole batch's counts, so that the parts' losses add up to its loss.
    counts = exchange.add_up(objective.counts(batch))
    params = exchange.gather(state.params)

    def part_loss(params: Params, part: Batch, rng: Array) -> tuple[Array, Pairs]:
        output = model.apply(params, part, Call(True, rng, training_step=state.step))
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

    # The gradient is carried and the metrics are stacked; one part's activations live at a time.
    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, state.params))
    (loss, gradient), metrics = jax.lax.scan(
        add_part, zero, (_split(batch, parts), jnp.arange(parts))
    )
    metrics = jax.tree.map(lambda leaf: leaf.sum(axis=0), metrics)  # parts * -> *
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
        # B ... -> B/P P ... -> P B/P ...
        return jnp.swapaxes(leaf.reshape(rows // parts, parts, *leaf.shape[1:]), 0, 1)

    return jax.tree.map(split, dict(batch))


def _where(condition: Bool[Array, ""], yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
