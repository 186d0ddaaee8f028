"""Statistics of outputs: how many are empty, how many alike, and how many run to their limit."""

import collections
from collections.abc import Sequence

from attention_jax.data.examples import Split
from attention_jax.data.field import SOURCE_AXIS
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.search import SearchConfig

_FEWEST = 8  # of fewer outputs, half are alike by chance


def output_statistics(
    split: Split,
    found: Sequence[Sequence[Hypothesis]],
    texts: Sequence[str],
    search: SearchConfig,
) -> dict[str, float]:
    """Statistics of outputs: measures what tells a model that has not learnt to write.

    Args:
      split: The sources, and what their outputs should be.
      found: The hypotheses for each source, best first.
      texts: The best of each as text.
      search: Says how long an output of a source may be.

    Returns:
      Shares of all outputs, by name: `outputs/empty`; `outputs/alike`, the commonest text that is
      not empty, beside `references/alike`, the commonest reference; `outputs/at_limit`, those of
      as many tokens as they may have. Nothing of fewer than eight outputs.
    """
    number = len(texts)
    if number < _FEWEST:
        return {}
    lengths = [len(hypotheses[0].tokens) if hypotheses else 0 for hypotheses in found]
    limits = map(search.longest, map(int, split.first_lengths(SOURCE_AXIS)))
    return {
        "outputs/empty": sum(not text.strip() for text in texts) / number,
        "outputs/alike": _commonest([text for text in texts if text.strip()]) / number,
        "references/alike": _commonest(split.targets) / number,
        "outputs/at_limit": sum(map(int.__ge__, lengths, limits)) / number,
    }


def _commonest(texts: Sequence[str]) -> int:
    return max(collections.Counter(texts).values(), default=0)
