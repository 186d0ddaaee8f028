"""Random sentences and noisy copies of them, for scores that need many."""

import random

WORDS = "the a cat dog house sees likes small green of under with near old tree bird".split()


def sentences(number, seed=0, longest=25):
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, longest))) + "."
        for _ in range(number)
    ]


def noisy(originals, error, seed=0):
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) if draw.random() < error else word for word in text.split())
        for text in originals
    ]
