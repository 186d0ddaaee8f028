"""Smoke test documents: made-up reviews whose label hangs on two words, learnt in seconds.

A document has one or two sentences with a pair of words that tells the label, as a person would
mark them; all other words stand in documents of both labels.
"""

import dataclasses
import random
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.documents import DocumentConfig, document_of

TELLING = {
    "neg": ("quite dull", "very bad", "no fun"),
    "pos": ("quite good", "very fine", "so fun"),
}
WORDS = (
    "the a film plot actor scene story of and with it was is then there one two old new long quite "
    "very no so"
)
SIZES = {"train": 512, "validation": 64, "test": 64}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(DocumentConfig):
    """Made-up documents with labels, and where the words are that tell them."""

    name: str = setting("smoke_documents", choices=("smoke_documents",))
    lowercase: ClassVar[bool] = True

    def load(self) -> Corpus:
        """Returns the same documents on every call."""
        generator = random.Random(0)
        return {
            name: [made_up(generator, self.max_sentence_words) for _ in range(size)]
            for name, size in SIZES.items()
        }


def made_up(
    generator: random.Random, longest: int
) -> tuple[str, tuple[str], dict[str, tuple[tuple[int, int], ...]]]:
    """Makes up a document: its text, its label, and the spans of words that tell it."""
    label = generator.choice(sorted(TELLING))
    number = generator.randint(2, 5)
    telling = generator.sample(range(number), generator.randint(1, 2))
    sentences, spans, before = [], [], 0
    for place in range(number):
        words = generator.choices(WORDS.split(" "), k=generator.randint(2, 6))
        if place in telling:
            at, pair = generator.randint(0, len(words)), generator.choice(TELLING[label]).split(" ")
            words[at:at] = pair
            spans.append((before + at, before + at + len(pair)))
        sentences.append(" ".join(words))
        before += len(words)
    return document_of(sentences, longest), (label,), {"evidence": tuple(spans)}
