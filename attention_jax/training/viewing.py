"""The attention viewer of a run: one HTML file for each split."""

from collections.abc import Sequence

from attention_jax.data.tasks import Split
from attention_jax.evaluation.attention_statistics import normalized_entropy
from attention_jax.plotting.viewer import ViewedAttention, ViewerSentence, write_viewer
from attention_jax.training.decode import Hypothesis
from attention_jax.training.trained import TrainedRun

_MOST_SHOWN = 1000


def write_run_viewer(
    run: TrainedRun,
    split: Split,
    found: Sequence[Sequence[Hypothesis]],
    outputs: Sequence[str],
) -> None:
    """Writes the attention of the first outputs to `viewer.SPLIT.html`.

    Args:
      run: The trained model.
      split: The sources.
      found: The outputs for each of them, best first.
      outputs: The first of them as text.
    """
    shown = [index for index, best in enumerate(found) if best][:_MOST_SHOWN]
    if not shown or not run.directory.writes:
        return
    sentences, views = [], []
    for index in shown:
        best = found[index][0]
        sentences.append(
            ViewerSentence(
                run.source_vocabulary.tokens(split.source_ids[index]),
                key=str(index),
                reference=(split.references[index] or [""])[0],
            )
        )
        views.append(
            ViewedAttention(
                best.weights,
                run.target_vocabulary.tokens(best.tokens),
                outputs[index],
                {"entropy": float(normalized_entropy(best.weights).mean())},
            )
        )
    path, name = run.directory.viewer(split.name), run.directory.path.name
    write_viewer(path, f"{name}, {split.name}", sentences, {name: views})
