"""`python -m launch.compile_check` of the clone; `--help` says what it does."""

from attention_jax.commands.compile_check import run

if __name__ == "__main__":
    run()
