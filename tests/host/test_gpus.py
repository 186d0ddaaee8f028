"""GPUs of a host, and the shares of them that its processes have."""

import pytest

from attention_jax.host.gpus import shares_of_gpus


def test_gpus_are_shared_out_evenly(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert shares_of_gpus(2) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="divides the 4 GPUs of this host, found 3"):
        shares_of_gpus(3)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert shares_of_gpus(3) == []
