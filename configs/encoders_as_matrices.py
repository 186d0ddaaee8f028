"""Sentences as matrices: one decoder over several encoders, at the size of a small corpus.

A source becomes one vector for each token, and a decoder attends to them. How much must the
vectors of a sentence know of one another for that? `experiments/encoders_as_matrices.py` varies
`model.sources.source.encoder`; this file is what all of its runs share. With the encoder that it
names, a bidirectional GRU, and additive attention, it is RNNsearch (Bahdanau, Cho and Bengio 2015)
with the decoder of Nematus, which starts from the mean of the matrix, so that it asks for no final
state.

Command:  python -m experiments.encoders_as_matrices --jobs=2    (all runs, then the table)
          python -m launch.train --config=configs/encoders_as_matrices.py:multi30k \
              --workdir=runs/matrices    (one run: the recurrent encoder)
          after the colon: multi30k, tatoeba, parallel (one's own text) or smoke
Expected: see docs/results/encoders_as_matrices.md
Time:     about seven minutes a run on one CPU core
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config, argument = common.experiment(argument)
    config.model = common.recurrent_model(
        encoder={"cell": "gru", "direction": "bidirectional"},
        attention={"name": "bahdanau", "attention_dim": 128},
        decoder={
            "name": "conditional_gru",
            # From the mean of the annotations: every encoder has one, not every one has final
            # states.
            "bridge": "mean",
        },
    )
    config.model.initialization = {"name": "default"}
    return common.finish(config, argument)
