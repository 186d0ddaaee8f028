"""Luong, Pham and Manning 2015, tables 1, 4 and 6, at the size of a small corpus.

"Effective approaches to attention-based neural machine translation", EMNLP 2015.
`experiments/luong2015_ablation.py` varies the attention, input feeding, the reading direction and
dropout; this file is what all of its runs share. It differs from luong2015.py in size: one LSTM
layer a side and few updates; and parameters do not start uniformly within 0.1, which is slow in
so few updates.

Command:  python -m experiments.luong2015_ablation --jobs=2    (all runs, then the tables)
          python -m launch.train --config=configs/luong2015_ablation.py:multi30k \
              --workdir=runs/luong    (one run: global attention (general) with input feeding)
          after the colon: multi30k, tatoeba, parallel (one's own text) or smoke
Expected: docs/results/luong2015_ablation.md (25.0 BLEU for global attention (general))
Time:     five to six minutes a run on one CPU core
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    config, argument = common.experiment(argument)
    config.model = {
        "name": "encoder_decoder",
        "target_embedding_dim": 128,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 128},
                "encoder": {
                    "name": "recurrent",
                    "cell": "lstm",
                    "hidden_dim": 192,
                    "direction": "backward",
                },
            }
        },
        "attention": {"name": "luong_general"},
        "decoder": {
            "name": "luong",
            "cell": "lstm",
            "hidden_dim": 192,
            "attentional_dim": 192,
            "input_feeding": True,
            "bridge": "copy",
        },
        "embedding_dropout": 0.2,
        "output_dropout": 0.2,
        "initialization": {"name": "default"},
    }
    config.optimizer.clip_norm = 5.0
    config.training.update({"num_steps": 1200, "evaluate_every_steps": 600})
    del config.search.min_length_ratio
    return common.finish(config, argument)
