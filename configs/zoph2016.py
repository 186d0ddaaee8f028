"""Multi-source translation: Zoph and Knight 2016, from English and French to German.

"Multi-source neural translation", NAACL 2016.

As in the paper: stacked LSTMs that read each source backward, whose final states start the decoder
together (`basic`, or --config.model.decoder.bridge=child_sum), local attention with a window of its
own in each source, both contexts beside the state in h~, input feeding, uniform initialisation.
Otherwise: two smaller layers, subwords that the sources share, and Adam instead of SGD. The same
data and vocabulary for a model that reads the first source alone are multi30k_alone, parallel_alone
and smoke_alone.

Command:  python -m launch.train --config=configs/zoph2016.py:multi30k --workdir=runs/zoph2016
          after the colon: multi30k, parallel (one's own text, with
          --config.data.further.second.train=FILE beside its two files), smoke, or one of these
          with _alone
Expected: not measured at this size; `python -m experiments.several_sources` compares the ways. The
          paper's own corpus is trilingual text of WMT 2014
Time:     not measured; a second source makes a step about half as long again
"""

from ml_collections import ConfigDict

from configs import common, luong2015


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    known = common.with_alone(tuple(common.FURTHER))
    data_name, is_alone = common.split_alone(common.choose(argument, "multi30k", known))
    config = luong2015.get_config(data_name)
    window = {"name": "local_p", "prediction_dim": 64, "score": {"name": "luong_general"}}
    config.model.attention = {"name": "concatenated", "score": window}
    config = common.add_source(config, data_name)
    if is_alone:  # which starts the decoder as luong2015 does
        return common.leave_first_alone(config, data_name)
    config.model.decoder.bridge = "basic"
    return config
