"""Parallelism: the device mesh, sharding rules for placing arrays, and strategies."""

from attention_jax.devices.batch_placement import (
    local_shards,
    pad_rows,
    process_share,
    shard_batch,
)
from attention_jax.devices.mesh import fetch, make_mesh, replicated
from attention_jax.devices.strategy import (
    Strategy,
    build_strategy,
    build_strategy_here,
)

__all__ = [
    "Strategy",
    "build_strategy",
    "build_strategy_here",
    "fetch",
    "local_shards",
    "make_mesh",
    "pad_rows",
    "process_share",
    "replicated",
    "shard_batch",
]
