"""Marginal likelihood: the distributions that each slot of the source makes, summed over slots.

  p(y_t | slot s, y_<t) = softmax(W_o tanh(W [annotation_s; h_t] + b) + b_o)
  p(y_t | y_<t) = sum_s p(slot s | y_<t) p(y_t | slot s, y_<t)

Which slot a token is written from is latent, and summed over exactly: hypotheses of a search that
differ by their alignments only are one. The prior of a slot is an alignment's, of
`layers/alignments`; where it depends on the slot before, it is a sum over all paths.

Attention shows the posterior of the slots, given the whole target where that is known. In a search
it shows the prior of the slots for the next token, which is to be chosen. `aux["prior"]` has the
prior in either case.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.configuration import setting
from attention_jax.discovery import build_part
from attention_jax.layers.alignment import ALIGNMENTS, Alignment
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import Predicted, Readout, ReadoutSizes, Step
from attention_jax.ops.emissions import (
    Emissions,
    emission_log_probs,
    emission_normalizers,
    mixture_log_probs,
)
from attention_jax.ops.lattices import (
    NEVER,
    condition,
    first_slot,
    last_slot,
    slot_posterior,
    sum_over_paths,
)
from attention_jax.ops.predictions import Predictions
from attention_jax.ops.products import add_bias
from attention_jax.types import AttentionOutput, Batch, Leaf, Params, SpecialIds

PAPER = (
    "Wu, Shapiro and Cotterell (2018), Hard non-monotonic attention; Wu and Cotterell (2019), "
    "Exact hard monotonic attention; Yu, Buys and Blunsom (2016)"
)


@dataclasses.dataclass(frozen=True)
class Config:
    """The sum over latent alignments.

    Attributes:
      name: The readout.
      hidden_dim: Depth of the hidden layer between a slot and the vocabulary.
      alignment: How slots follow one another; see `layers/alignments`.
    """

    name: str = setting("marginal")
    hidden_dim: int = setting(256, at_least=1)
    alignment: Any = setting({"name": "independent"}, named=ALIGNMENTS.config)
    sums_over_slots: ClassVar[bool] = True


def build(config: Config, sizes: ReadoutSizes) -> "MarginalReadout":
    """Builds the readout.

    Raises:
      ValueError: If there is no source, or its attention does not fit the alignment.
    """
    if sizes.mechanism is None:
        raise ValueError("readout.name: expected a model with a source for 'marginal', found none")
    alignment = build_part(config.alignment, Alignment, sizes)
    return MarginalReadout(config.hidden_dim, sizes, alignment)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MarginalPredictions(Predictions):
    """Mixture of softmaxes: the distributions of all slots, weighted by the prior.

    Attributes:
      emissions: What these are computed from.
      normalizers: `*B S`, theirs.
      prior: `*B S`, log p(slot) before the token is known.
    """

    emissions: Emissions
    normalizers: Leaf
    prior: Leaf

    @property
    def size(self) -> int:
        """How many ids there are."""
        return self.emissions.table.shape[0]

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all ids."""
        # A token that no path can write has `NEVER`, which is finite; a search wants minus
        # infinity.
        found = mixture_log_probs(self.emissions, self.normalizers, self.prior)
        return jnp.where(found > NEVER / 2, found, -jnp.inf)

    def log_prob(self, targets: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """Returns log p(target), without the logits of other ids."""
        log_probs = emission_log_probs(self.emissions, self.normalizers, targets)
        return condition(self.prior, log_probs)[0]  # the evidence; what is left is the posterior


@dataclasses.dataclass(frozen=True)
class MarginalReadout(Readout):
    """Marginal likelihood as pure functions.

    Attributes:
      hidden_dim: Depth of the hidden layer.
      sizes: What it fits.
      alignment: How slots follow one another.
    """

    hidden_dim: int
    sizes: ReadoutSizes
    alignment: Alignment

    @property
    def parameters(self) -> dict[str, Any]:
        """The hidden layer, the vocabulary's matrix and bias, and the alignment's."""
        sizes, hidden = self.sizes, self.hidden_dim
        tree: dict[str, Any] = {
            "output_bias": Parameter.of("bias", vocab=sizes.vocabulary_size),
            "output_hidden": {
                "annotation": Parameter.of("kernel", annotation=sizes.memory_dim, hidden=hidden),
                "features": Parameter.of("kernel", features=sizes.feature_dim, hidden=hidden),
                "bias": Parameter.of("bias", hidden=hidden),
            },
        }
        if not sizes.is_tied:
            tree["output"] = Parameter.of(
                "embedding", vocab=sizes.vocabulary_size, features=hidden
            )
        elif hidden != sizes.embedding_dim:
            tree["output_projection"] = Parameter.of(
                "kernel", features=hidden, embed=sizes.embedding_dim
            )
        return {**tree, "alignment": self.alignment.parameters}

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Mapping[str, Any]:
        """Returns each slot's part of the hidden layer, and which slots there are."""
        mask, annotations = encoded.mask, encoded.averaged
        ends_at_last = self.alignment.transition.ends_at_last
        return {
            "annotations": annotations @ params["output_hidden"]["annotation"],  # B S H
            "mask": mask,
            "may_end": last_slot(mask) if ends_at_last else jnp.ones_like(mask),
            "moves": self.alignment.prepare(params["alignment"], encoded.annotations),
        }

    def run(
        self, params: Params, step: Step, targets: Array, mask: Array
    ) -> tuple[MarginalPredictions, AttentionOutput]:
        """Sums over all paths through the slots; attention shows the posterior of each slot."""
        emissions, moves = self._emissions(params, step), self._moves(params, step)
        normalizers = emission_normalizers(emissions)
        # *B T S: the logits of the whole vocabulary at every slot, *B T S V, are never there at
        # once.
        of_targets = emission_log_probs(emissions, normalizers, targets)
        slots = step.source["mask"][:, 0]  # B 1 S -> B S: known targets have no hypotheses
        lattice = (self.alignment.transition, moves, of_targets, slots, mask)
        prior, _ = sum_over_paths(*lattice)
        predictions = MarginalPredictions(emissions, normalizers, prior)
        return predictions, _shown(step.attention, slot_posterior(*lattice), prior)

    def init_state(self, params: Params, source: Any) -> Mapping[str, Array]:
        """Returns what a search begins with: paths at the first slot, and no token to be told of.

        Nothing is kept where the slots of a token depend on no other token's.
        """
        if self.alignment.transition.is_parallel:
            return {}
        mask, annotations = source["mask"], source["annotations"]
        query = jnp.zeros((mask.shape[0], self.hidden_dim), annotations.dtype)
        reached = first_slot(mask)
        # What the last step predicted with: the next one is told of the token, and asks then how
        # likely each slot made it.
        return {"prior": reached, "normalizers": jnp.zeros_like(reached), "query": query}

    def step(self, params: Params, step: Step) -> Predicted:
        """Moves paths on; attention shows from which slots the next token may be written."""
        emissions, mask = self._emissions(params, step), step.source["mask"]
        transition, moves = self.alignment.transition, self._moves(params, step)
        prior = transition.move(moves, self._reached(params, step), mask)
        normalizers = emission_normalizers(emissions)
        predictions = MarginalPredictions(emissions, normalizers, prior)
        told = {"prior": prior, "normalizers": normalizers, "query": emissions.query}
        # Hypotheses need not carry what their next step does not read.
        state = {} if transition.is_parallel else told
        return Predicted(predictions, _shown(step.attention, jnp.exp(prior), prior), state)

    def predict(self, params: Params, step: Step) -> Predictions:
        """Returns the distribution of each next token, given where paths are."""
        return self.step(params, step).predictions

    def _reached(self, params: Params, step: Step) -> Array:
        """Returns where paths are that have written the last token, which BOS is not."""
        state = step.state
        if not state:
            return first_slot(step.source["mask"])
        emissions = self._given(params, step, state["query"])
        # *B S: how likely each slot has made the token that was chosen.
        log_probs = emission_log_probs(emissions, state["normalizers"], step.written)
        has_written = (step.written != SpecialIds.BOS)[..., None]
        # With log-probabilities of zero the posterior is the prior: BOS tells nothing of a path.
        return condition(state["prior"], jnp.where(has_written, log_probs, 0.0))[1]

    def _moves(self, params: Params, step: Step) -> Any:
        source = step.source
        return self.alignment.moves(params["alignment"], step, source["moves"], source["mask"])

    def _emissions(self, params: Params, step: Step) -> Emissions:
        weights = params["output_hidden"]
        query = add_bias(step.features @ weights["features"], weights["bias"])
        return self._given(params, step, query)

    def _given(self, params: Params, step: Step, query: Array) -> Emissions:
        table = params.get("output", step.embedding)
        if "output_projection" in params:
            table = table @ params["output_projection"].T  # V E -> V H, once for all slots
        source = step.source
        return Emissions(
            query, source["annotations"], table, params["output_bias"], source["may_end"]
        )


def _shown(attention: AttentionOutput, weights: Array, prior: Array) -> AttentionOutput:
    aux = {**attention.aux, "prior": jnp.exp(prior)}
    return dataclasses.replace(attention, weights=weights, aux=aux)
