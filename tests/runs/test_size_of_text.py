"""Settings by the size of a text: what is chosen, what stays as it is given, and what is said."""

import math

import pytest
from ml_collections import ConfigDict, config_dict

from attention_jax.config_choices import Choices
from attention_jax.runs.config import from_config_dict, template, to_plain
from attention_jax.runs.size_of_text import USUAL, SizeOfText, settled, suited
from configs import (
    bahdanau2015,
    coverage_vs_supervised,
    gnmt2016,
    libovicky2017,
    luong2015,
    raffel2017,
    vaswani2017,
)

ROWS = 80
DROPOUTS = {
    False: ("model.embedding_dropout", "model.output_dropout"),
    True: ("model.sources.source.encoder.dropout", "model.decoder.dropout"),
}
RATE = "optimizer.learning_rate"
ALL_DROPOUTS = {*DROPOUTS[False], *DROPOUTS[True]}


def updates(pairs, words, rows=ROWS):
    return suited(SizeOfText(pairs, words), rows)["training.num_epochs"] * pairs / rows


def test_the_sizes_that_models_were_tuned_at_keep_their_settings():
    found = suited(SizeOfText(29_000, 330_000), ROWS)
    assert found["training.num_epochs"] == pytest.approx(10, abs=0.3)
    assert found["schedule.warmup_steps"] == pytest.approx(400, abs=40)
    assert found["training.evaluate_every_steps"] == pytest.approx(500, abs=50)
    assert (found["data.subwords.kind"], found["data.subwords.size"]) == ("bpe", 8000)
    assert found["model.embedding_dropout"] == pytest.approx(0.2, abs=0.01)
    assert found["optimizer.learning_rate"] == pytest.approx(0.001, rel=0.05)
    assert suited(SizeOfText(155_000, 10**6), ROWS)["training.num_epochs"] == pytest.approx(4.4)


def test_less_text_has_fewer_updates_and_subwords_and_more_dropout():
    sizes = [suited(SizeOfText(n, 7 * n), ROWS) for n in (1000, 2000, 6000, 30_000)]
    for field, is_rising in (
        ("schedule.warmup_steps", True), ("data.subwords.size", True),
        ("training.evaluate_every_steps", True), ("training.num_epochs", False),
        ("model.embedding_dropout", False), ("model.output_dropout", False),
        ("optimizer.learning_rate", False),
    ):  # fmt: skip
        values = [found[field] for found in sizes]
        assert values == sorted(values, reverse=not is_rising), field
    assert updates(1000, 7000) < updates(6000, 42_000) < updates(30_000, 210_000)
    for n, found in zip((1000, 2000, 6000, 30_000), sizes, strict=True):
        assert found["schedule.warmup_steps"] <= 0.11 * updates(n, 7 * n) + 1
        assert found["training.evaluate_every_steps"] < updates(n, 7 * n)
        assert found["model.output_dropout"] <= 0.5


def test_the_equations_by_hand():
    """Of a half of 30,000 pairs: 10 sqrt(2) epochs of 188 updates; log_5(2) = 0.4307."""
    found = suited(SizeOfText(15_000, 105_000), ROWS)
    assert found["training.num_epochs"] == 14.1  # 2,651 updates
    assert found["schedule.warmup_steps"] == 265
    assert found["optimizer.learning_rate"] == 0.00143
    for pairs, rate in ((6000, 0.002), (50, 0.002), (30_000, 0.001), (10**6, 0.001)):
        assert suited(SizeOfText(pairs, 7 * pairs))["optimizer.learning_rate"] == rate


def test_dropout_by_hand():
    """Of a fifth of 30,000 pairs: 0.1 more."""
    found = suited(SizeOfText(6000, 42_000), ROWS)
    assert found["training.evaluate_every_steps"] == 200
    assert found["training.checkpoint_every_steps"] == 100
    assert found["data.subwords.size"] == 2600
    for pairs, more in ((6000, 0.1), (1200, 0.2), (50, 0.2), (10**6, 0.0)):
        found = suited(SizeOfText(pairs, 7 * pairs), ROWS)
        assert found["model.embedding_dropout"] == pytest.approx(0.2 + more)
        assert found["model.output_dropout"] == pytest.approx(0.3 + more)


