"""String transduction: what data sets share that turn letters into letters, or into phonemes."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.text.symbol_kinds import WITH_STEPS


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransductionConfig(DataConfig):
    """What every data set of strings has.

    Attributes:
      oracle_steps: Whether targets are actions, as the attention `step_pointer` needs them: a STEP
        stands wherever the next symbol comes from a later one of the source, as the links of an
        aligner, `ibm1` or `hmm`, say. `none` for targets as they are.

    Further, for all configs of a data set:
      symbols: Kinds of the symbols of sources and of targets.
    """

    symbols: ClassVar[tuple[str, str]] = ("characters", "symbols")
    oracle_steps: str = setting("none", choices=("none", "ibm1", "hmm"))

    @property
    def source_kind(self) -> str:
        """The kind of the source's symbols."""
        return self.symbols[0]

    @property
    def units(self) -> tuple[str, str]:  # type: ignore[override]
        """Kinds of the symbols of both vocabularies."""
        target = self.symbols[1]
        return self.source_kind, target if self.oracle_steps == "none" else WITH_STEPS[target]

    def finished(self, splits: Mapping[str, Split]) -> Mapping[str, Split]:
        """Returns the splits with STEPs among the ids of their targets, where these have some."""
        if self.oracle_steps == "none":
            return splits
        from attention_jax.data.oracle_steps import with_oracle_steps

        return with_oracle_steps(splits, self.oracle_steps)
