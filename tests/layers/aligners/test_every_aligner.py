"""Every aligner of its own: beside a translator that it leaves alone, searched and trained."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.decoding.forced_decoding import kept_attention
from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.layers.aligner import ALIGNERS
from attention_jax.models.online import why_it_waits
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from tests.conformance.test_rows_alone import ALONE, TARGET_LENGTHS, alone, batch
from tests.models.test_bidirectional import build as of_both
from tests.models.test_encoders_with_decoders import build, small
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.teacher_forcing import rescored

SEPARATE = [name for name in ALIGNERS if name != "attention"]
FIELDS = {"two_way": {"name": "full_context", "two_way": True}}
TAUGHT = build_objective(
    {"nll": {}, "supervised_alignment": {"step": "reads", "unaligned": "ignore"}}
)
every_aligner = pytest.mark.parametrize("name", [*SEPARATE, *FIELDS])


def parts(name):
    """The fields of an aligner, with all sizes small."""
    fields = FIELDS.get(name, {"name": name})
    return {"aligner": {**small(ALIGNERS.config(fields["name"])), **fields}}


@functools.cache
def case(name, decoder="bahdanau"):
    model = build("concatenation", decoder, **parts(name))
    return model, drawn(model, 1), batch()


@every_aligner
@pytest.mark.parametrize("decoder", ["bahdanau", "transformer"])
def test_hypotheses_have_the_weights_of_teacher_forcing(name, decoder):
    """Of every rank, whether they are aligned as they are written or when they are complete."""
    model, params, given = case(name, decoder)
    inputs = {name: given[name] for name in ("source", "source_mask")}
    config = SearchConfig(beam_size=3, num_hypotheses=2, min_length_ratio=0.6)
    found = Searcher(model, config).search(params, inputs, jax.random.key(0))
    size = found.weights.shape[-1]
    for rank in (1, 0):
        _, output, mask = rescored(quick_jit(model.apply), params, given, found, rank)
        mask, weights = np.asarray(mask), np.asarray(found.weights[:, rank])
        np.testing.assert_allclose(
            weights[mask], output.alignment[..., :size][mask], rtol=1e-4, atol=1e-5
        )
        assert not weights[~mask].any()
    assert np.abs(output.alignment - output.attention.weights)[mask].max() > 1e-3
    kept = kept_attention(output, size)["weights"]
    np.testing.assert_array_equal(kept, output.alignment)


@every_aligner
def test_a_row_alone_is_aligned_as_in_its_batch(name):
    """Whatever stands at padding, which a reader of both directions meets first."""
    model, params, given = case(name)
    apply = quick_jit(model.apply)
    noise = np.random.default_rng(1).integers(3, 7, given["target"].shape)
    noisy = {**given, "target": jnp.where(given["target_mask"], given["target"], noise)}
    for together in (apply(params, given), apply(params, noisy)):
        for row in ALONE:
            found, size = apply(params, alone(given, row)).alignment[0], TARGET_LENGTHS[row]
            expected = together.alignment[row, :size, : found.shape[-1]]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@every_aligner
def test_rows_depend_on_later_words_where_the_aligner_reads_ahead(name):
    """And never on the last one, which no step has read."""
    model, params, given = case(name)
    before = quick_jit(model.apply)(params, given).alignment[0]
    changes = []
    for place in range(4):
        target = given["target"].at[0, place].set(3 + (given["target"][0, place] - 2) % 4)
        after = quick_jit(model.apply)(params, {**given, "target": target}).alignment[0]
        changes.append(np.abs(after - before).max(axis=-1) > 1e-6)
    changes = np.array(changes)  # changed token, step
    assert model.aligner.reads_ahead == ("reads_ahead" in model.provides) == changes[1, 0]
    assert all(changes[place, place + 1] for place in range(3)) and not changes[3].any()


@every_aligner
def test_empty_rows_have_finite_gradients(name):
    model, params, given = case(name)
    nothing = {key: jnp.zeros_like(given[key]) for key in ("source_mask", "target_mask", "links")}
    given = {**given, **nothing}

    def loss(params):
        return TAUGHT.terms["supervised_alignment"].total(model.apply(params, given), given)

    assert all(np.isfinite(each).all() for each in jax.tree.leaves(jax.grad(loss)(params)))


@every_aligner
def test_links_teach_the_aligner_alone(name):
    """The gradient of the links does not reach the translator, nor that of nll the aligner."""
    model, params, given = case(name)
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


@pytest.mark.parametrize("name", FIELDS)
def test_a_row_alone_has_the_opposite_weights_that_it_has_in_its_batch(name):
    """Of each real slot a distribution over the real steps; padding has none and counts nothing."""
    model, params, given = case(name)
    apply = quick_jit(model.apply)
    together = np.asarray(apply(params, given).outputs["opposite_alignment"])
    for row in ALONE:
        found = apply(params, alone(given, row)).outputs["opposite_alignment"][0]
        slots, size = int(given["source_mask"][row].sum()), TARGET_LENGTHS[row]
        np.testing.assert_allclose(
            found[:slots, :size], together[row, :slots, :size], rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(together[row, :slots].sum(-1), 1 if size else 0, rtol=1e-5)
        assert not together[row, slots:].any() and not together[row, :, size:].any()
    assert "opposite_alignment" in model.provides
    one_way, params, _ = case("full_context")
    assert "opposite_alignment" not in {*one_way.provides, *apply_once(one_way, params).outputs}


def apply_once(model, params):
    return quick_jit(model.apply)(params, batch())


@every_aligner
def test_an_aligner_is_an_alignment_whatever_the_decoder_attends_by(name):
    plain = build("concatenation", "bahdanau")
    assert "last_word" not in plain.provides and "aligner" not in drawn(plain, 1)
    model = build("concatenation", "bahdanau", **parts(name))
    assert {"alignment", "last_word"} <= model.provides.keys()
    TAUGHT.check(model)
    with pytest.raises(ConfigError, match="supervised_alignment: expected a decoder that has read"):
        TAUGHT.check(plain)


@every_aligner
def test_an_aligner_that_nothing_teaches_is_refused(name):
    model = build("concatenation", "bahdanau", **parts(name))
    untaught = build_objective({"nll": {}})
    with pytest.raises(ConfigError, match="aligner: expected .*supervised_alignment beside it"):
        untaught.check(model)
    untaught.check(build("concatenation", "bahdanau"))


@every_aligner
def test_attention_that_is_no_alignment_has_no_aligner_beside_it(name):
    with pytest.raises(ConfigError, match="aligner.name: expected 'attention' in a model"):
        build("recurrent", "luong", attention={"name": "none"}, **parts(name))


@every_aligner
def test_outputs_wait_for_the_source_with_an_aligner(name):
    """Its weights say nothing of how far the decoder's attention has read."""
    fields = {
        "sources": {"source": {
            "input": {"name": "tokens", "embedding_dim": 4},
            "encoder": {"name": "recurrent", "direction": "forward", "hidden_dim": 4},
        }},
        "attention": {"name": "monotonic", "evaluation": "hard"},
        "decoder": {"name": "luong", "hidden_dim": 4, "bridge": "zero"},
    }  # fmt: skip
    online, waiting = (build("recurrent", "luong", **fields, **more) for more in ({}, parts(name)))
    assert "online" in online.provides and "online" not in waiting.provides
    assert why_it_waits(waiting).startswith("model.aligner.name: expected 'attention', by which")


