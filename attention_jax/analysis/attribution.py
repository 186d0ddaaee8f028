"""Attribution: how much each source token counts for what a trained run predicts.

Attention says where a decoder looked, an attribution what its prediction depends on. A method is a
file of `analysis/attributions`, which holds `PAPER` and `METHOD`; it is called by its file's name.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.data.text.vocabulary import tokens_in_text
from attention_jax.decoding.forced_decoding import of_pairs
from attention_jax.discovery import Parts
from attention_jax.errors import UserError
from attention_jax.ops.masks import zero_padding
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Array, AttributableModel, Batch, Call, Params, arrays_of

ATTRIBUTIONS = Parts("attention_jax.analysis.attributions", defines="METHOD")


@dataclasses.dataclass(frozen=True)
class AttributionMethod:
    """Attribution method: how much each source token counts for each target token.

    Attributes:
      label: Its name in tables and views.
      compute: (model, parameters, batch) -> `B T S`, signed; anything at padding.
      is_of_attention: Whether a row tells of the attention of a step, so that a word is linked by
        the step whose attention links it; otherwise it tells of the prediction of a word.
    """

    label: str
    compute: Callable[[Any, Params, Batch], Array]
    is_of_attention: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Attribution:
    """Attribution of a given target to its source, token by token.

    Attributes:
      method: Name of the method.
      source_tokens: The S tokens of the source, EOS last.
      tokens: The T tokens of the target, EOS last.
      values: `T S`, what each source token counts for log p of each target token, or for the
        context in which it was predicted; below zero where it speaks against it.
    """

    method: str
    source_tokens: Sequence[str]
    tokens: Sequence[str]
    values: Float[np.ndarray, "T S"]

    @property
    def weights(self) -> Float[np.ndarray, "T S"]:
        """Each token's share of what speaks for the target token, as attention has it."""
        return positive_shares(self.values)


def attribute(run: TrainedRun, split: Split, method: str) -> list[Attribution]:
    """Attribution: computes what source tokens count for the targets of a split.

    Args:
      run: A run that `check_attributable` accepts.
      split: The pairs, whose targets are forced.
      method: Name of the method.

    Returns:
      One for each pair.
    """
    model, compute = run.model, ATTRIBUTIONS.find(method).METHOD.compute

    def named(params: Params, batch: Batch) -> dict[str, Array]:
        return {method: compute(model, params, batch)}

    return [
        Attribution(
            method,
            tokens_in_text(
                split.source_vocabulary, split.source_ids[index], split.sources[index]
            ),
            split.target_tokens(index),
            found[method],
        )
        for index, found in enumerate(of_pairs(run, split, named))
    ]


def check_attributable(
    where: str, run: TrainedRun, split: Split, methods: Sequence[str]
) -> None:
    """Checks that predictions of a run can be attributed to its sources; computes nothing.

    Args:
      where: The flag or the function that asks.
      run: The run.
      split: Pairs of its task.
      methods: Names of the methods.

    Raises:
      UserError: If a method is unknown, sources are no text, or the model does not fit.
    """
    check_methods(where, methods)
    texts = {field.name for field in run.task.input_fields if field.is_text}
    model = run.model
    if not isinstance(model, AttributableModel) or model.begins_from not in texts:
        raise UserError(
            f"{where}: expected a model whose source is a sequence of tokens, found another"
        )
    batch = next(iter(make_eval_batches(split.select([0]), run.config.data)))
    for name in methods:
        compute = functools.partial(ATTRIBUTIONS.find(name).METHOD.compute, model)
        jax.eval_shape(compute, run.params, batch)  # which raises what the model does not have


def check_methods(where: str, methods: Sequence[str]) -> None:
    """Raises UserError, which names the flag or function that asks, if a method is unknown."""
    for name in methods:
        if name not in ATTRIBUTIONS:
            expected = ", ".join(ATTRIBUTIONS.names())
            raise UserError(f"{where}: expected {expected}, found {name!r}")


def prediction(
    model: AttributableModel, params: Params, batch: Batch
) -> tuple[Callable[[Any], Array], dict[str, Array]]:
    """Prediction as a function of embedded sources, and those of a batch, for `ops.attribution`.

      f(e)[t] = log p(y_t | y_<t, e)

    Where a target is impossible whatever is embedded, f is 0: nothing counts for it.
    """
    mask = jnp.asarray(batch[arrays_of(model.begins_from)[1]])
    embedded = {
        path: zero_padding(vectors, mask)  # derivatives are taken along them
        for path, vectors in model.embed(params, batch).items()
    }

    def log_prob(embedded: Any) -> Array:
        output = model.apply(params, batch, Call(embedded=embedded))
        found = output.predictions.log_prob(jnp.asarray(batch["target"]))
        return jnp.where(jnp.isfinite(found), found, 0.0)

    return log_prob, embedded


def positive_shares(values: Float[np.ndarray, "T S"]) -> Float[np.ndarray, "T S"]:
    """Attribution as weights: returns the shares of what is positive, row by row.

      weights[t, s] = max(A[t, s], 0) / sum_s' max(A[t, s'], 0)

    A row of which nothing is positive is zero.
    """
    positive = np.maximum(np.asarray(values, np.float64), 0.0)
    total = positive.sum(axis=-1, keepdims=True)
    return np.divide(positive, total, out=np.zeros_like(positive), where=total > 0)
