"""Attention viewer: one interactive HTML file that needs nothing but a browser.

The page is assembled from the template, styles and scripts in `viewer_page/`, with the data as
JSON. Weights are one byte each; the page shows the same colours as `heat_map`.
"""

import base64
import dataclasses
import hashlib
import html
import importlib.resources
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_jax.data.pictures import Canvas
from attention_jax.plotting.figure import (
    ATTENTION,
    ATTENTION_ON_DARK,
    TRUTH,
    TRUTH_ON_DARK,
)
from attention_jax.runs.files import replacing

LEVELS = 255
_ROUNDING = 1e-3  # by how much a weight may lie outside of 0 to 1, as sums in half precision do
MOST_SOUND = 6 * 2**20  # bytes of all sounds of a page: five minutes at 8 kHz
_STYLES = ("page.css", "pictures.css")
# Joined to a single script, in which every function can call every other.
_SCRIPTS = (
    "model.js",
    "statistics.js",
    "elements.js",
    "state.js",
    "order.js",
    "list.js",
    "hover.js",
    "matrix.js",
    "links.js",
    "looked.js",
    "heard.js",
    "sentence.js",
    "controls.js",
    "keyboard.js",
    "main.js",
)

_COLOURS = {
    "attention": ATTENTION,
    "truth": TRUTH,
    "attention_on_dark": ATTENTION_ON_DARK,
    "truth_on_dark": TRUTH_ON_DARK,
}

Link = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class ViewerSentence:
    """A sentence of the viewer: what all views of it share.

    Attributes:
      source: S tokens, without padding.
      target: The tokens that gold links refer to, which are also those of every view without tokens
        of its own; empty where all views have their own.
      key: Its name, such as its number in a test set; by default its index.
      reference: The reference as text, shown above the pictures.
      sure: Sure gold links, (source, target) pairs from 0 as in Pharaoh format.
      possible: Possible gold links; sure ones need not be repeated.
      scores: Finite numbers by name that are the same in all views; the page sorts by them.
      text: The source as text, without signs such as EOS; if empty, its tokens are joined.
      canvas: The source as a picture or spectrogram, with the place of each of its tokens; None if
        it has none.
    """

    source: Sequence[str]
    target: Sequence[str] = ()
    key: str = ""
    reference: str = ""
    sure: Iterable[Link] = ()
    possible: Iterable[Link] = ()
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    text: str = ""
    canvas: Canvas | None = None


@dataclasses.dataclass(frozen=True)
class ViewedAttention:
    """The attention of one sentence in one view.

    Attributes:
      weights: `T S` from 0 to 1, without padding.
      target: T tokens of this view's own output; None for those of the sentence, as with forced
        decoding.
      output: The output as text, shown beside the reference.
      scores: Finite numbers by name that belong to this view, such as its AER.
      starts: When words begin by this attention, in seconds, where the source is sound.
    """

    weights: Float[np.ndarray, "T S"]
    target: Sequence[str] | None = None
    output: str = ""
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    starts: Sequence[float] = ()


