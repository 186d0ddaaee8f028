"""`python -m launch.score` of the clone; `--help` says what it does."""

from attention_jax.commands.score import run

if __name__ == "__main__":
    run()
