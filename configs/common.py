"""Shared by configs: data sets by name, what small experiments share, and smoke-sized forms."""

from ml_collections import ConfigDict

INFLECTIONS = ("conll2017", "inflections")
CODE = ("django", "hearthstone")
PRONUNCIATIONS = ("cmudict", "sigmorphon2021", "pronunciations")
RECORDINGS = ("digits", "recordings", "tones")  # sound, for configs that read it
PICTURES = ("emoji", "features", "formulas", "pictures")
LOWERCASED = "multi30k_lowercased"  # in the form in which most papers give their BLEU
DATA_SETS = ("multi30k", "tatoeba", "parallel", *INFLECTIONS, *PRONUNCIATIONS, "smoke")


def choose(argument: str | None, default: str, choices: tuple[str, ...]) -> str:
    """Returns the part after the colon of `--config=FILE:ARGUMENT`, or the default.

    Raises:
      ValueError: If it is none of the choices.
    """
    argument = argument or default
    if argument not in choices:
        known = ", ".join(choices)
        raise ValueError(f"expected one of {known} after the colon, found {argument!r}")
    return argument


def data_section(name: str) -> ConfigDict:
    """Returns the data section for a data set, with batches that suit its lengths."""
    if name == "smoke":
        # A split for evaluation is one batch, so that one shape is compiled.
        sizes = {"batch_size": 32, "eval_batch_size": 128, "num_buckets": 2}
        return ConfigDict({"name": "smoke", **sizes})
    if name == "cmudict":
        sizes = {"batch_size": 256, "eval_batch_size": 512}
        limits = {"max_source_length": 24, "max_target_length": 24}
        return ConfigDict({"name": "cmudict", **sizes, **limits})
    if name in CODE:
        sizes = {"batch_size": 64 if name == "django" else 16, "eval_batch_size": 64}
        return ConfigDict({"name": name, **sizes})
    if name in RECORDINGS:
        named = {"digits": "spoken_digits"}.get(name, name)
        return ConfigDict({"name": named, "batch_size": 32, "num_buckets": 3})
    if name in (*INFLECTIONS, *PRONUNCIATIONS):
        sizes = {"batch_size": 32, "eval_batch_size": 256, "num_buckets": 4}
        return ConfigDict({"name": name, **sizes})
    if name in ("emoji_names", "seen_texts"):
        return ConfigDict({"name": name, "batch_size": 64, "eval_batch_size": 128})
    if name in PICTURES:
        sizes = {"batch_size": 64, "eval_batch_size": 128, "num_buckets": 4}
        sizes["max_source_length"] = 256
        if name == "features":
            return ConfigDict({"name": name, **sizes, "rows": 14, "depth": 512})
        sizes |= {"height": 48 if name == "formulas" else 32, "cell": 8}
        return ConfigDict({"name": name, **sizes, "colours": "rgb" if name == "emoji" else "grey"})
    casing = {}
    if name == LOWERCASED:
        name, casing = "multi30k", {"casing": "lowercased", "bleu_tokenizer": "none"}
    limits = {"max_source_length": 51, "max_target_length": 51}
    data = {"name": name, **casing, "batch_size": 80, **limits}
    if name != "parallel":
        # More batch shapes than by default: less padding, and so many steps repay compiling them.
        data |= {"source_language": "en", "target_language": "de", "num_buckets": 16}
    return ConfigDict(data | {"subwords": {"kind": "bpe", "size": 8000, "joint": False}})


def experiment(argument: str | None) -> tuple[ConfigDict, str]:
    """Returns the config that small experiments share, without a model, and the data set's name.

    The caller adds a model and its own changes, and then calls `finish`.
    """
    argument = choose(argument, "multi30k", ("multi30k", "tatoeba", "parallel", "smoke"))
    config = ConfigDict()
    config.seed = 0
    config.data = data_section(argument)
    if argument != "smoke":
        config.data.batch_size = 64
        config.data.num_buckets = 8
        config.data.subwords.size = 4000
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
    return config, argument


def recurrent_model(encoder: dict, attention: dict, decoder: dict) -> dict:
    """Returns the model that small experiments share: a recurrent encoder, and a decoder over it.

    Args:
      encoder: Fields of the encoder, beside its depth.
      attention: The attention.
      decoder: Fields of the decoder, beside its depths.
    """
    return {
        "name": "encoder_decoder",
        "target_embedding_dim": 128,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 128},
                "encoder": {"name": "recurrent", "hidden_dim": 128, **encoder},
            }
        },
        "attention": attention,
        "decoder": {"hidden_dim": 256, "readout_dim": 128, **decoder},
        "embedding_dropout": 0.1,
        "output_dropout": 0.2,
    }


def gru_translator(attention: dict) -> dict:
    """Returns the model of configs with several sources: GRUs that read and a conditional GRU.

    Args:
      attention: The attention, which combines the sources.
    """
    return recurrent_model(
        {"cell": "gru"}, attention, {"name": "conditional_gru", "bridge": "mean"}
    )


