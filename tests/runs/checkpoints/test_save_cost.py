"""What saving has cost: the number of stalls, their mean, the longest, and their share."""

from attention_jax.runs.checkpoints.save_cost import SaveCost


def test_the_longest_stall_is_neither_the_first_nor_the_last():
    cost = SaveCost()
    for seconds in (0.01, 0.04, 0.02, 0.01):
        cost.add(seconds)
    assert cost.describe(0.8) == {
        "saves": 4, "stall_ms": 20.0, "longest_stall_ms": 40.0, "share_of_time": 0.1,
    }  # fmt: skip


def test_nothing_saved_costs_nothing():
    assert SaveCost().describe(0.0) == {
        "saves": 0, "stall_ms": 0.0, "longest_stall_ms": 0.0, "share_of_time": 0.0,
    }  # fmt: skip
