"""What `launch/local.sh` of the clone runs; `--help` says what it does."""

from attention_jax.commands.local import run

if __name__ == "__main__":
    run()
