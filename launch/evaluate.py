"""`python -m launch.evaluate` of the clone; `--help` says what it does."""

from attention_jax.commands.evaluate import run

if __name__ == "__main__":
    run()
