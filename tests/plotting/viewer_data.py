"""What a viewer's page was given, read back from its file."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.plotting.viewer import LEVELS


def page_data(path: Path) -> dict[str, Any]:
    """Returns the data of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text())
    return json.loads(found[1])


def view_weights(sentence: dict[str, Any], view: int) -> np.ndarray:
    """Returns the weights of a sentence in a view, `T S`."""
    given = sentence["views"][view]
    levels = np.frombuffer(base64.b64decode(given["weights"]), np.uint8) * given["scale"] / LEVELS
    return levels.reshape(-1, len(sentence["source"]))
