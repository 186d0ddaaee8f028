"""`python -m launch.train` of the clone; `--help` says what it does."""

from attention_jax.commands.train import run

if __name__ == "__main__":
    run()
