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
from attention_jax.training.measuring.decode import Hypothesis


def pharaoh_line(
    hypothesis: Hypothesis, source_ids: np.ndarray, source_vocabulary: Any, target_vocabulary: Any
) -> str:
    """Links every output word with the source word that it attends to most, as `0-0 1-2`.

    Where a vocabulary has no words but symbols, such as characters and phonemes, those are linked.

    Args:
      hypothesis: An output with its attention.
      source_ids: Its source, ending in EOS.
      source_vocabulary: Its pieces tell where words begin.
      target_vocabulary: Likewise for the output.
    """
    weights = drop_ends(np.asarray(hypothesis.weights, np.float64))
    if 0 in weights.shape:
        return ""
    source_groups = word_groups(source_vocabulary.tokens(source_ids[:-1]))
    target_groups = word_groups(target_vocabulary.tokens(hypothesis.tokens[:-1]))
    return to_pharaoh(links_from_weights(merge_pieces(weights, source_groups, target_groups)))
