"""`python -m launch.align` of the clone; `--help` says what it does."""

from attention_jax.commands.align import run

if __name__ == "__main__":
    run()
