"""Real text, read and batched by the project's own data pipeline."""

from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.data.batch_plan import FILLER, PlannedBatch, plan_epoch
from attention_jax.data.buckets import fit_buckets, fixed_rows
from attention_jax.data.builders.multi30k import Config as Multi30kConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.data.loading import build_task
from experiments.benchmarks.speed.project_model import batch_of
from experiments.benchmarks.speed.workloads import PAD, Sentences, sample_evenly


def export_text(path: Path, vocabulary_dir: Path, vocabulary: int) -> None:
    """Writes the training sentences of Multi30k, English to German, as subwords.

    Sentences longer than the pipeline's default limits are left out, here for all contenders.

    Args:
      path: The `.npz` file to write.
      vocabulary_dir: Where the vocabularies are kept.
      vocabulary: Symbols on either side at most.
    """
    config = Multi30kConfig(subwords=SubwordsConfig(size=vocabulary))
    split = build_task(config, vocabulary_dir).split("train")
    pairs = [
        (source, target)
        for source, target in zip(split.source_ids, split.target_ids, strict=True)
        if len(source) <= config.max_source_length and len(target) <= config.max_target_length
    ]
    Sentences.of_lists(*zip(*pairs, strict=True)).save(path)


def make_batches(
    task: dict[str, Any], sentences: Sentences
) -> tuple[list[dict[str, np.ndarray]], dict[str, int]]:
    """Returns the batches of a task and the real work in them.

    Args:
      task: `batching` is `whole` (one batch of everything) or `buckets`: of an epoch's batches
        of `batch` sentences, in at most `buckets` shapes, an even sample of `count`.
      sentences: What to batch.
    """
    if task["batching"] == "whole":
        return [batch_of(sentences)], sentences.units()
    plan = plan_bucketed(sentences, task["batch"], task["buckets"])
    # Batches are sampled by their size with padding, which decides how long they take.
    areas = [len(each.indices) * (each.source_length + each.target_length) for each in plan]
    batches = [_collate(sentences, plan[index]) for index in sample_evenly(areas, task["count"])]
    units = {
        "target tokens": int(sum(batch["target_mask"].sum() for batch in batches)),
        "sentences": int(sum((batch["index"] >= 0).sum() for batch in batches)),
    }
    return batches, units


def plan_bucketed(sentences: Sentences, batch_size: int, num_buckets: int) -> list[PlannedBatch]:
    """Plans an epoch as training does."""
    lengths = sentences.source_lengths, sentences.target_lengths
    return plan_epoch(0, 0, fit_buckets(*lengths, num_buckets, fixed_rows(batch_size)))


def _collate(sentences: Sentences, planned: PlannedBatch) -> dict[str, np.ndarray]:
    rows = planned.indices
    is_real = (rows != FILLER)[:, None]  # B 1; a filler row, index -1, would read the last sentence
    source = np.where(is_real, sentences.source[rows, : planned.source_length], PAD)
    target = np.where(is_real, sentences.target[rows, : planned.target_length], PAD)
    lengths = sentences.source_lengths[rows], sentences.target_lengths[rows]
    batch = batch_of(Sentences(source, lengths[0], target, lengths[1]))
    return {**batch, "index": rows.astype(np.int32)}
