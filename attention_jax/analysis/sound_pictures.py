"""Pictures of attention to sound: spectrograms, what was written, and when its words begin."""

from collections.abc import Sequence

import numpy as np

from attention_jax.data.examples import Split
from attention_jax.data.sound.filter_banks import BANDS, HOP_SECONDS
from attention_jax.data.sound.recording import FRAMES, STARTS
from attention_jax.data.tasks.transcribe import word_starts
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.plotting.figure import save_figure
from attention_jax.plotting.spectrogram import HeardSound, spectrograms
from attention_jax.runs.load import TrainedRun

_MOST_DRAWN = 6
_LONGEST = 1000  # frames: ten seconds; more would be too narrow to see


def draw_sound_attention(
    run: TrainedRun, split: Split, found: Sequence[Sequence[Hypothesis]]
) -> None:
    """Draws the attention of the first outputs under their spectrograms, as PNG and SVG.

    How many are drawn is `evaluation.num_heat_maps` of the run's config, at most six.

    Args:
      run: The run, into whose directory they go.
      split: The recordings.
      found: The hypotheses for each, best first.
    """
    number = min(run.config.evaluation.num_heat_maps, _MOST_DRAWN)
    fitting = [
        index for index, best in enumerate(found) if best and best[0].weights.shape[1] <= _LONGEST
    ]
    sounds = [heard(split, index, found[index][0]) for index in fitting[:number]]
    if sounds and run.directory.writes:
        figure = spectrograms(sounds)
        for suffix in ("png", "svg"):
            with run.directory.plot(f"attention.{split.name}.{suffix}") as path:
                save_figure(figure, path)


def heard(split: Split, index: int, hypothesis: Hypothesis) -> HeardSound:
    """Returns what is drawn of a recording and of one output for it."""
    frames = np.asarray(split.columns[FRAMES.name][index]).reshape(-1, BANDS)
    known = split.extras.get(STARTS)
    return HeardSound(
        title=split.targets[index],
        frames=frames,
        weights=np.asarray(hypothesis.weights, np.float64),
        tokens=split.target_vocabulary.tokens(hypothesis.tokens),
        seconds=HOP_SECONDS * len(frames),
        found=word_starts(split, hypothesis).tolist(),
        gold=() if known is None else known[index].tolist(),
    )
