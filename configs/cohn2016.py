"""Structural biases: Cohn, Hoang, Vymolova, Yao, Dyer and Haffari 2016, at small size.

"Incorporating structural alignment biases into an attentional neural translation model", NAACL
2016.

The model of `configs/bahdanau2015.py` with position bias, Markov condition and local fertility in
the attention score; each is a switch, such as --config.model.attention.markov=False. The penalty
for words that are not attended to about once is an objective,
--config.objectives.coverage_penalty.weight=0.05. Global fertility is one too, and a hidden layer
that predicts it; the paper adds both in a second stage, once the model is trained:

    --config.model.predictors.fertility.hidden_dim=128
    --config.objectives.global_fertility.weight=1.0
    --config.objectives.global_fertility.schedule.start_steps=2000

The paper's model reads with stacked LSTMs, and is trained by SGD, sentence by sentence. Its program
counts positions from BOS and asks no attention for boundaries:

    --config.model.attention.boundary=true
    --config.objectives.coverage_penalty.with_boundaries=false

Command:  python -m launch.train --config=configs/cohn2016.py:multi30k --workdir=runs/cohn2016
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, sigmorphon2021,
          pronunciations (one's own), conll2017, inflections (one's own) or smoke
Expected: not measured at this size; docs/results/coverage_vs_supervised.md has structural biases,
          global fertility and the coverage penalty in a model of half the width (Multi30k)
Time:     about forty minutes on two CPU cores for multi30k
"""

from ml_collections import ConfigDict

from configs import bahdanau2015


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config = bahdanau2015.get_config(argument)
    depth = config.model.attention.attention_dim
    config.model.attention = {"name": "structural_bias", "attention_dim": depth}
    return config
