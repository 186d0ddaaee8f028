"""Small pictures for tests: coloured squares in a corner, and the words for them."""

import itertools

import numpy as np
from PIL import Image

COLOURS = {"red": (220, 30, 30), "green": (20, 160, 40), "blue": (30, 40, 200)}
PLACES = {"left": 0, "right": 8}
HEIGHT, WIDTH = 8, 16


def draw_squares(folder, shades=4):
    """Writes `shades` images of each colour and place, and a table of their captions."""
    folder.mkdir(exist_ok=True)
    rows = []
    for number in range(shades):
        for (colour, rgb), (place, left) in itertools.product(COLOURS.items(), PLACES.items()):
            pixels = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
            pixels[1:7, left + 1 : left + 7] = np.asarray(rgb) + 2 * number
            name = f"{colour}_{place}_{number}.png"
            Image.fromarray(pixels).save(folder / name)
            rows.append(f"{name}\t{colour} square, {place}\n")
    table = folder / "captions.tsv"
    table.write_text("".join(rows))
    return table
