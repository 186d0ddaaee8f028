"""`python -m launch.translate` of the clone; `--help` says what it does."""

from attention_jax.commands.translate import run

if __name__ == "__main__":
    run()
