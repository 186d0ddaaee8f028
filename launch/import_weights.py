"""`python -m launch.import_weights` of the clone; `--help` says what it does."""

from attention_jax.commands.import_weights import run

if __name__ == "__main__":
    run()
