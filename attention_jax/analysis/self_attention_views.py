"""Attention viewer of self-attention: a page for each encoder and the decoder, a view a head."""

from collections.abc import Sequence

from attention_jax.analysis.head_names import attended_field, side_of
from attention_jax.analysis.heads import HeadReport
from attention_jax.analysis.self_attention import Attended, self_attention
from attention_jax.analysis.viewing import MOST_SHOWN
from attention_jax.data.examples import Split
from attention_jax.data.field import TARGET
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.decoding.source_tokens import source_tokens, text_of
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

    The encoder of each further source NAME has a page, too, `viewer.SPLIT.encoder_NAME.html`.
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
    for side in dict.fromkeys(side_of(head.layer) for head in shown):
        members = [head for head in shown if side_of(head.layer) == side]
        field = attended_field(members[0].layer)
        views = {
            head.name: [_picture(attended, head.number) for attended in found[head.layer]]
            for head in members
        }
        with writing(path := run.directory.viewer(split.name, side)):
            write_viewer(
                path,
                f"{name}, {split.name}, self-attention of the {_called(side, field)}",
                _sentences(chosen, field),
                views,
                about={head.name: head.values for head in members},
            )


def _called(side: str, field: str) -> str:
    return side if side in ("encoder", "decoder") else f"encoder of {field}"


def _picture(attended: Attended, head: int) -> ViewedAttention:
    weights, reach = attended.weights[head], attended.reach[head]
    return ViewedAttention(weights, scores={"entropy": mean_entropy([weights], [reach])})


def _sentences(split: Split, field: str) -> list[ViewerSentence]:
    """Returns the positions of a field: those that are read across, those that read down."""
    places = range(len(split))
    if field != TARGET.name:
        sentences = []
        for index in places:
            tokens, text = source_tokens(split, field, index), text_of(split, field, index)
            sentences.append(ViewerSentence(tokens, tokens, key=str(index), text=text))
        return sentences
    (begin,) = split.target_vocabulary.tokens([SpecialIds.BOS])
    sentences = []
    for index in places:
        vocabulary = extended(split.target_vocabulary, split.own_words[index])
        tokens = vocabulary.tokens(split.target_ids[index])
        # Teacher forcing: a decoder reads its targets one position later than it writes them.
        read = [begin, *tokens[:-1]]
        text = split.targets[index]
        sentences.append(ViewerSentence(read, tokens, key=str(index), text=text))
    return sentences
