"""The programs: what `python -m launch.NAME` in the clone and `attention-NAME` elsewhere run."""
