"""Supervised attention to sound, in NumPy: told when words begin, through a pyramid of frames."""

import jax
import numpy as np

from attention_jax.data.sound.recording import STARTS
from tests.taught import first_batch, supervised_config

LEVELS, DEPTH = 2, 4


def experiment():
    data = {"name": "tones", "spelling": "words", "max_train_examples": 3, "batch_size": 3,
            "num_buckets": 1}  # fmt: skip
    model = {
        "name": "encoder_decoder",
        "target_embedding_dim": DEPTH,
        "sources": {
            "source": {
                "input": {"name": "frames", "frame_dim": 40, "embedding_dim": DEPTH},
                "encoder": {"name": "pyramidal", "hidden_dim": DEPTH, "levels": LEVELS},
            }
        },
        "attention": {"name": "luong_general"},
        "decoder": {"name": "speller", "hidden_dim": DEPTH, "readout_dim": DEPTH},
    }
    return supervised_config(data, model)


def expected_attention(starts, number):
    """Of each word, even over the slots of `2 ** LEVELS` frames that have one from it to the next.

    A frame's window has its middle 12.5 ms after 10 ms for each frame before it.
    """
    size, rows = 2**LEVELS, []
    bounds = [*(round((start - 0.0125) / 0.01) for start in starts), number]
    for begin, end in zip(bounds, bounds[1:], strict=False):
        slots = {frame // size for frame in range(max(begin, 0), end)}
        rows.append([(slot in slots) / len(slots) for slot in range(-(-number // size))])
    return np.array(rows)


def test_starts_of_words_teach_attention_through_a_pyramid(tmp_path):
    config = experiment()
    task, model, batch, arrays = first_batch(config, tmp_path)
    term = config.objectives["supervised_alignment"]

    def loss(params):
        output = model.apply(params, arrays)
        return term.total(output, arrays), output.attention.weights

    (found, weights), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(
        model.init(jax.random.key(0))
    )
    train, total, words = task.split("train"), 0.0, 0
    for row, index in enumerate(batch["index"]):
        if index < 0:
            continue
        number = int(batch["source_mask"][row].sum())
        for step, even in enumerate(expected_attention(train.extras[STARTS][index], number)):
            attended = np.asarray(weights[row, step, : len(even)], np.float64)
            total -= (even * np.log(attended + 1e-9)).sum()
            words += 1
        assert step + 2 == batch["target_mask"][row].sum()  # of EOS, which is not heard, nothing
    assert words >= 4  # several in one recording
    np.testing.assert_allclose(found, total, rtol=1e-5)
    assert np.abs(gradient["encoder"]["layer_0_forward"]["input"]).max() > 0
