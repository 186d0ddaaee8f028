"""Speed benchmarks: training, decoding and starting beside PyTorch, JoeyNMT and CTranslate2.

`python -m experiments.benchmarks.speed.training`, `.decoding`, `.startup`, `.stability` and
`.saving` measure; the other modules are theirs. Every contender is a process with an interpreter of
its own, so nothing that a PyTorch process imports may import JAX: `workloads`, `serve`, the
`torch_*` and the `ctranslate2_*` modules need NumPy only.
"""
