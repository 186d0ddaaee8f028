"""What two processes do together, run by `test_processes.py` as `python -m tests.training.pair`.

Each writes what it has found to a file of the directory that the command line names.
"""

import dataclasses
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import jax
import numpy as np

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.config import AlignmentConfig
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.devices import processes
from attention_jax.errors import ConfigError, DataError, UserError
from attention_jax.objectives import build_objective
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.needed_fields import training_links
from attention_jax.training.preemption import Preempted, Preemption

TEXTS = [("a small house .", "ein kleines haus ."), ("the house", "das haus"),
         ("a book .", "ein buch ."), ("the small book", "das kleine buch")]  # fmt: skip


def exchange(folder):
    index = jax.process_index()
    value = {"process": index, "array": np.arange(5 + 2000 * index)}
    sizes = [len(each["array"]) for each in processes.gather(value)]
    return {"sizes": sizes, "first": processes.from_first(lambda: f"said by {index}")}


def errors(folder):
    found = []
    for guilty in (0, 1):
        try:
            with processes.agreed():
                if jax.process_index() == guilty:
                    raise DataError(f"found by {guilty}")
        except UserError as error:
            found.append(f"{type(error).__name__}: {error}")
    try:
        processes.from_first(_refuse)
    except UserError as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


def _refuse():
    if not processes.is_first():
        raise AssertionError("called by another process")
    raise ConfigError("refused")


def order(folder):
    """The first process makes a file; the other one finds it, and nobody waits the second time."""
    path, seen = folder / "made", []

    def make():
        seen.append(path.exists())
        if processes.is_first():
            time.sleep(0.3)
            path.write_text("made")

    for _ in range(2):
        processes.after_first(make, is_made=path.exists)
    return seen


def stream(folder):
    """A hash of the examples of two epochs, in the order in which they are trained on."""
    config = SmokeConfig(batch_size=24, num_buckets=4, max_train_examples=200)
    task = processes.after_first(
        lambda: build_task(config, folder / "smoke"), is_made=(folder / "smoke").exists
    )
    iterator = make_train_iterator(task, config, 3, jax.process_index(), jax.process_count())
    digest = hashlib.sha256()
    for _ in range(2 * iterator.batches_per_epoch):
        parts = processes.gather(next(iterator)["index"])
        digest.update(np.concatenate(parts).astype("<i4").tobytes())
    return digest.hexdigest()


def links(folder):
    """Word links are found by the first process and read by both."""
    sides = zip(*TEXTS, strict=True)
    if processes.is_first():
        for name, lines in zip(("source", "target"), sides, strict=True):
            (folder / name).write_text("".join(f"{line}\n" for line in lines))
    fields = {
        f"{split}_{side}": str(folder / side)
        for split in ("train", "validation", "test")
        for side in ("source", "target")
    }
    config = ParallelConfig(**fields, alignment=AlignmentConfig(method="ibm1"))
    config = dataclasses.replace(
        config, subwords=dataclasses.replace(config.subwords, kind="words")
    )
    objective = build_objective({"nll": {}, "supervised_alignment": {}})
    directory = RunDirectory(folder / "run", writes=processes.is_first())
    said = []
    task = processes.after_first(
        lambda: build_task(config, folder / "vocab"), is_made=(folder / "vocab").exists
    )
    found = processes.after_first(
        lambda: training_links(task, config, objective, directory, said.append),
        is_made=directory.links.exists,
    )
    return {"said": bool(said), "links": [each.tolist() for each in found]}


def preemption(folder):
    """SIGTERM to the second process: both learn of it at the same step, and leave with its code."""
    with Preemption().watching() as watch:
        for step in range(1, 10_000):
            if step == 7 and jax.process_index() == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if watch.requested(step):
                break
        code = None
        try:
            watch.leave()
        except Preempted as left:
            code = left.code
    return {"step": step, "code": code}


CASES = (exchange, errors, order, stream, links, preemption)


def main():
    folder = Path(sys.argv[1])
    with processes.joined():
        found = {case.__name__: case(folder) for case in CASES}
    (folder / f"{os.environ['ATTENTION_JAX_PROCESS_ID']}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
