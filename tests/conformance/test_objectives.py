"""What holds for every objective, whatever it computes; `test_rows_alone` has rows alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives.compose import OBJECTIVES
from attention_jax.objectives.term import fields_of
from tests.conformance.test_rows_alone import batch, objective_case, term_and_kind
from tests.models import test_rationalizer
from tests.parameters import drawn
from tests.quick import quick_jit

NAMES = OBJECTIVES.names()


@dataclasses.dataclass(frozen=True, eq=False)
class ObjectiveCase:
    """An objective, and what a model that provides what it needs returns for a batch."""

    term: object
    given: dict
    output: object

    @functools.cached_property
    def run(self):
        """Compiled: (floats of the output, batch) -> (total, gradient of these floats)."""
        leaves, structure = jax.tree.flatten(self.output)

        def total(floats, given):
            mixed = [floats.get(place, leaf) for place, leaf in enumerate(leaves)]
            return self.term.total(structure.unflatten(mixed), given)

        return quick_jit(jax.value_and_grad(total))

    def floats(self, output=None):
        """Returns the floats of the output by their places among its leaves."""
        leaves = jax.tree.leaves(self.output if output is None else output)
        is_float = lambda leaf: jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)  # noqa: E731
        return {place: leaf for place, leaf in enumerate(leaves) if is_float(leaf)}

    def with_weights(self, change):
        """Returns the floats with other weights, of both directions where there are two."""
        return self.floats(_reweighted(self.output, change))

    def of_rows(self, is_row):
        """Returns the batch with all other rows as padding."""
        masks = {
            side: self.given[side] & is_row.reshape(-1, *(1,) * (self.given[side].ndim - 1))
            for side in ("source_mask", "target_mask")
        }
        return {**self.given, **masks}


def _reweighted(output, change):
    attention = output.attention
    if attention is not None:
        attention = dataclasses.replace(attention, weights=change(attention.weights))
    outputs = dict(output.outputs)
    if "reverse" in outputs:
        outputs["reverse"] = _reweighted(outputs["reverse"], change)
    return dataclasses.replace(output, attention=attention, outputs=outputs)


@functools.cache
def objective(name):
    """The case of an objective, with the defaults of its fields."""
    term, kind = term_and_kind(name)
    if kind == "selection":
        model, given = test_rationalizer.model(), test_rationalizer.batch()
        return ObjectiveCase(term, given, quick_jit(model.apply)(drawn(model, 3), given))
    missing = fields_of(term) - set(batch())
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)} in its batches, which the battery has not")
    return ObjectiveCase(term, batch(), objective_case(kind)[1])


@functools.cache
def computed(name):
    """What an objective counts in the batch and makes of it."""
    case = objective(name)
    return case.term.count(case.given), case.run(case.floats(), case.given)[0]


def check_finite(total, gradient):
    for what, found in (("loss", total), ("gradients", gradient)):
        numbers = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])
        wrong = numbers[~np.isfinite(numbers)]
        assert not wrong.size, f"expected finite {what}, found {wrong[0]}"


@pytest.mark.parametrize("name", NAMES)
def test_objective_is_built(name):
    """Whatever its own file raises, the other rules are not tried on one that is not."""
    for method, number in zip(("count", "total"), computed(name), strict=True):
        assert np.shape(number) == (), f"expected one number of {method}, found {np.shape(number)}"


@pytest.mark.parametrize("name", NAMES)
def test_zero_weights_give_finite_gradients(name):
    case = objective(name)
    check_finite(*case.run(case.with_weights(jnp.zeros_like), case.given))


@pytest.mark.parametrize("name", NAMES)
def test_padding_adds_nothing_and_gives_finite_gradients(name):
    case = objective(name)
    rows = case.given["target_mask"].shape[0]
    total, gradient = case.run(case.floats(), case.of_rows(jnp.zeros(rows, bool)))
    assert total == 0, f"expected a loss of 0 where all is padding, found {total}"
    check_finite(total, gradient)
    assert not any(np.asarray(leaf).any() for leaf in gradient.values()), "found gradients"
    # NaN in the weights of one row, which is padding.
    is_row = jnp.arange(rows) > 0
    junk = case.with_weights(lambda weights: weights.at[0].set(jnp.nan))
    found, gradient = case.run(junk, case.of_rows(is_row))
    expected, _ = case.run(case.floats(), case.of_rows(is_row))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    check_finite(found, gradient)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_sum_over_what_it_counts(name):
    case = objective(name)
    rows = case.given["target_mask"].shape[0]
    count, total = case.term.count(case.given), case.run(case.floats(), case.given)[0]
    alone = [case.of_rows(jnp.arange(rows) == row) for row in range(rows)]
    totals = [case.run(case.floats(), given)[0] for given in alone]
    counts = [case.term.count(given) for given in alone]
    np.testing.assert_allclose(sum(totals), total, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sum(counts), count)
    assert count > 0 and case.term.count(case.of_rows(jnp.zeros(rows, bool))) == 0
