"""Further sources: their attention has their own length, their own tokens and pages of its own."""

import numpy as np
import pytest

from attention_jax.analysis.self_attention import self_attention
from tests.training.two_sources import two_sources_run


@pytest.fixture(scope="module")
def translating(tmp_path_factory):
    """A Transformer that reads two sources, and its test split."""
    run, task = two_sources_run(tmp_path_factory.mktemp("two") / "run")
    return run, task.split("test")


def test_self_attention_of_a_further_source_is_as_long_as_that_source(translating):
    run, split = translating
    found = self_attention(run, split)
    ids = {"encoder": split.source_ids, "encoder_second": split.columns["second"],
           "decoder": split.target_ids}  # fmt: skip
    assert {layer.split("/")[0] for layer in found} == {*ids}
    for layer, pairs in found.items():
        for each, its in zip(pairs, ids[layer.split("/")[0]], strict=True):
            assert each.weights.shape == (2, len(its), len(its))
            assert each.reach.shape == (2, len(its))
            np.testing.assert_allclose(each.weights.sum(-1), 1, rtol=1e-5)
