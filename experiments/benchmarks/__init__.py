"""Benchmarks: speed, scaling and reliability, and a regression test of every number."""