@pytest.mark.parametrize(
    ("pairs", "rows", "updates"),
    [(100, 16, 910), (1000, 16, 819), (6000, 40, 1950), (30_000, 80, 3750)],
)
def test_smaller_texts_are_read_in_smaller_batches(pairs, rows, updates):
    """Of a fifth of 30,000 pairs: 80 / sqrt(5) = 35.8 rows, rounded up to a multiple of 8."""
    found = suited(SizeOfText(pairs, 7 * pairs))
    assert found["data.batch_size"] == rows
    per_epoch = math.ceil(pairs / rows)
    assert found["training.num_epochs"] * per_epoch == pytest.approx(updates, rel=0.01)
    assert found["schedule.warmup_steps"] == pytest.approx(updates / 10, rel=0.02)
    for fewest in (50, 10**6):
        assert suited(SizeOfText(fewest, 7 * fewest))["data.batch_size"] in (16, 80)
        assert suited(SizeOfText(fewest, 9), decoder="transformer")["data.batch_size"] == 128


@pytest.mark.parametrize(
    ("pairs", "epochs", "of_transformer"),
    [(25_000, 11.0, 32.9), (6000, 13.0, 67.1), (1000, 13.0, 164.3), (500, 26.0, 232.4),
     (20, 387.3, 1161.9)],
)  # fmt: skip
def test_small_texts_are_read_at_most_13_times(pairs, epochs, of_transformer):
    """Of fewer than 1,000 pairs, as often as makes 13,000 pairs; of larger batches, more often."""
    size = SizeOfText(pairs, 7 * pairs)
    assert suited(size)["training.num_epochs"] == epochs
    assert suited(size, decoder="transformer")["training.num_epochs"] == of_transformer
    twice = suited(size, 2 * suited(size)["data.batch_size"])
    assert twice["training.num_epochs"] == round(min(10 * (30_000 / pairs) ** 0.5, 2 * epochs), 1)


def test_batches_in_tokens_have_as_many_rows(text):
    """Seven words a target are some fourteen positions with padding and pieces of words."""
    size = SizeOfText(6000, 42_000)
    in_rows, in_tokens = (
        settled(text(data__batch_unit=unit), print, size) for unit in ("sentences", "tokens")
    )
    assert (in_rows.data.batch_size, in_tokens.data.batch_size) == (40, 560)
    given = settled(text(data__batch_unit="tokens", data__batch_size=1120), print, size)
    assert given.data.batch_size == 1120
    of_as_many_rows = settled(text(data__batch_size=80), print, size)
    assert given.schedule.warmup_steps == of_as_many_rows.schedule.warmup_steps == 168
    nothing = SizeOfText(6000, 0)  # all of its targets are empty
    assert settled(text(data__batch_unit="tokens"), print, nothing).data.batch_size == 80
    assert in_tokens.schedule.warmup_steps == in_rows.schedule.warmup_steps == 195


def test_the_transformer_by_hand():
    """Of a fifth of 30,000 pairs: 30 sqrt(5) epochs of 47 updates, and 0.05 more of dropout."""
    found = suited(SizeOfText(6000, 42_000), 128, decoder="transformer")
    assert found["training.num_epochs"] == 67.1  # 3,154 updates
    assert found["schedule.warmup_steps"] == 315
    assert found["training.evaluate_every_steps"] == 400
    assert found["data.subwords.size"] == 2600
    for pairs, dropout in ((10**6, 0.3), (6000, 0.35), (1200, 0.4), (50, 0.4)):
        found = suited(SizeOfText(pairs, 7 * pairs), 128, decoder="transformer")
        assert [found[path] for path in DROPOUTS[True]] == [dropout, dropout]
    tuned = suited(SizeOfText(29_000, 330_000), 128, decoder="transformer")
    assert tuned["training.num_epochs"] == pytest.approx(30, abs=0.6)
    assert tuned["schedule.warmup_steps"] == pytest.approx(800, rel=0.15)


