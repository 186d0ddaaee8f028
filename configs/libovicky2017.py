"""Several sources for one decoder: Libovický and Helcl 2017, from English and French to German.

"Attention strategies for multi-source sequence-to-sequence learning", ACL 2017.

As in the paper: a bidirectional GRU for each source, a conditional GRU as decoder, additive
attention, combined hierarchically; --config.model.attention.name=flat is the paper's other way, and
=concatenated its baseline. Otherwise: text only, at the size of a small corpus, subwords that the
sources share, and a decoder that starts from the first source instead of from both.

The Transformer's strategies (Libovický, Helcl and Mareček 2018) are `transformer` after the colon,
for multi30k: parallel, or --config.model.attention.name=serial, flat or hierarchical. The same data
and vocabulary for a model that reads the first source alone are multi30k_alone, parallel_alone and
smoke_alone.

Command:  python -m launch.train --config=configs/libovicky2017.py:multi30k \
              --workdir=runs/libovicky2017
          after the colon: multi30k, parallel (one's own text, with
          --config.data.further.second.train=FILE beside its two files), smoke, transformer,
          multi30k_alone, parallel_alone or smoke_alone
Expected: not measured at this size; `python -m experiments.several_sources` compares the ways. The
          paper's tasks are captions with pictures and automatic post-editing
Time:     not measured; a second source makes a step about half as long again
"""

from ml_collections import ConfigDict

from configs import common, vaswani2017

_ALONE = "_alone"


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set, or for the Transformer."""
    alone = tuple(f"{name}{_ALONE}" for name in common.FURTHER)
    argument = common.choose(argument, "multi30k", (*common.FURTHER, "transformer", *alone))
    if argument == "transformer":
        return _transformer()
    config, data_name = common.experiment(argument.removesuffix(_ALONE))
    config.model = common.gru_translator(
        {
            "name": "hierarchical",
            "score": {"name": "bahdanau", "attention_dim": 128},
            "over": {"name": "bahdanau", "attention_dim": 128},
        }
    )
    config = common.add_source(common.finish(config, data_name), data_name)
    if argument.endswith(_ALONE):
        del config.model.sources[common.FURTHER[data_name]]
        config.model.attention = config.model.attention.score
    return config


def _transformer() -> ConfigDict:
    config = vaswani2017.get_config("multi30k")
    heads = config.model.attention.copy_and_resolve_references()
    config.model.attention = {"name": "parallel", "score": heads}
    return common.add_source(config, "multi30k")
