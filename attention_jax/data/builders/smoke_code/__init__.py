"""Made-up code whose names no vocabulary has: what a model that copies learns in seconds.

A description has two names, `call f7q with x1z`, and the line of code has both, `f7q ( x1z )` here.
Names are drawn at random, so that nearly none of those of the test split has been seen.
"""

import dataclasses
import random
import string

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example
from attention_jax.data.code import CodeConfig
from attention_jax.data.config import Corpus, SubwordsConfig

SIZES = {"train": 1024, "validation": 64, "test": 64}
# What is said of two names, and what it is in code.
FORMS = {
    "call {0} with {1}": "{0} ( {1} )",
    "call {1} of {0}": "{0} . {1} ( )",
    "substitute {0} for {1}": "{1} = {0}",
    "delete {1} from {0}": "del {0} [ {1} ]",
}
_LETTERS = string.ascii_lowercase


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(CodeConfig):
    """Made-up descriptions of made-up code, learnt in seconds by a model that copies.

    The vocabulary has room for the words of the forms, and not for names.
    """

    name: str = setting("smoke_code", choices=("smoke_code",))
    subwords: SubwordsConfig = setting(SubwordsConfig(kind="code", size=14))

    def load(self) -> Corpus:
        return made_up()


def made_up() -> dict[str, list[Example]]:
    """Returns the examples of every split, the same on every call."""
    generator = random.Random(0)

    def name() -> str:
        first, last = generator.choice(_LETTERS), generator.choice(_LETTERS)
        return f"{first}{generator.randrange(100)}{last}"

    def example() -> Example:
        description, code = generator.choice([*FORMS.items()])
        names = name(), name()
        return Example(description.format(*names), (code.format(*names),))

    return {split: [example() for _ in range(size)] for split, size in SIZES.items()}
