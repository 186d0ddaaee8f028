"""The project as a contender of the speed benchmark, a process whose task is one JSON argument.

Fields: `kind`, `sizes`, and what the kind needs. `train`, `attention` and `beam` measure;
`parameters` and `text` write what all contenders start from, and end.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from experiments.benchmarks.speed import serve
from experiments.benchmarks.speed.exchange import save_parameters
from experiments.benchmarks.speed.project_data import export_text, make_batches
from experiments.benchmarks.speed.project_model import (
    Trainer,
    batch_of,
    draw_parameters,
    make_attention_gradient,
    make_beam_search,
    make_dot_gradient,
    model_of,
)
from experiments.benchmarks.speed.workloads import Sentences, sizes_of

Work = Callable[[], Any]


def train(task: dict[str, Any]) -> tuple[Work, dict[str, Any]]:
    """Trains on every batch once: forward, backward, Adam."""
    sentences = Sentences.load(task["data"])
    batches, units = make_batches(task, sentences)
    trainer = Trainer.create(sizes_of(task["sizes"]))
    check = trainer.loss(batch_of(sentences.first(task["batch"])))

    def work() -> None:
        for batch in batches:
            trainer.train(batch)

    return work, {"units": units, "check": check, "finish": trainer.finish}


def attention(task: dict[str, Any]) -> tuple[Work, dict[str, Any]]:
    """Additive or dot-product attention alone, forward and backward."""
    if task["score"] == "dot":
        return dot_attention(task)
    batch, queries, slots, depth = task["shape"]
    shapes = ((batch, queries, depth), (batch, slots, depth), (batch, slots, depth), (depth,))
    keys = jax.random.split(jax.random.key(0), len(shapes))
    arrays = [jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]
    gradient = make_attention_gradient(task["naive"]).lower(*arrays).compile()
    temporaries = gradient.memory_analysis().temp_size_in_bytes / 2**20

    def work() -> None:
        jax.block_until_ready(gradient(*arrays))

    return work, {"units": {"calls": 1}, "temporaries_mib": temporaries}


def dot_attention(task: dict[str, Any]) -> tuple[Work, dict[str, Any]]:
    """Dot-product attention alone; with `naive` the library's in place of the project's."""
    keys, shape = jax.random.split(jax.random.key(0), 3), task["shape"]
    arrays = [jax.random.normal(key, shape) for key in keys]
    gradient = make_dot_gradient(task["naive"]).lower(*arrays).compile()
    temporaries = gradient.memory_analysis().temp_size_in_bytes / 2**20

    def work() -> None:
        jax.block_until_ready(gradient(*arrays))

    return work, {"units": {"calls": 1}, "temporaries_mib": temporaries}


def beam(task: dict[str, Any]) -> tuple[Work, dict[str, Any]]:
    """Beam search for a batch of sentences, with outputs of `shortest` to `longest` tokens."""
    sentences = Sentences.load(task["data"])
    model = model_of(sizes_of(task["sizes"]))
    params = draw_parameters(model, end_bias=task["end_bias"])
    batch = jax.device_put(batch_of(sentences))
    limits = (task["shortest"], task["longest"])
    decode = make_beam_search(model, task["width"], *limits, sentences.source.shape[1])

    def work() -> list[list[float]]:
        return jax.block_until_ready(decode(params, batch)).log_probs.tolist()

    return work, {"units": {"sentences": len(sentences)}, "check": work()}


def prepare(task: dict[str, Any]) -> None:
    """Writes what all contenders start from."""
    sizes, path = sizes_of(task["sizes"]), Path(task["path"])
    if task["kind"] == "parameters":
        end_bias = task.get("end_bias", 0.0)
        save_parameters(draw_parameters(model_of(sizes), end_bias=end_bias), path)
    else:
        export_text(path, Path(task["vocabulary_dir"]), sizes.vocabulary)


def main() -> None:
    """Does what the task names."""
    channel, task = serve.open_channel(), serve.read_task()
    if task["kind"] in ("parameters", "text"):
        prepare(task)
        return
    work, ready = {"train": train, "attention": attention, "beam": beam}[task["kind"]](task)
    before = serve.resident_memory()
    serve.reset_peak_memory()
    work()
    ready["rise_mib"] = serve.peak_memory() - before
    serve.serve(channel, work, version=f"jax {jax.__version__}", **ready)


if __name__ == "__main__":
    main()
