"""Search config: the method, beam size, lengths and penalties."""

import dataclasses
import math

from attention_jax.configuration import setting
from attention_jax.types import SpecialIds

# Added before a multiple of a length is cut off to a whole number, so that multiples by thousandths
# are what they are on paper, in whatever precision.
ROUNDING = 5e-4


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """The method of a search, its limits and how finished hypotheses are compared.

    Lengths count tokens, the end of the sentence included, of the source as of the target. A field
    is used by every method where nothing else is said; the methods that do not use one ignore it.

    Attributes:
      method: `greedy` takes the most probable token at each position, `beam` keeps the
        `beam_size` most probable beginnings, `sample` draws.
      beam_size: Hypotheses that a beam keeps; `beam` only, `greedy` and `sample` ignore it.
      num_hypotheses: Hypotheses returned for each source. `beam` returns at most `beam_size`,
        `greedy` has one, `sample` draws this many independently.
      max_length_factor: No output is longer than this times its source's length ...
      max_length_constant: ... plus this many tokens. Where both are the default, 2 and 10, and the
        training pairs have longer targets, they are raised to have room for those.
      min_length_ratio: The end of the sentence is forbidden until an output has this times its
        source's length in tokens; 0.5 is what Bahdanau's code does, which suits two languages with
        about as many tokens ...
      min_length_constant: ... plus this many, which alone is for outputs whose length does not
        follow their sources', such as summaries.
      length_normalization: What the log-probability is divided by: `none`; `length`, the length
        to the power of alpha; `gnmt`, ((5 + length) / 6) to the power of alpha. With `beam` it
        decides which hypotheses are found, with `sample` their order, with `greedy` the score
        only.
      length_alpha: That alpha, unused with normalization `none`. GNMT uses 0.2; Bahdanau's code
        divides by the length itself, 1.
      coverage_penalty: What is added to the score of a finished hypothesis for its attention:
        `none`; `gnmt`, beta for each source word times the log of the attention that it received,
        if that is less than 1; `summary`, minus beta for all attention to a word beyond 1. It
        decides as `length_normalization` does, and is refused with `greedy`, which compares
        nothing, and for models whose attention is not to source words.
      coverage_beta: That beta, unused with penalty `none`; GNMT uses 0.2.
      coverage_stepwise: Whether unfinished hypotheses are compared by their log-probability and
        the penalty so far, instead of the former alone; `beam` only. OpenNMT-py recommends it for
        `summary`.
      temperature: Divides the logits before sampling; `sample` only.
      top_k: Samples among this many most probable tokens only, 0 for all; `sample` only.
      top_p: Samples among the fewest tokens that together have this probability; `sample` only.
      seed: Another seed draws other outputs of the same run; `sample` only.
      first_token: Id of the token with which every output is made to begin, whatever its
        probability, which does not count; 0 for none. Models whose targets all begin with a symbol,
        such as BART, have one.
      forbid_unknown: Whether the unknown word may not be generated, but where a prefix dictates it.
        A readout that copies never generates it beside a source with words that its vocabulary
        lacks, which it can copy.
      no_repeat_ngram_size: No run of this many tokens occurs twice in an output; 0 for no limit.
        Where no token is left, the output ends, even before its shortest length.
      shortlist: Size of a shortlist of the vocabulary for every batch: outputs are made of this
        many of the most probable translations of each token of its sources, by the `data.lexicon`
        of the run, ...
      shortlist_frequent: ... and of this many of the most frequent tokens of the training text.
        Log-probabilities are those among the shortlist, and a source may be translated otherwise
        beside others. With a shortlist of 0, the whole vocabulary is open, as it always is in the
        reverse direction of a model of both.
      dtype: What the products of a search with weight matrices are computed in: `float32`, or
        `int8`, with scales for rows and columns (dynamic quantization), which takes less time on
        processors with instructions for it and changes log-probabilities a little.
      replace_unknown: Whether an unknown word of an output is written as the source word that it
        attended to most; for vocabularies that have unknown words.
      unknown_dictionary: A file of `source<TAB>target` lines: such a source word is written as its
        translation where it has one here.
    """

    method: str = setting("beam", choices=("greedy", "beam", "sample"))
    beam_size: int = setting(5, at_least=1, at_most=10_000)
    num_hypotheses: int = setting(1, at_least=1, at_most=10_000)
    max_length_factor: float = setting(2.0, at_least=0, at_most=1000)
    max_length_constant: int = setting(10, at_least=0, at_most=1_000_000)
    min_length_ratio: float = setting(0.0, at_least=0)
    min_length_constant: int = setting(0, at_least=0, at_most=1_000_000)
    length_normalization: str = setting("length", choices=("none", "length", "gnmt"))
    length_alpha: float = setting(1.0, at_least=0)
    coverage_penalty: str = setting("none", choices=("none", "gnmt", "summary"))
    coverage_beta: float = setting(0.2, above=0)
    coverage_stepwise: bool = setting(False)
    temperature: float = setting(1.0, at_least=1e-6, at_most=1e6)
    top_k: int = setting(0, at_least=0)
    top_p: float = setting(1.0, above=0, at_most=1)
    seed: int = setting(0, at_least=0, at_most=2**32 - 1)
    first_token: int = setting(0, at_least=0)
    forbid_unknown: bool = setting(False)
    no_repeat_ngram_size: int = setting(0, at_least=0)
    shortlist: int = setting(0, at_least=0)
    shortlist_frequent: int = setting(100, at_least=1)
    dtype: str = setting("float32", choices=("float32", "int8"))
    replace_unknown: bool = setting(False)
    unknown_dictionary: str = setting("", is_file=True)

    def __post_init__(self):
        if self.num_hypotheses > self.width:
            raise ValueError(
                f"num_hypotheses: expected at most {self.width} with method {self.method!r}"
                f"{f' and beam_size {self.beam_size}' if self.method == 'beam' else ''}"
                f", found {self.num_hypotheses}"
            )
        if not math.isfinite(self.max_length_factor) or not math.isfinite(self.min_length_ratio):
            raise ValueError("max_length_factor, min_length_ratio: expected finite numbers")
        if self.max_length_factor == 0 and self.max_length_constant == 0:
            raise ValueError(
                "max_length_constant: expected more than 0 where max_length_factor is 0, found 0"
            )
        if 0 < self.first_token < SpecialIds.COUNT:
            raise ValueError(
                f"first_token: expected 0 or an id from {SpecialIds.COUNT} on, those before being "
                f"special, found {self.first_token}"
            )
        if self.shortlist and self.first_token:
            raise ValueError(
                "shortlist: expected 0 where a first_token is told, which it may lack, found "
                f"{self.shortlist}"
            )
        self._check_coverage()
        self._check_unknown()

    def _check_coverage(self) -> None:
        if self.coverage_penalty != "none" and self.method == "greedy":
            raise ValueError(
                "coverage_penalty: expected 'none' with method 'greedy', which compares no "
                f"hypotheses, found {self.coverage_penalty!r}"
            )
        if not math.isfinite(self.coverage_beta):
            raise ValueError(f"coverage_beta: expected a finite number, found {self.coverage_beta}")
        if self.coverage_stepwise and (self.method != "beam" or self.coverage_penalty == "none"):
            raise ValueError(
                "coverage_stepwise: expected only with method 'beam' and a coverage_penalty, found "
                f"it with {self.method!r} and {self.coverage_penalty!r}"
            )

    def _check_unknown(self) -> None:
        if self.replace_unknown and self.forbid_unknown:
            raise ValueError(
                "replace_unknown: expected only without forbid_unknown, which leaves no unknown "
                "words, found both"
            )
        if self.unknown_dictionary and not self.replace_unknown:
            raise ValueError(
                "unknown_dictionary: expected only with replace_unknown, found "
                f"{self.unknown_dictionary!r} without it"
            )

    @property
    def width(self) -> int:
        """Hypotheses of a source that a search follows at a time."""
        return {"greedy": 1, "beam": self.beam_size}.get(self.method, self.num_hypotheses)

    @property
    def needs_alignment(self) -> str | None:
        """The first field that asks for attention to source positions, None if none does."""
        if self.coverage_penalty != "none":
            return "coverage_penalty"
        return "replace_unknown" if self.replace_unknown else None

    def longest(self, source_length: int) -> int:
        """Returns the most tokens that an output of a source of this length may have."""
        most = math.floor(self.max_length_factor * source_length + ROUNDING)
        return max(1, most + self.max_length_constant)
