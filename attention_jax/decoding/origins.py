"""Origins of outputs: which of their tokens were generated, and which copied from where.

A model that copies can write a token in several ways at once. Its outputs are decoded again as
known targets, which tells how much each way has of a token's probability.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attention_jax.data.examples import Split
from attention_jax.data.field import TARGET
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.data.task import further_fields
from attention_jax.errors import UserError
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Batch, Model, Params


@dataclasses.dataclass(frozen=True, eq=False)
class Origins:
    """Origins of the tokens of an output, EOS last on both sides; each row adds up to one.

    Attributes:
      generated: `T`, the share of a token's probability that comes from the vocabulary.
      copied: `T S`, the shares that come from each position of the source.
    """

    generated: Float[np.ndarray, " T"]
    copied: Float[np.ndarray, "T S"]

    def __str__(self) -> str:
        """A word for each token but EOS: `g:SHARE`, or `cPOSITION:SHARE` of all that is copied.

        The way with the larger share is named, and of positions the one with the largest.
        """
        shares = self.copied.sum(axis=-1)
        words = [
            f"c{int(of_slots.argmax())}:{share:.2f}" if share > generated else f"g:{generated:.2f}"
            for generated, share, of_slots in zip(self.generated, shares, self.copied, strict=True)
        ]
        return " ".join(words[:-1])


def check_copying(run: TrainedRun, flag: str) -> None:
    """Raises `UserError`, naming the flag, if a run's model does not copy."""
    if not run.tells_origins:
        raise UserError(
            f"--{flag}: expected a model that copies, as with config.model.readout.name="
            "'pointer_generator', found one that only generates"
        )


def written_outputs(
    run: TrainedRun, sources: Sequence[str], outputs: Sequence[np.ndarray]
) -> Split:
    """Makes a split of which outputs of a search are the known targets.

    Args:
      run: The run that has written them.
      sources: Their sources, in the form of the data.
      outputs: Their ids, ending in EOS.
    """
    fields = (*run.task.input_fields, TARGET, *further_fields(run.task, run.model.fields))
    fields = tuple(field for field in fields if field.name not in run.unread_sources)
    nothing = [""] * len(sources)
    split = Split(
        sources=list(sources), targets=nothing, references=[[text] for text in nothing],
        numbers=[*range(len(sources))], name="outputs", source_vocabulary=run.source_vocabulary,
        target_vocabulary=run.target_vocabulary, fields=fields,
    )  # fmt: skip
    return split.with_target_ids(outputs)


def origins(run: TrainedRun, split: Split) -> list[Origins]:
    """Tells the origins of the targets of a split, as a run's model would write them."""
    # Copied to this process's own devices: shared arrays would wait for processes not taking part.
    params = jax.device_put(jax.device_get(run.params))
    found: dict[int, Origins] = {}
    tell = jax.jit(functools.partial(_shares, run.model))
    for batch in make_eval_batches(split, run.config.data):
        generated, copied = jax.device_get(tell(params, batch))
        lengths = batch["target_mask"].sum(-1), batch[f"{run.model.begins_from}_mask"].sum(-1)
        for row, index in enumerate(batch["index"]):
            if index >= 0:
                written, read = (int(each[row]) for each in lengths)
                found[int(index)] = Origins(generated[row, :written], copied[row, :written, :read])
    return [found[index] for index in range(len(split))]


def _shares(model: Model, params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """Returns the shares of each way, `B T` and `B T S`; NaN nowhere, padding included."""
    predictions = model.apply(params, batch).predictions
    generated, copied = predictions.origins(jnp.asarray(batch["target"]))
    total = generated + copied.sum(-1)
    total = jnp.where(total > 0, total, 1.0)
    return generated / total, copied / total[..., None]
