"""Rationales: Lei, Barzilay and Jaakkola 2016, on movie reviews with evidence marked by people.

"Rationalizing neural predictions", EMNLP 2016: a generator selects words, and a classifier reads
nothing else. As in the paper a change between words costs twice as much as a selected word, one
sample is drawn, and the generator learns by REINFORCE; a moving average of the cost is its baseline
(--config.objectives.rationale.baseline=none is the paper's). Documents are longer than the paper's,
so that sentences are read apart, by GRUs, as in configs/yang2016.py.

Command:  python -m launch.train --config=configs/lei2016.py --workdir=runs/lei2016
          after the colon: eraser_movies, documents (your own: --config.data.train_table=FILE) or
          smoke; --config.model.generator.selector.name=recurrent, or hard_kuma for the form of
          Bastings, Aziz and Titov (2019), which needs no REINFORCE; with its price fixed it easily
          selects all words or none (see the objective's `coherence`)
Data:     ATTENTION_JAX_DATA names a directory with the folder eraser_movies
"""

from ml_collections import ConfigDict

from configs import yang2016


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    config = yang2016.get_config(argument)
    is_smoke = argument == "smoke"
    depth = 16 if is_smoke else 50
    config.model.name = "rationalizer"
    config.model.generator = {
        "encoder": {"name": "recurrent", "cell": "gru_reset_before", "hidden_dim": depth},
        "selector": {"name": "independent"},
    }
    for level in (config.model.words, config.model.sentences):
        level.pooling = {"name": "maximum"}
    # In nats for a word: a document of the smoke data has few, and from .02 on none is selected.
    config.objectives = {"nll": {}, "rationale": {"sparsity": 0.007 if is_smoke else 3e-4}}
    if is_smoke:
        config.training.num_steps = 200
    return config
