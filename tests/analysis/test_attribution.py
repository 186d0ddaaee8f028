"""Attribution of a run's predictions: of pairs of text, by every method."""

import dataclasses

import numpy as np
import pytest

from attention_jax.analysis.attribution import (
    ATTRIBUTIONS,
    attribute,
    check_attributable,
    positive_shares,
)
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.scoring import Scorer
from attention_jax.errors import UserError
from tests.training.untrained import untrained_run, write_text

METHODS = ["input_gradient", "integrated_gradients", "occlusion", "value_norms"]


@pytest.fixture(scope="module")
def run_and_split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run, task = untrained_run(folder / "run", *write_text(folder))
    return run, task.split("test").select([5, 0, 2])


def test_every_method_is_found_by_its_file():
    assert ATTRIBUTIONS.names() == METHODS
    for name in METHODS:
        assert ATTRIBUTIONS.find(name).PAPER and ATTRIBUTIONS.find(name).METHOD.label
    assert [n for n in METHODS if ATTRIBUTIONS.find(n).METHOD.is_of_attention] == ["value_norms"]


def test_attributions_are_between_the_tokens_of_each_pair(run_and_split):
    run, split = run_and_split
    check_attributable("--attribution", run, split, METHODS)
    scored = Scorer(run)(split)
    for name in ("occlusion", "value_norms"):
        found = attribute(run, split, name)
        for one, pair, source in zip(found, scored, split.source_ids, strict=True):
            assert one.method == name and one.tokens[-1] == one.source_tokens[-1] == "</s>"
            assert one.values.shape == (len(pair.tokens), len(source))
            assert np.isfinite(one.values).all() and one.values.any()
    norms = [one.values for one in attribute(run, split, "value_norms")]
    for one, forced in zip(norms, forced_attention(run, split), strict=True):
        lengths = one / forced.weights  # of the values, the same for every row
        np.testing.assert_allclose(lengths, lengths[:1].repeat(len(lengths), 0), rtol=1e-4)


def test_shares_are_of_what_speaks_for_a_token():
    values = np.array([[3.0, -2.0, 1.0], [-1.0, 0.0, -4.0]], np.float32)
    np.testing.assert_allclose(positive_shares(values), [[0.75, 0, 0.25], [0, 0, 0]])


def test_what_cannot_be_attributed_is_refused(run_and_split):
    run, split = run_and_split
    with pytest.raises(UserError, match="^here: expected input_gradient, .*, found 'gradients'$"):
        check_attributable("here", run, split, ["occlusion", "gradients"])

    class Hearing(type(run.model)):
        begins_from = "speech"

    hearing = dataclasses.replace(run, model=Hearing(**vars(run.model)))
    with pytest.raises(UserError, match="whose source is a sequence of tokens, found another"):
        check_attributable("here", hearing, split, ["occlusion"])
