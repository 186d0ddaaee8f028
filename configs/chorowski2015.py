"""Location-aware attention: Chorowski, Bahdanau, Serdyuk, Cho and Bengio 2015, at small size.

"Attention-based models for speech recognition", NIPS 2015.

As in the paper: frames of log-mel features, a bidirectional encoder, and additive attention that
slides filters over its weights for the symbol before; a state that attends before it is updated,
and a maxout readout.
Otherwise: words or letters in place of phonemes, 40 bands and no energy or differences, one pyramid
level where the paper reads all frames, and smaller layers; Adam in place of AdaDelta, column norms
and weight noise; weights are a plain softmax, neither sharpened nor smoothed.

Command:  python -m launch.train --config=configs/chorowski2015.py --workdir=runs/chorowski2015
          after the colon: digits, recordings (one's own) or smoke, as in configs/chan2016.py
Expected: not measured
Time:     not measured
"""

from ml_collections import ConfigDict

from configs import chan2016


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config; `smoke` shrinks it to seconds."""
    config = chan2016.get_config(argument)
    model = config.model
    hidden = model.decoder.hidden_dim
    model.sources.source.encoder.levels = 1
    model.attention = {
        "name": "location_aware", "attention_dim": hidden, "filters": 10, "reach": 20,
    }  # fmt: skip
    model.decoder = {
        "name": "bahdanau",
        "cell": "gru",
        "hidden_dim": hidden,
        "bridge": "backward",
        "readout": "maxout",
        "readout_dim": hidden // 2,
    }
    return config