def test_lengths_are_of_the_tokens_that_there_are(text):
    paths = "data.max_source_length", "data.max_target_length"
    for has_spaces, kind, longest in (
        (True, None, 51), (False, None, 200), (True, "characters", 200), (False, "bpe", 51),
        (False, "words", 51),
    ):  # fmt: skip
        found = suited(SizeOfText(6000, 42_000, has_spaces), ROWS, kind)
        assert [found[path] for path in paths] == [longest, longest]
    config = settled(text(data__subwords__kind="characters"), print)
    assert config.data.max_source_length == config.data.max_target_length == 200
    # What a run was begun with counts as given.
    began = {"data": {"subwords": {"kind": "characters"}}}
    assert settled(text(), print, known=began).data.max_source_length == 200


@pytest.mark.parametrize(("pairs", "rows"), [(1, 1), (1, 80), (9999, 80), (10**8, 4096)])
def test_any_size_gives_a_config(pairs, rows):
    found = suited(SizeOfText(pairs, pairs), rows)
    assert all(value > 0 for value in found.values() if not isinstance(value, str))
    assert isinstance(found["data.subwords.size"], int)


@pytest.fixture
def text(tmp_path):
    """A config of a text of twenty pairs."""
    (tmp_path / "en").write_text("a b c d\n" * 20)
    (tmp_path / "de").write_text("e f g\n" * 20)

    def config(file=bahdanau2015, **fields):
        values = template(file.get_config("parallel"))
        values.data.train_source, values.data.train_target = f"{tmp_path}/en", f"{tmp_path}/de"
        for path, value in fields.items():
            *groups, field = path.split("__")
            group = values
            for name in groups:
                group = group[name]
            group[field] = value
        return values

    return config


FILES = (bahdanau2015, coverage_vs_supervised, luong2015, raffel2017, vaswani2017)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__)
def test_what_is_open_is_filled_and_said(text, file):
    values, said, is_transformer = text(file), [], file is vaswani2017
    config = from_config_dict(settled(values, said.append))
    expected = suited(SizeOfText(20, 60), decoder=values.model.decoder.name)
    assert config.data.batch_size == expected["data.batch_size"] == (128 if is_transformer else 16)
    assert config.training.num_epochs == expected["training.num_epochs"]
    assert config.training.num_steps is None
    assert config.schedule.warmup_steps == expected["schedule.warmup_steps"]
    assert config.data.subwords.size == 500
    found = config.model.decoder.dropout if is_transformer else config.model.embedding_dropout
    assert found == 0.4
    has_own_rate = file in (coverage_vs_supervised, vaswani2017)
    assert config.optimizer.learning_rate == (0.002 if has_own_rate else expected[RATE])
    (line,) = said
    assert line.startswith("for 20 pairs of 60 target words: data.batch_size=")
    assert {path for path in expected if path not in line} == {
        *(path for path in ALL_DROPOUTS if path not in DROPOUTS[is_transformer]),
        *([RATE] if has_own_rate else []),
    }


def test_a_learning_rate_of_a_configs_own_stays(text):
    """GNMT's stack was tuned at six times the usual rate; trained weights are changed with care."""
    for values, rate in (
        (gnmt2016.get_config("parallel"), 0.006),
        (text(optimizer__learning_rate=0.0007), 0.0007),
        (text(), 0.002),
        (text(training__initial_weights="trained.safetensors"), 0.001),
    ):
        assert settled(values, print, SizeOfText(6000, 42_000)).optimizer.learning_rate == rate


@pytest.mark.parametrize("argument", ["parallel", "parallel_alone"])
def test_configs_of_several_sources_are_open_too(argument):
    values = libovicky2017.get_config(argument)
    assert settled(values, print, SizeOfText(6000, 42_000)).training.num_epochs == 13.0
    assert values.training.num_epochs is None is values.training.num_steps


def test_the_decoder_that_is_chosen_decides():
    values = vaswani2017.get_config("parallel")
    values = template(values, Choices([("model.decoder.name", "conditional_gru")]))
    config = settled(values, print, SizeOfText(6000, 42_000))
    assert config.training.num_epochs == 13.0
    assert config.model.sources.source.encoder.dropout == 0.35  # of its Transformer still


