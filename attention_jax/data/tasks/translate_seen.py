"""Multimodal translation: of a text beside a picture, judged by BLEU, chrF and exact match.

A user's pictures are paths of image files, a line for each text.
"""

from collections.abc import Sequence
from typing import Any

from attention_jax.data.captions import BESIDE, read_once
from attention_jax.data.field import SOURCE, TARGET
from attention_jax.data.pictures import Cells
from attention_jax.data.task import Task
from attention_jax.data.tasks import caption
from attention_jax.data.tasks.translate import attention_scores


def read_pictures(paths: Sequence[str], data_config: Any) -> Sequence[Cells]:
    """Reads image files, in the size of the data's.

    Raises:
      DataError: Naming the file that is no picture.
    """
    return read_once([path.strip("\r\n") for path in paths], data_config.read_file)


TASK = Task(
    label="texts beside pictures",
    fields=(SOURCE, BESIDE, TARGET),
    beside={BESIDE.name: read_pictures},
    scores=caption.scores,
    details=(attention_scores,),
    statistics=caption.statistics,
    metrics=caption.TASK.metrics,
    printed=caption.TASK.printed,
    shown=("bleu_1", "bleu_4", "chrf", "exact_match"),
)
