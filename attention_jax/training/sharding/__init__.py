"""How a training is spread over devices: a mesh, rules for placing arrays, and strategies."""

from attention_jax.training.sharding.mesh import fetch, make_mesh, replicated
from attention_jax.training.sharding.rows import pad_rows, process_share, shard_batch
from attention_jax.training.sharding.strategy import (
    Strategy,
    build_strategy,
    build_strategy_here,
)

__all__ = [
    "Strategy",
    "build_strategy",
    "build_strategy_here",
    "fetch",
    "make_mesh",
    "pad_rows",
    "process_share",
    "replicated",
    "shard_batch",
]
