"""Finding outputs for a source, given only a step function and its state."""

from attention_jax.search.config import SearchConfig
from attention_jax.search.dispatch import search
from attention_jax.search.hypotheses import Hypotheses

__all__ = ["Hypotheses", "SearchConfig", "search"]