@every_aligner
def test_a_model_of_both_directions_has_none(name):
    with pytest.raises(ConfigError, match=r"aligner.name: expected 'attention' .* both directions"):
        of_both("bidirectional", **parts(name))


NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(scope="module")
def runs(launch, tmp_path_factory):
    """Digits read backwards, whose decoder guesses what it will write, with an aligner or not."""
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
        "--config.objectives.supervised_alignment.step=reads",
        "--config.data.alignment.method=ibm1",
    )  # fmt: skip
    aligners = {
        name: (*taught, *(f"--config.model.aligner.{field}={value}"
                          for field, value in FIELDS.get(name, {"name": name}).items()))
        for name in (*SEPARATE, *FIELDS)
    }  # fmt: skip
    for name, more in {"plain": (), **aligners}.items():
        ended = launch("train", *common, f"--workdir={folder / name}", *more)
        assert ended.code == 0, ended.err
    return folder


@every_aligner
def test_the_translator_learns_as_without_it(name, runs):
    plain, taught = (
        json.loads((runs / each / "results.json").read_text())["test"] for each in ("plain", name)
    )
    assert taught["bleu"] == pytest.approx(plain["bleu"], abs=0.5)
    assert taught["nll"] == pytest.approx(plain["nll"], rel=0.01)


@every_aligner
def test_the_aligner_learns_to_align(name, runs):
    lines = (runs / name / "metrics.jsonl").read_text().splitlines()
    train = [line for line in map(json.loads, lines) if line["split"] == "train"]
    first, last = (line["loss/supervised_alignment"] for line in (train[0], train[-1]))
    assert last < 0.5 * first


def test_a_two_way_aligner_links_both_directions(runs, launch, tmp_path):
    """Each digit with its name, read backwards; one run says what two would."""
    numbers = ["1 2 3", "7 4", "5 0 9 8"]
    texts = {"source": numbers, "target": [
        " ".join(NAMES[int(digit)] for digit in reversed(number.split())) for number in numbers
    ]}  # fmt: skip
    for side, lines in texts.items():
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines))
    given = [f"--{side}={tmp_path / side}" for side in texts]
    output, scores = tmp_path / "links", tmp_path / "scores"

    def links(*options):
        written = f"--output={output}", f"--scores={scores}"
        run = f"--run={runs / 'two_way'}"
        ended = launch("align", "apply", run, *given, *written, *options)
        assert ended.code == 0, ended.err
        assert [len(line.split()) for line in scores.read_text().splitlines()] == [1] * 3
        return [{*line.split()} for line in output.read_text().splitlines()]

    usual = links()
    assert usual == links("--symmetrization=geometric-mean")
    union, both = links("--symmetrization=union"), links("--symmetrization=intersection")
    one, other = links("--symmetrization=forward"), links("--symmetrization=reverse")
    for k, number in enumerate(numbers):
        count = len(number.split())
        gold = {f"{place}-{count - 1 - place}" for place in range(count)}
        assert len(gold & usual[k]) >= count - 1 and usual[k] <= union[k]
        assert union[k] == one[k] | other[k] and both[k] == one[k] & other[k]
