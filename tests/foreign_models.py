"""Is an imported model the same as the other program's? Its logits, its outputs and its texts."""

import json

import jax
import numpy as np
import sentencepiece

from attention_jax.configuration import typed
from attention_jax.data.examples import encoded
from attention_jax.decoding.translate import Translator
from attention_jax.models import MODELS, build_model
from attention_jax.runs.foreign.importing import import_model, read_foreign
from attention_jax.runs.load import load_run
from tests.golden.foreign.make import ASKED, TARGETS
from tests.quick import quick_jit

PAD, BOS, EOS, UNK = range(4)


def answers_of(folder):
    with np.load(folder / "answers.npz") as file:
        return dict(file)


def theirs(vocabulary, ids, special):
    """The other program's id of each id here; BOS has none of its own."""
    known = [special["pad"], special["pad"], special["end"], special["unknown"]]
    unnamed = {f"<unused_{index}>": index for index in range(vocabulary.size)}
    return np.array([*known, *({**unnamed, **ids}[piece] for piece in vocabulary.symbols)])


def padded(vocabulary, texts):
    rows = encoded(vocabulary, texts)
    ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, its in zip(ids, rows, strict=True):
        row[: len(its)] = its
    mask = np.arange(ids.shape[1]) < np.array([[len(its)] for its in rows])
    return ids, mask


def check_logits(folder, source_ids, target_ids, special):
    """Compares ids, logits and probabilities, padding included."""
    foreign, known = read_foreign(folder), answers_of(folder)
    config = typed(MODELS.config("encoder_decoder"), foreign.model, "config.model")
    model = build_model(config, foreign.source.size, foreign.target.size)
    source, source_mask = padded(foreign.source, ASKED)
    target, target_mask = padded(foreign.target, [*TARGETS, ""])
    np.testing.assert_array_equal(
        theirs(foreign.source, source_ids, special)[source][source_mask],
        known["source"][source_mask],
    )
    np.testing.assert_array_equal(source_mask, known["source_mask"].astype(bool))
    to_their = theirs(foreign.target, target_ids, special)
    np.testing.assert_array_equal(to_their[target][target_mask], known["target"][target_mask])
    batch = {"source": source, "source_mask": source_mask, "target": target,
             "target_mask": target_mask}  # fmt: skip
    params = jax.tree.map(jax.numpy.asarray, foreign.params)
    found = quick_jit(model.apply)(params, batch).predictions
    logits, others = np.asarray(found.logits)[target_mask], np.arange(foreign.target.size) != BOS
    expected = known["logits"][target_mask]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        logits[:, others], expected[:, to_their[others]], atol=1e-5 * scale, rtol=0
    )
    log_probs = expected - np.logaddexp.reduce(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(
        np.asarray(found.log_probs())[target_mask][:, others], log_probs[:, to_their[others]],
        atol=1e-5 * scale, rtol=0,
    )  # fmt: skip


def check_outputs(folder, workdir, ids, special):
    """Imports it as a run, and compares what greedy search writes; returns the run."""
    import_model(folder, workdir)
    run, known = load_run(workdir), answers_of(folder)
    translations = Translator(run).translate(list(ASKED))
    to_their = theirs(run.target_vocabulary, ids, special)
    for text, translation, expected in zip(ASKED, translations, known["written"], strict=True):
        if not text:  # nothing is translated as nothing
            continue
        found = to_their[np.asarray(translation.hypotheses[0].tokens)]
        np.testing.assert_array_equal(found, expected[1 : 1 + len(found)])
        assert np.isin(expected[1 + len(found) :], special["pad"]).all()
    return run


def vocabulary_of(folder, name="vocab.json"):
    """The other program's ids of pieces, and of special symbols: padding, end, unknown."""
    if (folder / "tokenizer.json").exists():
        ids = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    elif (folder / name).exists():
        ids = json.loads((folder / name).read_text())
    else:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
        size = processor.get_piece_size()
        ids = {processor.id_to_piece(index): index for index in range(size)}
        ids |= {f"<extra_id_{2 - number}>": size + number for number in range(3)}
    named = (("pad", "<pad>"), ("end", "</s>"), ("unknown", "<unk>"))
    return ids, {name: ids[piece] for name, piece in named}
