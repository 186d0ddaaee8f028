"""`python -m launch.sweep` of the clone; `--help` says what it does."""

from attention_jax.commands.sweep import run

if __name__ == "__main__":
    run()
