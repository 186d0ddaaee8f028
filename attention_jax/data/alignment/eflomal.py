"""Eflomal as a word aligner, where it is installed: the extra `align` of this package."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from attention_jax.data.alignment.bitext import Links, Sentence
from attention_jax.data.alignment.ibm1 import Report
from attention_jax.errors import UserError


def align(
    sources: Sequence[Sentence], targets: Sequence[Sentence], report: Report = lambda line: None
) -> list[Links]:
    """Word alignment by eflomal: links target words with source words by a fertility model.

    Args:
      sources: Sentences as words.
      targets: The translation of each.
      report: Called with a line before eflomal starts, which reports nothing itself.

    Returns:
      Links (source, target) of every pair. They are sampled: two runs may differ.

    Raises:
      UserError: If eflomal is not installed, or fails.

    Source:
      Ostling and Tiedemann 2016.
    """
    try:
        from eflomal import Aligner
    except ImportError:
        raise UserError(
            "eflomal: expected the package, found none; install it with "
            "pip install eflomal (it needs a C compiler), or use agreement or hmm"
        ) from None
    # eflomal takes pairs with words on both sides only.
    kept = [pair for pair in range(len(sources)) if sources[pair] and targets[pair]]
    links: list[Links] = [[] for _ in sources]
    if not kept:
        return links
    report("eflomal")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "links")
        try:
            Aligner().align(
                [" ".join(sources[pair]) + "\n" for pair in kept],
                [" ".join(targets[pair]) + "\n" for pair in kept],
                links_filename_fwd=str(output),
            )
            lines = output.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise UserError(f"eflomal: failed ({' '.join(str(error).split())})") from None
    if len(lines) != len(kept):
        raise UserError(f"eflomal: expected {len(kept)} lines of links, found {len(lines)}")
    for pair, line in zip(kept, lines, strict=True):
        if not re.fullmatch(r"(\s*[0-9]+-[0-9]+)*\s*", line):
            raise UserError(f"eflomal: expected links such as 0-1, found {line[:40]!r}")
        numbers = map(int, re.findall("[0-9]+", line))
        # One iterator twice: its numbers are taken in turn, which makes pairs of neighbours.
        links[pair] = list(zip(numbers, numbers, strict=True))
    return links