def write_viewer(
    path: str | os.PathLike,
    title: str,
    sentences: Sequence[ViewerSentence],
    views: Mapping[str, Sequence[ViewedAttention]],
    about: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Attention viewer: writes the page atomically, replacing an existing one.

    Args:
      path: Of the page, usually `viewer.html`.
      title: Title of the page.
      sentences: The sentences, in order. Those that sound can be played, the first ones that have
        `MOST_SOUND` bytes together.
      views: Views by name, such as models, heads or steps of training. Each has the attention of
        every sentence, in the same order.
      about: Finite numbers of some of the views as a whole, by view and name, such as the AER of a
        head.

    Raises:
      ValueError: If shapes, links or numbers do not fit, naming the sentence and the view.
    """
    page = viewer_html(title, sentences, views, about)
    with replacing(path) as temporary:
        temporary.write_bytes(page)


def viewer_html(
    title: str,
    sentences: Sequence[ViewerSentence],
    views: Mapping[str, Sequence[ViewedAttention]],
    about: Mapping[str, Mapping[str, float]] | None = None,
) -> bytes:
    """Attention viewer: returns the page; see `write_viewer` for the arguments."""
    style = _filled("\n".join(_asset(name) for name in _STYLES), _COLOURS)
    # In a block, so that no top-level name collides with one of the browser's globals.
    script = '"use strict";\n{\n' + "\n".join(_asset(name) for name in _SCRIPTS) + "}\n"
    parts = {
        "title": html.escape(title),
        "policy": _content_policy(style, script),
        "style": style,
        "script": script,
        "data": _embeddable(viewer_data(title, sentences, views, about)),
    }
    page = _filled(_asset("page.html"), parts)
    # Half of a surrogate pair cannot be encoded; as a backslash escape it is still valid JSON.
    return page.encode("utf-8", "backslashreplace")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    # In one pass, so that a placeholder inside a part, such as a title {{data}}, is left alone.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def viewer_data(
    title: str,
    sentences: Sequence[ViewerSentence],
    views: Mapping[str, Sequence[ViewedAttention]],
    about: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """Attention viewer: returns the page's data, ready for JSON; see `write_viewer`."""
    if not sentences or not views:
        raise ValueError(f"expected sentences and views, found {len(sentences)} and {len(views)}")
    for name, attentions in views.items():
        if len(attentions) != len(sentences):
            raise ValueError(
                f"view {name!r}: expected attention for {len(sentences)} sentences, "
                f"found {len(attentions)}"
            )
    about = about or {}
    unknown = [name for name in about if name not in views]
    if unknown:
        raise ValueError(f"about: expected names of views, found {unknown[0]!r}")
    return {
        "title": title,
        "ink": _ink(),
        "views": list(views),
        "about": [_scores(about.get(name, {}), f"view {name!r}") for name in views],
        "sentences": [
            {**_sentence(index, one, {name: views[name][index] for name in views}), "sound": sound}
            for index, (one, sound) in enumerate(zip(sentences, _sounds(sentences), strict=True))
        ],
    }


def quantise(weights: Float[np.ndarray, "T S"]) -> tuple[float, np.ndarray]:
    """Quantisation: returns a scale, and a byte for each weight with weight ~ scale * byte / 255.

    The scale is the largest weight. However thinly attention is spread over a long source, the
    error is at most 1/510 of that.
    """
    scale = float(np.max(weights, initial=0.0))
    return scale, np.rint(weights * (LEVELS / (scale or 1.0))).astype(np.uint8)


def _sentence(
    index: int, one: ViewerSentence, views: Mapping[str, ViewedAttention]
) -> dict[str, Any]:
    """Returns the data of a sentence, whose keys `viewer_page/model.js` reads."""
    where = f"sentence {index}" + (f" ({one.key})" if one.key else "")
    sure = {(int(source), int(target)) for source, target in one.sure}
    possible = {(int(source), int(target)) for source, target in one.possible} - sure
    for source, target in sorted(sure | possible):
        if not (0 <= source < len(one.source) and 0 <= target < len(one.target)):
            raise ValueError(
                f"{where}: expected gold links within {len(one.source)} source and "
                f"{len(one.target)} target tokens, found {source}-{target}"
            )
    return {
        "key": one.key or str(index),
        "source": list(one.source),
        "text": one.text,
        "target": list(one.target),
        "reference": one.reference,
        "sure": sorted(sure),
        "possible": sorted(possible),
        "scores": _scores(one.scores, where),
        "picture": one.canvas and _picture(one.canvas),
        "views": [_attention(view, one, f"{where}, view {name!r}") for name, view in views.items()],
    }


def _picture(canvas: Canvas) -> dict[str, Any]:
    """Returns a picture as PNG, and the rectangles of its places; of sound they are its columns."""
    # Imported here, for few pages have pictures.
    from PIL import Image

    pixels, packed = canvas.pixels, io.BytesIO()
    is_grey = (pixels == pixels[..., :1]).all()  # a third of the bytes
    Image.fromarray(pixels[..., 0] if is_grey else pixels).save(packed, "PNG", optimize=True)
    height, width = pixels.shape[:2]
    return {
        "png": base64.b64encode(packed.getvalue()).decode("ascii"),
        "width": width,
        "height": height,
        "boxes": [] if canvas.seconds else np.asarray(canvas.boxes).tolist(),
        "seconds": _brief(canvas.seconds),
        "starts": [_brief(start) for start in canvas.starts],
    }


def _sounds(sentences: Sequence[ViewerSentence]) -> Iterator[str | None]:
    """Yields what is heard of each sentence as WAV, while there is room for it in the page."""
    room = MOST_SOUND
    for one in sentences:
        content = one.canvas.sound() if one.canvas and one.canvas.sound and room > 0 else b""
        room -= len(content)
        heard = content if room >= 0 else b""
        yield base64.b64encode(heard).decode("ascii") or None


def _attention(view: ViewedAttention, one: ViewerSentence, where: str) -> dict[str, Any]:
    target = one.target if view.target is None else view.target
    weights = np.asarray(view.weights, np.float64)
    if weights.shape != (len(target), len(one.source)):
        raise ValueError(
            f"{where}: expected weights of shape ({len(target)}, {len(one.source)}) for the "
            f"tokens, found {weights.shape}"
        )
    # Asked this way round, for nan is neither inside nor outside of any range.
    if not np.all((weights >= -_ROUNDING) & (weights <= 1 + _ROUNDING)):
        wrong = weights[~((weights >= -_ROUNDING) & (weights <= 1 + _ROUNDING))]
        raise ValueError(f"{where}: expected weights from 0 to 1, found {wrong[0]}")
    scale, levels = quantise(np.clip(weights, 0.0, 1.0))
    return {
        # Sent once with the sentence rather than with each of many heads.
        "target": None if list(target) == list(one.target) else list(target),
        "scale": _brief(scale),
        "weights": base64.b64encode(levels.tobytes()).decode("ascii"),
        "output": view.output,
        "scores": _scores(view.scores, where),
        "starts": [_brief(start) for start in view.starts],
    }


def _scores(scores: Mapping[str, float], where: str) -> dict[str, float]:
    for name, value in scores.items():
        if not math.isfinite(value):
            raise ValueError(f"{where}: expected a finite {name}, found {value}")
    return {name: _brief(value) for name, value in scores.items()}


def _brief(value: float) -> float:
    """Rounds to six significant digits: JSON would write all seventeen, many thousand times."""
    return float(f"{float(value):.6g}")


def _ink() -> list[float]:
    """Returns the opacity of ink for each level, from a weight of 0 to 1.

    As `figure.ATTENTION_MAP` has it on white; on a dark page, lighter ink of the same opacity is
    its counterpart.
    """
    return [round(level / LEVELS, 4) for level in range(LEVELS + 1)]


def _embeddable(value: Any) -> str:
    """Returns JSON that cannot end the script element in which it stands."""
    # `</script>` or `<!--` in a token would; an escaped character is the same one to JSON.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _content_policy(style: str, script: str) -> str:
    """Returns a content security policy: no network, and nothing but what the page itself has."""

    def source(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    own = f"style-src {source(style)}; script-src {source(script)}"
    return f"default-src 'none'; img-src data:; media-src data:; {own}"


def _asset(name: str) -> str:
    folder = importlib.resources.files("attention_jax.plotting") / "viewer_page"
    return (folder / name).read_text(encoding="utf-8")
