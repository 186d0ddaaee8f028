"""REINFORCE: sampled attention learns from how likely the target became with each sample."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.metrics import Pairs
from attention_jax.objectives.nll import sentence_count, token_count
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.types import Batch, ModelOutput

PAPER = (
    "Xu et al. (2015), section 4.1; Williams (1992) for REINFORCE; Mnih and Gregor (2014) for a "
    "learnt baseline"
)
_DECAY = 0.9


@dataclasses.dataclass(frozen=True)
class Term:
    """REINFORCE, the objective `reinforce`: config and computation.

    loss = -sum_t (R_t - n_t b) log weights[t, s_t], where the factor in brackets is held constant

    over the real target tokens whose slot s_t was sampled; R_t is the return of the sample, a sum
    or mean of log p(y_t' | y_<t', s), n_t the number of terms in that sum, and b the baseline, a
    log-likelihood of one token. With weight 1, with `nll` beside it and one `reduction` in both,
    the gradient is in expectation that of -E_s[log p(y | s)], the paper's lower bound, for the
    returns `sequence` and `to_go`, whatever b is.

    Attributes:
      weight: Factor of this term in the loss: lambda_r of the paper, 0.1 in the authors' program.
      schedule: How the weight changes during training.
      returns: What a sample is rewarded by: the log-likelihood of the whole `sequence` (the paper),
        of the tokens from its own on (`to_go`, of lower variance, for it has no effect on earlier
        ones), or the `mean` over the sequence (the program).
      baseline: b: a `moving_average` of the log-likelihood per token of what was sampled, carried
        from step to step; `learnt`, predicted for each source by `model.predictors.baseline`, whose
        squared error is added to the loss; or `none`.
      decay: Share of the moving average that is kept at each step.
      reduction: Divide the sum by the number of target tokens (`per_token`) or of sentences
        (`per_sentence`), as in `nll`.

    Deviations:
      The paper's baseline averages the log-likelihood of captions, the program's the mean over
      their tokens. Here the average is per token, times the number of tokens in the return, which
      is the same for captions of one length. Batches that read the expectation do not enter it.
      The bonus for entropy is the objective `attention_entropy`.
    """

    weight: float = setting(0.1, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    returns: str = setting("sequence", choices=("sequence", "to_go", "mean"))
    baseline: str = setting("moving_average", choices=("moving_average", "learnt", "none"))
    decay: float = setting(_DECAY, at_least=0.0, below=1.0)
    reduction: str = setting("per_token", choices=("per_token", "per_sentence"))
    may_need: ClassVar[tuple[str, ...]] = ("sample_log_prob", "baseline")

    def __post_init__(self) -> None:
        """Rejects a field that would change nothing."""
        if self.decay != _DECAY and self.baseline != "moving_average":
            raise ValueError(
                f"decay: expected only beside baseline='moving_average', found {self.decay} beside "
                f"{self.baseline!r}"
            )

    @property
    def needs(self) -> dict[str, str]:
        """Attention that is sampled, and a predictor for a learnt baseline."""
        sampled = "config.model.attention.name='hard' with the estimator 'reinforce' beside it"
        learnt = {"baseline": "config.model.predictors.baseline beside it"}
        return {"sample_log_prob": sampled, **(learnt if self.baseline == "learnt" else {})}

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens, or of real sentences."""
        return token_count(batch) if self.reduction == "per_token" else sentence_count(batch)

    def total(
        self, output: ModelOutput, batch: Batch, carried: Any = None
    ) -> Float[Array, ""]:
        """Returns the loss summed over the sampled steps, with the baseline's error if it learns.

        Its value says nothing: the gradient is what is wanted.
        """
        is_sampled = _sampled(output, batch)
        log_prob = jnp.where(is_sampled, output.attention.aux["sample_log_prob"], 0.0)
        # The reward is a number here: only log p of the sample has a gradient.
        advantage = jax.lax.stop_gradient(self.advantage(output, batch, carried))
        total = -jnp.sum(advantage * log_prob)
        if self.baseline != "learnt":
            return total
        mean = _over_tokens(_log_likelihoods(output, batch), batch).sum(-1)
        # Of the log-likelihood of one token: the number of tokens comes in with `_returned`.
        error = jnp.square(mean - output.outputs["baseline"])
        return total + jnp.sum(jnp.where(is_sampled.any(-1), error, 0.0))

    def advantage(
        self, output: ModelOutput, batch: Batch, carried: Any = None
    ) -> Float[Array, "B T"]:
        """Returns R_t - n_t b of every real target token, and 0 at padding."""
        mask = jnp.asarray(batch["target_mask"])
        each = _log_likelihoods(output, batch)
        # The same sums over ones count the terms: n_t.
        returns, number = self._returned(each, batch), self._returned(mask.astype(float), batch)
        if self.baseline == "none":
            baseline = 0.0
        elif self.baseline == "learnt":
            # B -> B 1: one for all steps of a sentence.
            baseline = output.outputs["baseline"][:, None]
        else:
            baseline = self.start() if carried is None else carried
        return jnp.where(mask, returns - number * baseline, 0.0)

    def _returned(
        self, values: Float[Array, "B T"], batch: Batch
    ) -> Float[Array, "B T"]:
        """Returns for each step the sum of what it is rewarded by, or their mean."""
        if self.returns == "to_go":
            # Summed from the end: of each step, itself and all after it.
            return jnp.cumsum(values[:, ::-1], axis=-1)[:, ::-1]
        if self.returns == "mean":
            values = _over_tokens(values, batch)
        # Every sample of a sentence has the same return.
        return jnp.broadcast_to(values.sum(-1, keepdims=True), values.shape)

    def start(self) -> Any:
        """Returns the moving average before the first step, 0 as in the authors' program."""
        return jnp.zeros(()) if self.baseline == "moving_average" else ()

    def follow(self, carried: Any, metrics: Pairs) -> Any:
        """Moves the average towards the log-likelihood of the tokens that were sampled for."""
        if self.baseline != "moving_average":
            return carried
        # Sums over the whole batch, also where it was computed in parts or on several devices.
        total, count = metrics["log_likelihood"]
        moved = self.decay * carried + (1.0 - self.decay) * total / jnp.maximum(count, 1.0)
        return jnp.where(count > 0, moved, carried)  # no sample, nothing learnt of samples

    def measure(self, output: ModelOutput, batch: Batch, carried: Any) -> Pairs:
        """Measures what was sampled: log-likelihood per token, and squared advantage per step.

        The latter is what a baseline is to lower.
        """
        is_sampled = _sampled(output, batch)
        count = jnp.sum(is_sampled, dtype=float)
        squared = jnp.square(self.advantage(output, batch, carried))
        sums = {"log_likelihood": _log_likelihoods(output, batch), "squared_advantage": squared}
        return {
            name: (jnp.sum(jnp.where(is_sampled, values, 0.0)), count)
            for name, values in sums.items()
        }


def _sampled(output: ModelOutput, batch: Batch) -> Array:
    """Returns at which real target tokens a sample was read, `B T`."""
    return output.attention.aux["is_sampled"] & batch["target_mask"]


def _log_likelihoods(output: ModelOutput, batch: Batch) -> Float[Array, "B T"]:
    """Returns log p of the real target tokens, as constants, and 0 at padding."""
    mask = jnp.asarray(batch["target_mask"])
    each = jax.lax.stop_gradient(output.predictions).log_prob(jnp.asarray(batch["target"]))
    return jnp.where(mask, each, 0.0)


def _over_tokens(values: Float[Array, "B T"], batch: Batch) -> Float[Array, "B T"]:
    """Divides by the number of real target tokens of each sentence."""
    number = jnp.asarray(batch["target_mask"]).sum(-1, keepdims=True)
    return values / jnp.maximum(number, 1)
