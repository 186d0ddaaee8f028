"""How outputs are searched for, as a config states it."""

import dataclasses
import math

from attention_jax.configuration import setting


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
      max_length_constant: ... plus this many tokens.
      min_length_ratio: The end of the sentence is forbidden until an output has this times its
        source's length in tokens; 0.5 is what Bahdanau's code does.
      length_normalization: What the log-probability is divided by: `none`; `length`, the length
        to the power of alpha; `gnmt`, ((5 + length) / 6) to the power of alpha. With `beam` it
        decides which hypotheses are found, with `sample` their order, with `greedy` the score
        only.
      length_alpha: That alpha, unused with normalization `none`. GNMT uses 0.2; Bahdanau's code
        divides by the length itself, 1.
      temperature: Divides the logits before sampling; `sample` only.
      top_k: Samples among this many most probable tokens only, 0 for all; `sample` only.
      top_p: Samples among the fewest tokens that together have this probability; `sample` only.
      forbid_unknown: Whether the unknown word may not be generated.
    """

    method: str = setting("beam", choices=("greedy", "beam", "sample"))
    beam_size: int = setting(5, at_least=1)
    num_hypotheses: int = setting(1, at_least=1)
    max_length_factor: float = setting(2.0, at_least=0)
    max_length_constant: int = setting(10, at_least=0)
    min_length_ratio: float = setting(0.0, at_least=0)
    length_normalization: str = setting("length", choices=("none", "length", "gnmt"))
    length_alpha: float = setting(1.0, at_least=0)
    temperature: float = setting(1.0, above=0)
    top_k: int = setting(0, at_least=0)
    top_p: float = setting(1.0, above=0, at_most=1)
    forbid_unknown: bool = setting(False)

    def __post_init__(self):
        most = {"greedy": 1, "beam": self.beam_size}.get(self.method, self.num_hypotheses)
        if self.num_hypotheses > most:
            raise ValueError(
                f"num_hypotheses: expected at most {most} with method {self.method!r}"
                f"{f' and beam_size {self.beam_size}' if self.method == 'beam' else ''}"
                f", found {self.num_hypotheses}"
            )
        if not math.isfinite(self.max_length_factor) or not math.isfinite(self.min_length_ratio):
            raise ValueError("max_length_factor, min_length_ratio: expected finite numbers")
        if self.max_length_factor == 0 and self.max_length_constant == 0:
            raise ValueError(
                "max_length_constant: expected more than 0 where max_length_factor is 0, found 0"
            )

    def longest(self, source_length: int) -> int:
        """Returns the most tokens that an output of a source of this length may have."""
        return max(1, math.floor(self.max_length_factor * source_length) + self.max_length_constant)
