"""The alignment module: against NumPy, beside a translator that it leaves alone, and trained."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.decoding.forced_decoding import kept_attention
from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.layers.aligner import ALIGNERS, AlignerSizes
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.readout import Step
from attention_jax.models.online import why_it_waits
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from tests.conformance.test_rows_alone import batch
from tests.models.test_bidirectional import build as of_both
from tests.models.test_encoders_with_decoders import build
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.teacher_forcing import rescored

CONFIG = ALIGNERS.config("module")
AS_PARTS = {"aligner": {"name": "module", "num_heads": 2, "head_dim": 3}}
TAUGHT = build_objective(
    {"nll": {}, "supervised_alignment": {"step": "reads", "unaligned": "ignore"}}
)


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_against_numpy():
    """In float64, head after head and slot after slot; what stands at padding counts nothing."""
    rng, (rows, steps, slots, heads, depth) = np.random.default_rng(0), (2, 3, 4, 2, 5)
    sizes = AlignerSizes(memory_dim=6, feature_dim=7, embedding_dim=8)
    aligner = ALIGNERS.find("module").build(CONFIG(num_heads=heads, head_dim=depth), sizes)
    params = {name: rng.normal(size=each.shape) for name, each in aligner.parameters.items()}
    features, words = rng.normal(size=(rows, steps, 7)), rng.normal(size=(rows, steps, 8))
    annotations, lengths = rng.normal(size=(rows, slots, 6)), (4, 2)
    expected = np.zeros((rows, steps, slots))
    for b, t, n in np.ndindex(rows, steps, heads):
        query = features[b, t] @ params["feature_kernel"][:, n]
        query = query + words[b, t] @ params["word_kernel"][:, n]
        real = annotations[b, : lengths[b]] @ params["key_kernel"][:, n]
        expected[b, t, : lengths[b]] += softmax(real @ query / np.sqrt(depth)) / heads
    annotations[1, 2:] = np.nan
    mask = np.arange(slots) < np.asarray(lengths)[:, None]
    params, *given = jax.tree.map(jnp.float32, (params, features, words, annotations))
    prepared = aligner.prepare(params, Encoded(given[2], jnp.asarray(mask)))
    prepared = jax.tree.map(lambda leaf: leaf[:, None], prepared)
    found = aligner.align(params, Step(given[0], None, None, None, word=given[1]), prepared)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@functools.cache
def case(decoder):
    model = build("concatenation", decoder, **AS_PARTS)
    return model, drawn(model, 1), batch()


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer"])
def test_hypotheses_have_the_weights_of_teacher_forcing(decoder):
    model, params, given = case(decoder)
    inputs = {name: given[name] for name in ("source", "source_mask")}
    config = SearchConfig(beam_size=3, num_hypotheses=2, min_length_ratio=0.6)
    found = Searcher(model, config).search(params, inputs, jax.random.key(0))
    _, output, mask = rescored(quick_jit(model.apply), params, given, found, 0)
    mask = np.asarray(mask)
    size = found.weights.shape[-1]
    np.testing.assert_allclose(
        np.asarray(found.weights[:, 0])[mask], output.alignment[..., :size][mask], atol=1e-5
    )
    assert np.abs(output.alignment - output.attention.weights)[mask].max() > 1e-3
    kept = kept_attention(output, size)["weights"]
    np.testing.assert_array_equal(kept, output.alignment)


def test_links_teach_the_module_alone():
    """The gradient of the links does not reach the translator, nor that of nll the module."""
    model, params, given = case("bahdanau")
    links = np.zeros((*given["target"].shape, given["source"].shape[1]), bool)
    links[:, 0, 0] = links[:, 1, 1] = True
    given = {**given, "links": jnp.asarray(links)}

    def loss(params, name):
        term = TAUGHT.terms[name]
        return term.total(model.apply(params, given), given)

    of_links = jax.grad(loss)(params, "supervised_alignment")
    assert all(np.abs(each).max() > 1e-6 for each in jax.tree.leaves(of_links.pop("aligner")))
    assert not any(np.any(each) for each in jax.tree.leaves(of_links))
    of_words = jax.grad(loss)(params, "nll")
    assert not any(np.any(each) for each in jax.tree.leaves(of_words.pop("aligner")))
    assert any(np.any(each) for each in jax.tree.leaves(of_words))


def test_a_module_is_an_alignment_whatever_the_decoder_attends_by():
    plain = build("concatenation", "bahdanau")
    assert "last_word" not in plain.provides and "aligner" not in drawn(plain, 1)
    model = build("concatenation", "bahdanau", **AS_PARTS)
    assert {"alignment", "last_word"} <= model.provides.keys()
    TAUGHT.check(model)
    with pytest.raises(ConfigError, match="supervised_alignment: expected a decoder that has read"):
        TAUGHT.check(plain)


def test_a_module_that_nothing_teaches_is_refused():
    model = build("concatenation", "bahdanau", **AS_PARTS)
    untaught = build_objective({"nll": {}})
    with pytest.raises(ConfigError, match="aligner: expected .*supervised_alignment beside it"):
        untaught.check(model)
    untaught.check(build("concatenation", "bahdanau"))


def test_attention_that_is_no_alignment_has_no_module_beside_it():
    with pytest.raises(ConfigError, match="aligner.name: expected 'attention' in a model"):
        build("recurrent", "luong", attention={"name": "none"}, **AS_PARTS)


def test_outputs_wait_for_the_source_with_a_module():
    """Its weights say nothing of how far the decoder's attention has read."""
    parts = {
        "sources": {"source": {
            "input": {"name": "tokens", "embedding_dim": 4},
            "encoder": {"name": "recurrent", "direction": "forward", "hidden_dim": 4},
        }},
        "attention": {"name": "monotonic", "evaluation": "hard"},
        "decoder": {"name": "luong", "hidden_dim": 4, "bridge": "zero"},
    }  # fmt: skip
    online, waiting = (build("recurrent", "luong", **parts, **more) for more in ({}, AS_PARTS))
    assert "online" in online.provides and "online" not in waiting.provides
    assert why_it_waits(waiting).startswith("model.aligner.name: expected 'attention', by which")


