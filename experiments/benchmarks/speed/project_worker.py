"""The project as a contender of the speed benchmark, a process whose task is one JSON argument.

Fields: `kind`, `sizes`, and what the kind needs. `train`, `attention` and `beam` measure;
`parameters` and `text` write what all contenders start from, `hypotheses` what a search finds, and
end.

Parameters are written as named arrays that any framework can read:

  source_embedding, target_embedding   V E
  CELL_input, CELL_recurrent           rows of inputs or of hidden states, gates r z n side by side
  CELL_bias, CELL_candidate_bias       3H added to the projected input, H inside the reset
                                       for CELL in forward, backward, decoder; the decoder's input
                                       is the embedding, then the attentional state that is fed
  bridge, bridge_bias                  2H H, from both final states to the decoder's first
  query, key, energy                   H A, 2H A, A
  attentional                          3H H, rows of the hidden state, then of the context
  output, output_bias                  V H, V
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attention_jax.runs.checkpoints.weights import named_leaves
from attention_jax.search import Hypotheses
from attention_jax.types import Params
from experiments.benchmarks.flops import training_flops
from experiments.benchmarks.speed import serve
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

    flops = sum(training_flops(trainer.model, batch) for batch in batches)
    ready = {"units": units, "check": check, "finish": trainer.finish, "model_flops": flops}
    return work, ready


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
    """Beam search for a batch of sentences, with outputs of `shortest` to `longest` tokens.

    A `shortlist` has that many of the vocabulary's tokens, and `dtype` may be int8; what is found
    is then something else.
    """
    search, sentences = searching(task)

    def work() -> list[list[float]]:
        return jax.block_until_ready(search()).log_probs.tolist()

    ready, found = {"units": {"sentences": len(sentences)}}, work()
    is_exact = "shortlist" not in task and "dtype" not in task
    return work, {**ready, "check": found} if is_exact else ready


def searching(task: dict[str, Any]) -> tuple[Callable[[], Hypotheses], Sentences]:
    """Returns the beam search that a task names, and the sentences that it reads."""
    sentences = Sentences.load(task["data"])
    model = model_of(sizes_of(task["sizes"]))
    params = draw_parameters(model, end_bias=task["end_bias"])
    batch = jax.device_put(batch_of(sentences))
    limits = (task["shortest"], task["longest"])
    shortlist = np.arange(task["shortlist"]) if "shortlist" in task else None
    length = sentences.source.shape[1]
    dtype = task.get("dtype", "float32")
    decode = make_beam_search(model, task["width"], *limits, length, shortlist, dtype)
    return lambda: decode(params, batch), sentences


def prepare(task: dict[str, Any]) -> None:
    """Writes what all contenders start from."""
    sizes, path = sizes_of(task["sizes"]), Path(task["path"])
    if task["kind"] == "parameters":
        end_bias = task.get("end_bias", 0.0)
        save_parameters(draw_parameters(model_of(sizes), end_bias=end_bias), path)
    elif task["kind"] == "hypotheses":
        search, _ = searching(task)
        np.save(path, np.asarray(search().tokens))
    else:
        export_text(path, Path(task["vocabulary_dir"]), sizes.vocabulary)


def exchanged(params: Params) -> dict[str, np.ndarray]:
    """Returns the project's parameters under the names above; a Transformer's under its own."""
    if "bridge" not in params["decoder"]:
        return {name: np.asarray(leaf) for name, leaf in named_leaves(params).items()}
    decoder, encoder = params["decoder"], params["encoder"]
    attention, bridge = decoder["attention"], decoder["bridge"]["layer_0_hidden"]
    layer = dict(decoder["layer_0"])
    layer["input"] = np.concatenate([layer["input"], layer.pop("feed")])
    arrays = {name: params[name] for name in ("source_embedding", "target_embedding")}
    arrays |= {name: params[name] for name in ("output", "output_bias")}
    arrays |= {"bridge": bridge["kernel"], "bridge_bias": bridge["bias"]}
    arrays |= {
        "query": attention["query_kernel"],
        "key": attention["key_kernel"],
        "energy": attention["vector"],
        "attentional": np.concatenate([decoder["combine"]["state"], decoder["combine"]["context"]]),
    }
    cells = {
        "forward": encoder["layer_0_forward"],
        "backward": encoder["layer_0_backward"],
        "decoder": layer,
    }
    arrays |= {
        f"{cell}_{name}": array for cell, tree in cells.items() for name, array in tree.items()
    }
    return {name: np.asarray(array) for name, array in arrays.items()}


def save_parameters(params: Params, path: Path) -> None:
    """Writes the project's parameters where the other contenders read them."""
    np.savez(path, **exchanged(params))


def main() -> None:
    """Does what the task names."""
    channel, task = serve.open_channel(), serve.read_task()
    if task["kind"] in ("parameters", "hypotheses", "text"):
        prepare(task)
        return
    work, ready = {"train": train, "attention": attention, "beam": beam}[task["kind"]](task)
    ready["rise_mib"] = serve.rise_of_memory(work)
    device = jax.devices()[0]
    if device.platform != "cpu":
        ready["device"] = device.device_kind
        ready["device_mib"] = device.memory_stats()["peak_bytes_in_use"] / 2**20
    serve.serve(channel, work, version=f"jax {jax.__version__}", **ready)


if __name__ == "__main__":
    main()
