"""Finding outputs for a source, given only a step function and its state."""

from attention_jax.search.config import SearchConfig
from attention_jax.search.dispatch import search, search_stage
from attention_jax.search.hypotheses import Hypotheses
from attention_jax.search.method import Stage

__all__ = ["Hypotheses", "SearchConfig", "Stage", "search", "search_stage"]
