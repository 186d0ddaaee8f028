"""Captioning: describes pictures in words, judged by BLEU of orders 1 to 4, chrF and exact match.

A user's text is the path of an image file, or of a file of its features.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_jax.data.captions import GOLD_BOXES, PICTURE, CaptionConfig, gold_cells
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Examples, Split
from attention_jax.data.field import TARGET
from attention_jax.data.pictures import Canvas, Cells
from attention_jax.data.task import Metric, Statistics, Task
from attention_jax.evaluation.attention_alignment import linking_weights
from attention_jax.evaluation.attention_statistics import (
    attention_statistics,
    share_inside,
    shares_inside,
)
from attention_jax.evaluation.bleu import bleu_from_statistics
from attention_jax.evaluation.captions import caption_scores, caption_statistics
from attention_jax.evaluation.chrf import chrf_from_statistics
from attention_jax.evaluation.inflection import exact_match


def prepare_path(text: str, data_config: Any, *, is_source: bool = True) -> str:
    """Returns the path of a picture, or a caption, as it is but for the end of its line."""
    return text.strip("\r\n")


def read(texts: Sequence[str], data_config: Any) -> Mapping[str, Sequence[Cells]]:
    """Reads the files of a user's paths, as the data's are.

    Raises:
      DataError: Naming the file that is not as they are.
    """
    return {PICTURE.name: data_config.read_files(texts)}


def canvas(examples: Examples, index: int, data_config: CaptionConfig) -> Canvas:
    """Returns what attention to a picture is drawn on."""
    return data_config.canvas(examples.columns[PICTURE.name][index])


def scores(split: Split, outputs: Sequence[str], data_config: Any) -> Scores:
    """BLEU of orders 1 to 4, chrF and exact match."""
    return dict(
        caption_scores(outputs, split.references, tokenize=data_config.bleu_tokenizer)
    )


def scores_of_data(decoded: DecodedSplit) -> Scores:
    """Computes what the data set has beside these."""
    return dict(decoded.data_config.further_scores(decoded.split, decoded.texts))


def attention_scores(decoded: DecodedSplit) -> Scores:
    """Attention entropy, and the share of attention in the gold rectangles of right outputs.

    Where the data tells in which rectangle of its picture each symbol of a caption is, outputs that
    are their reference symbol by symbol have gold rectangles too; `attention_in_gold_outputs` says
    how many do.
    """
    if not decoded.attends:
        return {}
    shift = decoded.alignment_shift
    best = [linking_weights(one[0].weights, shift) for one in decoded.hypotheses if one]
    entropy = attention_statistics(best).get("attention_entropy")
    known: Scores = {} if entropy is None else {"attention_entropy": entropy}
    if GOLD_BOXES not in decoded.split.extras:
        return known
    gold = _in_gold(decoded)
    known["attention_in_gold_outputs"] = float(len(gold))
    share = share_inside(gold.values())
    return known if share is None else {**known, "attention_in_gold": 100 * share}


def gold_statistics(decoded: DecodedSplit) -> Statistics:
    """Sums the shares of attention in gold rectangles over the symbols of each right caption.

    Beside each sum is the number of shares: none of a caption that is not right.
    """
    if not decoded.attends or GOLD_BOXES not in decoded.split.extras:
        return {}
    rows = np.zeros((len(decoded.split), 2))
    for index, pair in _in_gold(decoded).items():
        shares = shares_inside(*pair)
        rows[index] = shares.sum(), len(shares)
    return {"attention_in_gold": (rows, _mean_share)} if rows[:, 1].any() else {}


def _mean_share(sums: Float[np.ndarray, "*R 2"]) -> Float[np.ndarray, "*R"] | float:
    """Returns the mean share in per cent, 0 for sums of nothing."""
    return 100 * sums[..., 0] / np.maximum(sums[..., 1], 1)


def _in_gold(decoded: DecodedSplit) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Returns the weights of right outputs and the cells in their gold rectangles, by example."""
    split, found = decoded.split, decoded.hypotheses
    right = [
        index
        for index, one in enumerate(found)
        if one and [*one[0].tokens] == [*split.target_ids[index]]
    ]
    inside = gold_cells(split, right, decoded.data_config)
    return {
        index: (linking_weights(found[index][0].weights, decoded.alignment_shift), cells)
        for index, cells in zip(right, inside, strict=True)
    }


def statistics(split: Split, outputs: Sequence[str], data_config: Any) -> Statistics:
    """Returns the sufficient statistics of each caption, and how scores follow from their sums."""
    rows = caption_statistics(outputs, split.references, tokenize=data_config.bleu_tokenizer)
    return {
        "bleu_4": (rows.bleu, bleu_from_statistics),
        "chrf": (rows.chrf, chrf_from_statistics),
        "exact_match": (rows.exact, exact_match),
    }


_PANEL = "BLEU, chrF, exact match (%)"
TASK = Task(
    label="captions",
    fields=(PICTURE, TARGET),
    prepare=prepare_path,
    read=read,
    canvas=canvas,
    scores=scores,
    details=(scores_of_data, attention_scores),
    statistics=statistics,
    detail_statistics=gold_statistics,
    metrics=(
        Metric("exact_match", "exact match", _PANEL, "max"),
        Metric("bleu_1", "BLEU-1", _PANEL, "max", decided_by=("data.bleu_tokenizer",)),
        Metric("bleu_2", "BLEU-2", _PANEL, "max", decided_by=("data.bleu_tokenizer",)),
        Metric("bleu_3", "BLEU-3", _PANEL, "max", decided_by=("data.bleu_tokenizer",)),
        Metric("bleu_4", "BLEU-4", _PANEL, "max", decided_by=("data.bleu_tokenizer",)),
        Metric("chrf", "chrF", _PANEL, "max"),
    ),
    printed=("exact_match", "bleu_4"),
    shown=(
        "bleu_1", "bleu_2", "bleu_3", "bleu_4", "chrf", "exact_match", "exact_pictures",
        "attention_in_gold",
    ),
)  # fmt: skip
