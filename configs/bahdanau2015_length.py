"""RNNsearch against RNNencdec by sentence length, at the size of a small corpus.

Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and translate",
ICLR 2015, table 1 and the length figure. `experiments/bahdanau2015_length.py` varies
`model.attention` and the longest training source; this file is what all of its runs share. It
differs from bahdanau2015.py in size only: small layers and few updates, so that twelve runs take
about an hour on two cores.

Command:  python -m experiments.bahdanau2015_length --jobs=2    (all runs, then the table)
          python -m launch.train --config=configs/bahdanau2015_length.py:multi30k \
              --workdir=runs/length    (one run: attention, sentences of all lengths)
          after the colon: multi30k, tatoeba, parallel (one's own text) or smoke
Expected: attention above the fixed vector, the more so the longer the sentence; see
          docs/results/bahdanau2015_length.md
Time:     about seven minutes a run on one CPU core
"""

from ml_collections import ConfigDict

from configs import common


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    argument = common.choose(argument, "multi30k", ("multi30k", "tatoeba", "parallel", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section(argument)
    if argument != "smoke":
        config.data.batch_size = 64
        config.data.num_buckets = 8
        config.data.subwords.size = 4000
    config.model = {
        "name": "rnn_seq2seq",
        "source_embedding_dim": 128,
        "target_embedding_dim": 128,
        "encoder": {
            "name": "recurrent",
            "cell": "gru_reset_before",
            "hidden_dim": 128,
            "direction": "bidirectional",
        },
        "attention": {"name": "bahdanau", "attention_dim": 128},
        "decoder": {
            "name": "bahdanau",
            "cell": "gru_reset_before",
            "hidden_dim": 256,
            "bridge": "backward",
            "readout": "maxout",
            "readout_dim": 128,
        },
        "embedding_dropout": 0.1,
        "output_dropout": 0.2,
        "initialization": {"name": "default"},
    }
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_steps": 2000,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 1000,
        "checkpoint_every_steps": 1000,
    }
    config.search = {"method": "beam", "beam_size": 5, "min_length_ratio": 0.5}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 4}
    return common.finish(config, argument)
