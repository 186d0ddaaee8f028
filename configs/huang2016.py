"""Text and picture: Huang et al. 2016, names of emoji from English into German or Japanese.

"Attention-based multimodal neural machine translation", WMT 2016.

As in the paper: attention runs over all words and all that is seen, side by side, for which the
combination `flat` of several sources stands. Otherwise: the cells of a small picture, read by a
convolutional network that learns with everything else, in place of regions that VGG describes; a
GRU that reads the text by itself; and names of emoji in place of captions. The control, pictures of
other examples, and the text alone are

    --config.data.shuffled_pictures=true
    text_alone after the colon

Command:  python -m launch.train --config=configs/huang2016.py --workdir=runs/huang2016 \
              --config.data.target_language=ja --config.data.bleu_tokenizer=char
          after the colon: emoji_names, text_alone, seen_texts (one's own table of images and
          texts) or smoke
Expected: not measured; smoke learns its task, whose digits are half written and half drawn
Time:     not measured
"""

from ml_collections import ConfigDict

from configs import common

PICTURE = "picture"
_ALONE = "text_alone"


def get_config(argument: str | None = None) -> ConfigDict:
    """Returns the config for a data set."""
    choices = "emoji_names", _ALONE, "seen_texts", "smoke"
    argument = common.choose(argument, "emoji_names", choices)
    config = ConfigDict()
    config.seed = 0
    config.data = common.data_section("emoji_names" if argument == _ALONE else argument)
    config.model = common.gru_translator(
        {"name": "flat", "score": {"name": "bahdanau", "attention_dim": 128}}
    )
    config.objectives = {"nll": {"label_smoothing": 0.1}}
    config.optimizer = {"name": "adam", "learning_rate": 1e-3, "clip_norm": 1.0}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 200, "final_fraction": 0.02}
    config.training = {
        "num_epochs": 60.0,
        "averaging": {"name": "ema", "decay": 0.998},
        "log_every_steps": 50,
        "evaluate_every_steps": 500,
        "checkpoint_every_steps": 500,
    }
    config.search = {"method": "beam", "beam_size": 5}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 8}
    if argument == "seen_texts":
        config.data.update(colours="rgb", subwords={"kind": "bpe", "size": 4000, "joint": False})
    if argument == "smoke":
        config = common.make_smoke(config)
        config.data.name = "smoke_pictures"
    if argument == _ALONE:
        config.model.attention = config.model.attention.score
    else:
        config.model.sources[PICTURE] = _picture(is_small=argument == "smoke")
    return config


def _picture(is_small: bool) -> dict:
    """Returns the source of pictures, in the sizes that the data has."""
    if is_small:
        sizes, depth = {"rows": 1, "cell": 4, "channels": 1, "filters": 8}, 32
    else:
        sizes, depth = {"rows": 4, "cell": 8, "channels": 3, "filters": 16}, 128
    return {
        "input": {"name": "pixels", **sizes, "embedding_dim": depth},
        "encoder": {"name": "grid", "rows": sizes["rows"], "num_layers": 1},
    }
