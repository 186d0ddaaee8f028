"""Rationales: Lei, Barzilay and Jaakkola 2016, on movie reviews with evidence marked by people.

"Rationalizing neural predictions", EMNLP 2016: a generator selects words, and a classifier reads
nothing else. As in the paper one sample is drawn, and the generator learns by REINFORCE; a moving
average of the cost is its baseline (--config.objectives.rationale.baseline=none is the paper's).
Otherwise: the classifier is that of configs/yang2016.py, and learns alone at first, from words
drawn at random; then the generator learns, too, and the price of a word follows the share that is
selected, until it is a twentieth (--config.objectives.rationale.target_share=0
--config.objectives.rationale.sparsity=3e-4 --config.training.metric=rationale/cost is the paper's
fixed price, and --config.objectives.rationale.schedule.start_steps=0
--config.training.freezing.parameters="()" --config.training.freezing.num_steps=0 its start; on so
few documents all words or none are then selected). A change between words costs half as much as a
selected word at first, and not twice as much (--config.objectives.rationale.coherence=2): where it
costs more, a generator, HardKuma above all, may go to all words first, and from there to next to
none.

The generator knows a word by itself and the two words on each side. On so few documents one that
reads sentences (--config.model.generator.encoder.name=recurrent, nearer to the paper's recurrent
convolutions, whose kernels have two words) tells documents apart by names, and so does a classifier
with a large vocabulary: rare words are unknown ones. Documents are longer than the paper's, so that
the classifier reads sentences apart.

Command:  python -m launch.train --config=configs/lei2016.py --workdir=runs/lei2016
          after the colon: eraser_movies, documents (your own: --config.data.train_table=FILE) or
          smoke; --config.model.generator.selector.name=recurrent, or hard_kuma for the form of
          Bastings, Aziz and Titov (2019), which needs no REINFORCE
Expected: docs/results/rationales.md
Time:     twelve minutes on one CPU core
Data:     ATTENTION_JAX_DATA names a directory with the folder eraser_movies
"""

from ml_collections import ConfigDict

from configs import yang2016


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    config = yang2016.get_config(argument)
    is_smoke = argument == "smoke"
    config.model.name = "rationalizer"
    config.model.generator = {
        "encoder": {"name": "average_pooling", "width": 5},
        "selector": {"name": "independent"},
    }
    config.training.mode = "min"
    if is_smoke:
        # Averages learn more slowly than seconds allow.
        config.model.generator.encoder = {
            "name": "recurrent", "cell": "gru_reset_before", "hidden_dim": 16,
        }  # fmt: skip
        # Attention passes over what tells nothing by itself, so that all words would be selected.
        for level in (config.model.words, config.model.sentences):
            level.pooling = {"name": "maximum"}
        # In nats for a word: a smoke document has few, and from .02 on none is selected.
        config.objectives = {"nll": {}, "rationale": {"sparsity": 0.007}}
        config.training.num_steps, config.training.metric = 200, "rationale/cost"
        return config
    config.data.vocabulary_size = 4_000
    alone = 150  # steps
    config.objectives = {
        "nll": {},
        "rationale": {
            "sparsity": 5e-4, "coherence": 0.5, "target_share": 0.05,
            "schedule": {"start_steps": alone},
        },
    }  # fmt: skip
    # Steps in place of epochs, so that few documents of one's own are not read too seldom.
    del config.training["num_epochs"]
    config.training.num_steps, config.training.metric = 600, "rationale/cost_at_target"
    config.training.freezing = {"parameters": ("generator",), "num_steps": alone}
    # What is learnt of so few documents is best for a short while.
    config.training.evaluate_every_steps = config.training.checkpoint_every_steps = 25
    return config
