"""Attention viewer of self-attention: a page for encoder and decoder, with a view of every head."""

from collections.abc import Sequence

from attention_jax.analysis.heads import HeadReport
from attention_jax.analysis.self_attention import Attended, self_attention
from attention_jax.analysis.viewing import MOST_SHOWN
from attention_jax.data.examples import Split
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.evaluation.head_statistics import mean_entropy
from attention_jax.plotting.viewer import ViewedAttention, ViewerSentence, write_viewer
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import writing
from attention_jax.types import SpecialIds

_MOST_PICTURES = 20_000  # of all heads together; their captions alone are some 10 MB


def write_self_attention_viewers(
    name: str, run: TrainedRun, split: Split, heads: Sequence[HeadReport]
) -> None:
    """Self-attention: writes `viewer.SPLIT.encoder.html` and `viewer.SPLIT.decoder.html`.

    Columns are the positions that are attended to, rows those that attend. A decoder attends to its
    inputs, which begin with BOS; its rows are named by the tokens that it writes there. Only as
    many of the first pairs are shown as a page can hold.

    Args:
      name: The name of the run.
      run: The run; if bidirectional, its forward model is shown.
      split: The pairs, whose targets are decoded by force.
      heads: Statistics of the run's heads over the split; those of self-attention are shown.
    """
    shown = [head for head in heads if not head.is_cross]
    if not shown or not run.directory.writes:
        return
    number = min(len(split), MOST_SHOWN, max(1, _MOST_PICTURES // len(shown)))
    chosen = split.select(range(number))
    found = self_attention(run, chosen)
    for side in dict.fromkeys(_side(head) for head in shown):
        members = [head for head in shown if _side(head) == side]
        views = {
            head.name: [_picture(attended, head.number) for attended in found[head.layer]]
            for head in members
        }
        with writing(path := run.directory.viewer(split.name, side)):
            write_viewer(
                path,
                f"{name}, {split.name}, self-attention of the {side}",
                _sentences(run, chosen, side),
                views,
                about={head.name: head.values for head in members},
            )


def _side(head: HeadReport) -> str:
    """Returns `encoder` or `decoder`, of a path such as `encoder/layer_0/self_attention`."""
    return head.layer.split("/")[-3]


def _picture(attended: Attended, head: int) -> ViewedAttention:
    weights, reach = attended.weights[head], attended.reach[head]
    return ViewedAttention(weights, scores={"entropy": mean_entropy([weights], [reach])})


def _sentences(run: TrainedRun, split: Split, side: str) -> list[ViewerSentence]:
    is_encoder = side == "encoder"
    vocabulary = run.source_vocabulary if is_encoder else run.target_vocabulary
    (begin,) = vocabulary.tokens([SpecialIds.BOS])
    sentences = []
    for index, ids in enumerate(split.source_ids if is_encoder else split.target_ids):
        own = () if is_encoder else split.own_words[index]
        tokens = extended(vocabulary, own).tokens(ids)
        # Teacher forcing: a decoder reads its targets one position later than it writes them.
        read = tokens if is_encoder else [begin, *tokens[:-1]]
        text = split.sources[index] if is_encoder else split.targets[index]
        sentences.append(ViewerSentence(read, tokens, key=str(index), text=text))
    return sentences