def letters(data_name: str, depth: int, reader_depth: int, dropout: float) -> ConfigDict:
    """Returns the config that inflection and pronunciation share, without attention and decoder.

    A bidirectional LSTM reads the letters, with the tags beside each of them where there are tags.

    Args:
      data_name: The data set.
      depth: Of the embedded letters and symbols.
      reader_depth: Of the LSTM, in each direction.
      dropout: Share of the embeddings, and of the features, that is dropped.
    """
    config = ConfigDict()
    config.seed = 0
    config.data = data_section(data_name)
    encoder = {"name": "recurrent", "cell": "lstm", "direction": "bidirectional"}
    source = {
        "input": {"name": "tokens", "embedding_dim": depth},
        "encoder": {**encoder, "hidden_dim": reader_depth},
    }
    config.model = {
        "name": "encoder_decoder",
        "target_embedding_dim": depth,
        "sources": {"source": source},
        "embedding_dropout": dropout,
        "output_dropout": dropout,
    }
    if data_name in INFLECTIONS:
        config.data.tags = "apart"
        config.model.sources.source.input.name = "tagged"
    config.objectives = {"nll": {}}
    config.training = {"log_every_steps": 50}
    return config


def finish(config: ConfigDict, data_name: str) -> ConfigDict:
    """Adapts a translation config to the data set that is named after the colon."""
    if data_name == "smoke":
        return make_smoke(config)
    if data_name == "parallel":
        leave_to_the_text(config)
    if data_name in (*INFLECTIONS, *PRONUNCIATIONS, "parallel"):  # one side may have far less
        config.search.min_length_ratio = 0.0
    if data_name == "tatoeba" and "num_epochs" in config.training:
        config.training.num_epochs *= 0.4  # six times as many sentences, half as long
    if data_name in (*INFLECTIONS, *PRONUNCIATIONS[1:]) and "num_epochs" in config.training:
        config.training.num_epochs *= 6  # a few thousand words
    return config


# What depends on the size of a text, or on its script, and is not known of one's own.
_OF_A_TEXT = {
    "training": ("num_epochs", "evaluate_every_steps", "checkpoint_every_steps"),
    "schedule": ("warmup_steps",),
    "data.subwords": ("kind", "size"),
    "data": ("batch_size", "max_source_length", "max_target_length", "bleu_tokenizer"),
}
_USUAL_RATE = 1e-3  # of recurrent models
_DROPOUT = {"model": ("embedding_dropout", "output_dropout")}
_STACKS = {"model.sources.source.encoder": ("dropout",), "model.decoder": ("dropout",)}


def leave_to_the_text(config: ConfigDict) -> ConfigDict:
    """Leaves to the size of one's own text what `attention_jax.runs.size_of_text` chooses by it.

    Any of these fields may still be given on the command line, and a length in steps in place of
    epochs. A learning rate of a paper's own, or of a Transformer, stays.
    """
    is_transformer = config.model.decoder.name == "transformer"
    if config.optimizer.learning_rate == _USUAL_RATE:
        config.optimizer.learning_rate = None
    for path, fields in (_OF_A_TEXT | (_STACKS if is_transformer else _DROPOUT)).items():
        group = config
        for name in path.split("."):
            group = group[name]
        for field in fields:
            group[field] = None
    config.training.num_steps = None
    return config


def make_smoke(config: ConfigDict) -> ConfigDict:
    """Shrinks a config so that it trains in seconds, on a made-up task."""
    config.data = data_section("smoke")
    model = config.model
    source = model.sources.source
    source.input.embedding_dim = model.target_embedding_dim = 32
    for section, name in (
        (source.encoder, "hidden_dim"),
        (model.decoder, "hidden_dim"),
        (model.decoder, "readout_dim"),
        (model.decoder, "attentional_dim"),
        (model.attention, "attention_dim"),
        (model.get("readout", {}), "hidden_dim"),
        (model.attention.get("score", {}), "attention_dim"),
    ):
        if name in section:
            section[name] = 48
    config.optimizer = {"name": "adam", "learning_rate": 5e-3}
    config.schedule = {"name": "warmup_cosine", "warmup_steps": 20}
    config.training = {
        "num_steps": 400,
        "log_every_steps": 50,
        "evaluate_every_steps": 200,
        "checkpoint_every_steps": 200,
    }
    if "num_heat_maps" in config.get("evaluation", {}):
        config.evaluation.num_heat_maps = 2
    return config


# The second source of data sets that have one.
FURTHER = {"multi30k": "fr", "parallel": "second", "smoke": "other"}
_ALONE = "_alone"  # ends the name of a data set whose second source is not read


def with_alone(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns names of data sets with two sources, and those of the same with the first alone."""
    return *names, *(f"{name}{_ALONE}" for name in names)


def split_alone(argument: str) -> tuple[str, bool]:
    """Returns the name in an argument of `with_alone`, and whether the first source is alone."""
    return argument.removesuffix(_ALONE), argument.endswith(_ALONE)


def add_source(config: ConfigDict, data_name: str) -> ConfigDict:
    """Adds a second source, which is read as the first is: in French, one's own, or made up.

    It comes last, for it changes the data section that `finish` may replace.
    """
    name, first = FURTHER[data_name], config.model.sources.source
    config.model.sources[name] = first.copy_and_resolve_references()
    if data_name == "multi30k":
        config.data.further_languages = (name,)
    elif data_name == "smoke":
        config.data.halves = True
    else:  # --config.data.further.second.train=FILE, and likewise for the other splits
        config.data.further = {name: {"train": "", "validation": "", "test": ""}}
    return config


def leave_first_alone(config: ConfigDict, data_name: str) -> ConfigDict:
    """Takes away what `add_source` has added to the model; the data stay, and so the vocabulary."""
    del config.model.sources[FURTHER[data_name]]
    config.model.attention = config.model.attention.score
    return config
