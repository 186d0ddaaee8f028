"""The Transformer: Vaswani et al. 2017, in the paper's sizes and at that of small corpora.

"Attention is all you need", NIPS 2017.

As in the paper: sinusoidal positions, scaled dot-product heads, one vocabulary whose embedding is
also the output matrix, Adam with beta2 0.98, label smoothing; in the large forms, too, checkpoint
averaging and beam search with the GNMT length penalty. For small corpora: four narrow layers,
normalisation before each sublayer, stronger dropout, and a cosine schedule.

One override changes all heads, such as --config.model.attention.score.name=bahdanau for additive
ones, luong_general or local_m. Later papers' changes are `model.attention.refinements`, by the
names of the files in attention_jax/layers/refinements.

Command:  python -m launch.train --config=configs/vaswani2017.py:multi30k \
              --workdir=runs/vaswani2017
          after the colon: multi30k, tatoeba, parallel (one's own text), cmudict, conll2017 and
          others of words, smoke; multi30k_lowercased, the recipe of transformer_tiny for the
          corpus in lower case; or the paper's own sizes for one's own text: base (65M parameters)
          and big (213M)
Expected: multi30k 38.0 BLEU, three seeds from 37.8 to 38.4, see
          docs/results/transformer_vs_rnn.md; the paper's own corpora are WMT'14 (27.3 BLEU
          English-German with the base form, 28.4 with the big one)
Time:     40 minutes on one CPU core for multi30k; base and big want accelerators
"""

from ml_collections import ConfigDict

from configs import common

# Layers, depth, depth of the feed-forward layers, heads, dropout, updates, checkpoints averaged,
# and the updates between them: ten minutes there, in which base makes 1,500 and big about 600.
_PAPER = {
    "base": (6, 512, 2048, 8, 0.1, 100_000, 5, 1500),
    "big": (6, 1024, 4096, 16, 0.3, 300_000, 20, 600),
}


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set, or one of the paper's."""
    known = (*common.DATA_SETS, common.LOWERCASED, *_PAPER)
    argument = common.choose(argument, "multi30k", known)
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section("parallel" if argument in _PAPER else argument)
    if "subwords" in config.data:
        config.data.subwords.joint = True
    config.model = transformer(num_layers=4, depth=128, width=256, num_heads=4, dropout=0.3)
    for stack in (config.model.sources.source.encoder, config.model.decoder):
        stack.norm_order = "pre"
    # Letters and phonemes, or made-up sides, share no vocabulary: only the target's is tied.
    if "subwords" not in config.data:
        config.model.tie_embeddings = "target"
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 2e-3, "beta2": 0.98, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 800, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 30.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 250,
    }
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {"splits": ("validation", "test"), "num_heat_maps": 8}
    if argument in _PAPER:
        return _as_in_the_paper(config, *_PAPER[argument])
    if argument == common.LOWERCASED:
        return _tiny(config)
    if argument == "smoke":
        config.model = transformer(num_layers=2, depth=32, width=64, num_heads=2, dropout=0.0)
        config.model.tie_embeddings = "target"
        return common.make_smoke(config)
    if argument in common.INFLECTIONS:
        return common.finish(_for_few_words(config), argument)
    config.data.batch_size = 128 if argument != "cmudict" else 256
    return common.finish(config, argument)


def _tiny(config: ConfigDict) -> ConfigDict:
    """Adapts the config to the recipe of fairseq's `transformer_tiny` for Multi30k.

    Source: Wu et al. 2021, Good for misconceived reasons (ACL), section 4, without pictures: 4,096
    tokens a batch, 8,000 updates at most, the mean of the last ten checkpoints. Those are an epoch
    apart there, about a hundred updates.
    """
    for stack in (config.model.sources.source.encoder, config.model.decoder):
        stack.norm_order = "post"
    config.data.subwords.size = 10_000
    config.data.update(batch_unit="tokens", batch_size=4096)
    config.optimizer.update(learning_rate=2.53, clip_norm=0.0)  # 0.005 at the end of the warm-up
    config.schedule = {"name": "noam", "model_depth": 128, "warmup_steps": 2000}
    config.training.update(num_steps=8000, checkpoint_every_steps=100, keep_latest=10)
    del config.training.num_epochs
    config.training.averaging = {"name": "checkpoints", "count": 10}
    return config


def _for_few_words(config: ConfigDict) -> ConfigDict:
    """Adapts the config to a thousand words, which have to be read more often and in small batches.

    Source: fields chosen by exact match of the validation words, Turkish with 1,000 pairs.
    """
    for stack in (config.model.sources.source.encoder, config.model.decoder):
        stack.feed_forward_dim = 512
    config.data.batch_size = 32
    config.optimizer.learning_rate = 1e-3
    config.schedule.warmup_steps = 400
    config.training.update(checkpoint_every_steps=500, metric="exact_match", mode="max")
    config.evaluation.num_validation_examples = 1000
    return config


def transformer(
    num_layers: int, depth: int, width: int, num_heads: int, dropout: float
) -> ConfigDict:
    """Returns a Transformer with the paper's choices."""
    stack = {"num_layers": num_layers, "feed_forward_dim": width, "dropout": dropout}
    return ConfigDict(
        {
            "name": "encoder_decoder",
            "target_embedding_dim": depth,
            "sources": {
                "source": {
                    "input": {"name": "tokens", "embedding_dim": depth},
                    "encoder": {"name": "self_attention", **stack},
                }
            },
            "attention": {
                "name": "multi_head",
                "num_heads": num_heads,
                "head_dim": depth // num_heads,
                "score": {"name": "scaled_dot"},
            },
            "decoder": {"name": "transformer", **stack},
            "tie_embeddings": "all",
            "initialization": {"name": "xavier"},
        }
    )


def _as_in_the_paper(
    config: ConfigDict,
    num_layers: int,
    depth: int,
    width: int,
    num_heads: int,
    dropout: float,
    num_steps: int,
    num_averaged: int,
    spacing: int,
) -> ConfigDict:
    """Returns the config with the paper's sizes, schedule and search (section 5 and table 3)."""
    config.model = transformer(num_layers, depth, width, num_heads, dropout)
    config.data.subwords.size = 37_000
    config.data.batch_unit = "tokens"
    config.data.batch_size = 25_000  # target positions, with their padding
    config.data.max_source_length = config.data.max_target_length = 256
    config.optimizer.update({"learning_rate": 1.0, "epsilon": 1e-9, "clip_norm": 0.0})
    config.schedule = {"name": "noam", "model_depth": depth, "warmup_steps": 4000}
    config.training.update(
        {
            "num_steps": num_steps,
            "keep_latest": num_averaged,
            "evaluate_every_steps": 5000,
            "checkpoint_every_steps": spacing,
        }
    )
    del config.training.num_epochs
    # Assigned, for an update would keep the decay of the moving average beside it.
    config.training.averaging = {"name": "checkpoints", "count": num_averaged}
    config.search = {
        "method": "beam",
        "beam_size": 4,
        "length_normalization": "gnmt",
        "length_alpha": 0.6,
        "max_length_factor": 1.0,
        "max_length_constant": 50,
    }
    return config