def test_a_model_of_both_directions_has_none():
    with pytest.raises(ConfigError, match=r"aligner.name: expected 'attention' .* both directions"):
        of_both("bidirectional", **AS_PARTS)


NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(scope="module")
def runs(launch, tmp_path_factory):
    """Digits read backwards, whose decoder guesses what it will write, with a module or not."""
    folder, rng = tmp_path_factory.mktemp("modules"), np.random.default_rng(3)
    numbers = [rng.integers(10, size=rng.integers(2, 6)) for _ in range(400)]
    texts = {
        "source": [" ".join(map(str, number)) for number in numbers],
        "target": [" ".join(NAMES[digit] for digit in reversed(number)) for number in numbers],
    }
    files = []
    for split, rows in (("train", slice(None, 340)), ("validation", slice(340, 370)),
                        ("test", slice(370, None))):  # fmt: skip
        for side, lines in texts.items():
            path = folder / f"{split}.{side}"
            path.write_text("\n".join(lines[rows]) + "\n")
            files.append(f"--config.data.{split}_{side}={path}")
    common = (
        "--config=configs/bahdanau2015.py:parallel", *files, "--config.data.subwords.kind=words",
        "--config.model.target_embedding_dim=24", "--config.model.decoder.hidden_dim=32",
        "--config.model.sources.source.input.embedding_dim=24", "--config.data.num_buckets=1",
        "--config.model.sources.source.encoder.hidden_dim=24",
        "--config.optimizer.learning_rate=5e-3", "--config.optimizer.clip_norm=0.0",
        "--config.training.num_epochs=None", "--config.training.num_steps=300",
        "--config.evaluation.num_heat_maps=0", "--config.evaluation.splits=('test',)",
    )  # fmt: skip
    taught = (
        "--config.model.aligner.name=module", "--config.model.aligner.head_dim=16",
        "--config.objectives.supervised_alignment.step=reads",
        "--config.data.alignment.method=ibm1",
    )  # fmt: skip
    for name, more in (("plain", ()), ("taught", taught)):
        ended = launch("train", *common, f"--workdir={folder / name}", *more)
        assert ended.code == 0, ended.err
    return folder


def test_the_translator_learns_as_without_it(runs):
    plain, taught = (
        json.loads((runs / name / "results.json").read_text())["test"]
        for name in ("plain", "taught")
    )
    assert taught["bleu"] == pytest.approx(plain["bleu"], abs=0.5)
    assert taught["nll"] == pytest.approx(plain["nll"], rel=0.01)


def test_the_module_learns_to_align(runs):
    lines = (runs / "taught" / "metrics.jsonl").read_text().splitlines()
    train = [line for line in map(json.loads, lines) if line["split"] == "train"]
    first, last = (line["loss/supervised_alignment"] for line in (train[0], train[-1]))
    assert last < 0.5 * first
