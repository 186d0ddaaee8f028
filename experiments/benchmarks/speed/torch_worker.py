"""A contender in PyTorch of the speed benchmark, a process whose task is one JSON argument.

Fields: `kind` (train, attention or beam), `sizes`, `threads`, `platform`, and what the kind needs;
see the functions below. `compiled` puts the same code under `torch.compile`, and `graphs` under
that with CUDA graphs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from experiments.benchmarks.speed import serve, workloads
from experiments.benchmarks.speed.torch_beam import beam_search, continuations
from experiments.benchmarks.speed.torch_model import (
    Seq2Seq,
    TorchMemory,
    additive_attention,
    load_parameters,
    torch_batch,
)
from experiments.benchmarks.speed.torch_transformer import Transformer, load_transformer


def make_batches(task: dict[str, Any]) -> list[workloads.Sentences]:
    """Returns the batches of a task, and with `count` an even sample of them.

    `batching` is `whole` (one batch of everything), `random` or `sorted`.
    """
    sentences = workloads.Sentences.load(task["data"])
    if task["batching"] == "whole":
        return [sentences]
    deal = {"random": workloads.random_batches, "sorted": workloads.sorted_batches}
    batches = [sentences.batch(rows) for rows in deal[task["batching"]](sentences, task["batch"])]
    areas = [batch.target.size + batch.source.size for batch in batches]
    return [batches[index] for index in workloads.sample_evenly(areas, task["count"])]


def total_units(batches: Sequence[workloads.Sentences]) -> dict[str, int]:
    """Returns the real work in all batches together."""
    units = [batch.units() for batch in batches]
    return {name: sum(each[name] for each in units) for name in units[0]}


def make_model(task: dict[str, Any]) -> Seq2Seq | Transformer:
    """Builds the model whose sizes a task names, with its parameters."""
    sizes = workloads.sizes_of(task["sizes"])
    if isinstance(sizes, workloads.TransformerSizes):
        model = Transformer(sizes)
        load_transformer(model, task["parameters"])
        return model
    model = Seq2Seq(sizes)
    load_parameters(model, task["parameters"])
    return model


def train(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Trains on every batch once: forward, backward, Adam."""
    batches = make_batches(task)
    model = make_model(task)
    loss_of = model
    if task["compiled"] and task["batching"] == "whole":
        loss_of = compiled(model, task)
    elif task["compiled"]:
        # Lengths differ: the loop over them stays, and what it calls is compiled for any length.
        model.step = torch.compile(model.step, dynamic=True)
        model.head = torch.compile(model.head, dynamic=True)
    first = workloads.Sentences.load(task["data"]).first(task["batch"])
    check = loss_of(torch_batch(first)).item()
    work = training_work(model, loss_of, [torch_batch(batch) for batch in batches])
    return work, {"units": total_units(batches), "check": check}


def compiled(function: Any, task: dict[str, Any]) -> Any:
    """Puts a function under `torch.compile`; with `graphs`, kernels are launched as one graph."""
    return torch.compile(function, mode="reduce-overhead" if task.get("graphs") else None)


def training_work(
    model: torch.nn.Module, loss_of: Callable[[Any], torch.Tensor], batches: Sequence[Any]
) -> Callable[[], list[float]]:
    """Returns the work of a trainer: a step on each batch, giving the losses.

    Losses are read when all steps have been launched, as a step that waits for its own lets an
    accelerator idle.
    """
    # Fused: one kernel updates all parameters, where the plain form loops over them in Python.
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    model.train()

    def work() -> list[float]:
        losses = []
        for batch in batches:
            optimizer.zero_grad()
            loss = loss_of(batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().clone())
        return [loss.item() for loss in losses]

    return work


def attention(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Additive or dot-product attention alone, forward and backward."""
    torch.manual_seed(0)
    if task["score"] == "dot":
        return dot_attention(task)
    batch, queries, slots, depth = task["shape"]
    query, keys, values, energy = (
        torch.randn(*shape, requires_grad=True)
        for shape in (
            (batch, queries, depth),
            (batch, slots, depth),
            (batch, slots, depth),
            (depth,),
        )
    )
    attend = compiled(additive_attention, task) if task["compiled"] else additive_attention

    def work() -> None:
        for array in (query, keys, values, energy):
            array.grad = None
        attend(query, TorchMemory(keys, values, None), energy).sum().backward()

    return work, {"units": {"calls": 1}}


def dot_attention(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """PyTorch's fused dot-product attention alone, forward and backward."""
    arrays = [torch.randn(*task["shape"], requires_grad=True) for _ in range(3)]

    def work() -> None:
        for array in arrays:
            array.grad = None
        functional.scaled_dot_product_attention(*arrays).square().sum().backward()

    return work, {"units": {"calls": 1}}


def beam(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Beam search for a batch of sentences, with outputs of `shortest` to `longest` tokens.

    Compiled, the batch has one shape and the number of positions before a step any, so that the
    step reads no more of its past than there is.
    """
    sentences = workloads.Sentences.load(task["data"])
    model = make_model(task).eval()
    batch, limits = torch_batch(sentences), (task["shortest"], task["longest"])
    step = compiled(continuations, task) if task["compiled"] else continuations

    def work() -> list[list[float]]:
        return beam_search(model, batch, task["width"], *limits, step).log_probs.tolist()

    return work, {"units": {"sentences": len(sentences)}, "check": work()}


def run(kinds: dict[str, Callable[[dict[str, Any]], tuple[Callable[[], Any], dict]]]) -> None:
    """Sets up the work that the task names, does it once to warm up, and serves."""
    channel, task = serve.open_channel(), serve.read_task()
    # Before there is any other thread, as those inherit it: with numbers too small to be normal a
    # processor computes slowly. XLA flushes them, too.
    torch.set_flush_denormal(True)
    torch.set_num_threads(task["threads"])
    on_gpu = task.get("platform", "cpu") == "cuda"
    if on_gpu:
        torch.set_default_device("cuda")
        torch.set_float32_matmul_precision("high")  # TensorFloat-32, which JAX takes there, too
    work, ready = kinds[task["kind"]](task)
    ready["rise_mib"] = serve.rise_of_memory(work)
    if on_gpu:
        ready["finish"] = torch.cuda.synchronize
        ready["device_mib"] = torch.cuda.max_memory_allocated() / 2**20
    serve.serve(channel, work, version=f"torch {torch.__version__}", **ready)


if __name__ == "__main__":
    run({"train": train, "attention": attention, "beam": beam})
