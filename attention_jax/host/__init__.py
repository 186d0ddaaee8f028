"""The host: names of programs, child processes and GPUs, with the standard library alone."""
