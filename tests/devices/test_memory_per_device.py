"""States that are larger than the memory of a device are refused before they are made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from attention_jax.devices.memory_per_device import check_fits, memory_of_a_device
from attention_jax.errors import ConfigError


def abstract(*shape):
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), "x"), PartitionSpec("x"))
    return {"kernel": jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)}


def test_what_fits_passes():
    assert memory_of_a_device() > 1e8
    check_fits(abstract(8, 8))


def test_what_cannot_fit_is_refused():
    with pytest.raises(ConfigError, match=r"config.model: .* of a device, found 400,000\.0 GB"):
        check_fits(abstract(10**7, 10**7))
