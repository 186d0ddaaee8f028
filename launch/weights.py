"""`python -m launch.weights` of the clone; `--help` says what it does."""

from attention_jax.commands.weights import run

if __name__ == "__main__":
    run()