def test_bleu_counts_characters_where_no_spaces_are_written():
    clauses = {"13a": "I like cats.", "zh": "我喜欢猫。", "char": "猫が好きです。"}
    for target, bleu in (("13a", "13a"), ("zh", "zh"), ("char", "char")):
        for source in clauses.values():
            size = SizeOfText.of([(source, clauses[target])] * 9)
            assert suited(size, ROWS)["data.bleu_tokenizer"] == bleu


def test_how_bleu_counts_is_said_and_can_be_given(text, tmp_path):
    (tmp_path / "de").write_text("猫が好きです。\n" * 20)
    said = []
    config = settled(text(), said.append)
    assert config.data.bleu_tokenizer == "char" and "data.bleu_tokenizer=char" in said.pop()
    config = settled(text(data__bleu_tokenizer="intl"), said.append)
    assert config.data.bleu_tokenizer == "intl" and "bleu_tokenizer" not in said.pop()


def test_what_is_given_stays(text):
    given = text(training__num_steps=70, schedule__warmup_steps=3, data__subwords__kind="words")
    said = []
    config = from_config_dict(settled(given, said.append))
    assert config.training.num_steps == 70 and config.training.num_epochs is None
    assert (config.schedule.warmup_steps, config.data.subwords.kind) == (3, "words")
    assert not any(word in said[0] for word in ("num_epochs", "warmup", "kind"))
    assert given.data.subwords.size is None  # what was passed is not changed


@pytest.mark.parametrize(
    ("field", "length", "warmup", "interval"),
    [("num_steps", 150, 15, 25), ("num_epochs", 4.0, 60, 75), ("num_epochs", 40.0, 195, 250)],
)
def test_a_shorter_training_warms_up_and_validates_in_proportion(
    text, field, length, warmup, interval
):
    config = settled(text(**{f"training__{field}": length}), print, SizeOfText(6000, 42_000))
    assert config.schedule.warmup_steps == warmup
    assert config.training.evaluate_every_steps == interval


def test_other_data_has_nothing_open():
    values, said = bahdanau2015.get_config("multi30k"), []
    assert settled(values, said.append).to_dict() == values.to_dict() and not said


def test_texts_that_cannot_be_read_are_left_to_where_data_are_loaded(text):
    said = []
    config = settled(text(data__train_source="/none.en"), said.append)
    assert config.training.num_epochs == suited(USUAL)["training.num_epochs"] and not said


def test_a_run_that_goes_on_keeps_what_was_settled_when_it_began(text):
    began = to_plain(from_config_dict(settled(text(), print, SizeOfText(999, 9000))))
    moved, said = text(data__train_source="/moved.en"), []
    assert to_plain(from_config_dict(settled(moved, said.append, known=began))) == {
        **began, "data": {**began["data"], "train_source": "/moved.en"}
    }  # fmt: skip
    assert not said
    longer = settled(text(training__num_epochs=99.0), said.append, known=began)
    assert longer.training.num_epochs == 99.0 and not said


def test_texts_without_spaces_are_read_as_characters():
    japanese = [("I like cats.", "猫が好きです。"), ("Yes.", "はい。")] * 5
    assert not SizeOfText.of(japanese).has_spaces
    spaced = [("I like cats.", "猫 が 好き です 。"), ("Yes, it is.", "は い 、 そう です 。")] * 5
    assert SizeOfText.of(spaced).has_spaces and SizeOfText.of([("a b", "c d")]).has_spaces
    found = suited(SizeOfText.of(japanese), ROWS)
    assert (found["data.subwords.kind"], found["data.max_target_length"]) == ("characters", 200)


def test_placeholders_are_open_and_plain_values_are_not():
    values = ConfigDict({"data": {"name": "parallel", "batch_size": 8}, "training": {}})
    values.training.num_epochs = config_dict.placeholder(float)
    assert settled(values, print).training.num_epochs > 0
