"""From the attention of a hypothesis to word alignments."""

from typing import Any

import numpy as np

from attention_jax.evaluation.alignment import (
    drop_ends,
    links_from_weights,
    merge_pieces,
    to_pharaoh,
    word_groups,
)
from attention_jax.evaluation.attention_alignment import shifted
from attention_jax.training.measuring.decode import Hypothesis


def pharaoh_line(
    hypothesis: Hypothesis,
    source_ids: np.ndarray,
    source_vocabulary: Any,
    target_vocabulary: Any,
    shift: int = 0,
) -> str:
    """Links every output word with the source word that it attends to most, as `0-0 1-2`.

    Where a vocabulary has no words but symbols, such as characters and phonemes, those are linked.

    Args:
      hypothesis: An output with its attention.
      source_ids: Its source, ending in EOS.
      source_vocabulary: Its pieces tell where words begin.
      target_vocabulary: Likewise for the output.
      shift: The step after the one that writes a token whose attention links it.
    """
    weights = drop_ends(shifted(np.asarray(hypothesis.weights, np.float64), shift))
    if 0 in weights.shape:
        return ""
    source_groups = word_groups(source_vocabulary.tokens(source_ids[:-1]))
    target_groups = word_groups(target_vocabulary.tokens(hypothesis.tokens[:-1]))
    return to_pharaoh(links_from_weights(merge_pieces(weights, source_groups, target_groups)))
