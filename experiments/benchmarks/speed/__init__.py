"""Speed benchmarks: training and decoding beside PyTorch and JoeyNMT.

`python -m experiments.benchmarks.speed.training`, `.decoding`, `.stability` and `.saving` measure;
the other modules are theirs. Every contender is a process with an interpreter of its own, so
nothing that a PyTorch process imports may import JAX: `workloads`, `serve` and the `torch_*`
modules need NumPy only.
"""
