"""Several sources for one decoder: Libovický and Helcl 2017, from English and French to German.

"Attention strategies for multi-source sequence-to-sequence learning", ACL 2017.

As in the paper: a bidirectional GRU for each source, a conditional GRU as decoder, additive
attention, combined hierarchically; --config.model.attention.name=flat is the paper's other way, and
=concatenated its baseline. Otherwise: text only, at the size of a small corpus, subwords that the
sources share, and a decoder that starts from the first source instead of from both.

The Transformer's strategies (Libovický, Helcl and Mareček 2018) are `transformer` after the colon,
for multi30k: parallel, or --config.model.attention.name=serial, flat or hierarchical; and
--config.model.decoder.name=merged_transformer beside flat merges them with self-attention. The same
data and vocabulary for a model that reads the first source alone are multi30k_alone,
parallel_alone, smoke_alone and transformer_alone.

Command:  python -m launch.train --config=configs/libovicky2017.py:multi30k \
              --workdir=runs/libovicky2017
          after the colon: multi30k, parallel (one's own text, with
          --config.data.further.second.train=FILE beside its two files), smoke, transformer,
          transformer_smoke, or one of these with _alone
Expected: not measured at this size; `python -m experiments.several_sources` compares the ways. The
          paper's tasks are captions with pictures and automatic post-editing
Time:     not measured; a second source makes a step about half as long again
"""

from ml_collections import ConfigDict

from configs import common, vaswani2017

_TRANSFORMERS = {"transformer": "multi30k", "transformer_smoke": "smoke"}


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set, or for the Transformer."""
    known = common.with_alone((*common.FURTHER, *_TRANSFORMERS))
    name, is_alone = common.split_alone(common.choose(argument, "multi30k", known))
    data_name = _TRANSFORMERS.get(name, name)
    config = _transformer(data_name) if name in _TRANSFORMERS else _recurrent(data_name)
    config = common.add_source(config, data_name)
    return common.leave_first_alone(config, data_name) if is_alone else config


def _recurrent(data_name: str) -> ConfigDict:
    config, _ = common.experiment(data_name)
    config.model = common.gru_translator(
        {
            "name": "hierarchical",
            "score": {"name": "bahdanau", "attention_dim": 128},
            "over": {"name": "bahdanau", "attention_dim": 128},
        }
    )
    return common.finish(config, data_name)


def _transformer(data_name: str) -> ConfigDict:
    config = vaswani2017.get_config(data_name)
    heads = config.model.attention.copy_and_resolve_references()
    config.model.attention = {"name": "parallel", "score": heads}
    return config
