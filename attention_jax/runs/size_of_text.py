"""Settings that suit the size of a parallel text, for fields that a config leaves open.

A config leaves a field to the text by None, as `configs/bahdanau2015.py:parallel` does; whatever is
given, in the file or on the command line, stays as it is.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict

from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.data.text.scripts import are_chinese, are_given_in_words, writes_no_spaces
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words

# Ten epochs of the 29,000 pairs of Multi30k, and four of the 155,000 of Tatoeba, are what recurrent
# models were tuned at, the Transformer at thirty and twelve: updates in proportion to the root of
# the pairs.
_TUNED_PAIRS = 30_000


@dataclasses.dataclass(frozen=True)
class _Tuned:
    """Training of a family of models at the size at which it was tuned.

    Attributes:
      epochs: At `_TUNED_PAIRS`.
      most_epochs: Of `_FEW_PAIRS` or more; of fewer, as many updates.
      warmup: Updates, at most.
      rows: Pairs in a batch, of a small text and from `_TUNED_PAIRS` on.
      rates: Learning rate, of a small text and from `_TUNED_PAIRS` on.
    """

    epochs: float
    most_epochs: float
    warmup: int
    rows: tuple[int, int]
    rates: tuple[float, float]


_FEW_PAIRS = 1000
_RECURRENT = _Tuned(10.0, 13.0, 400, (16, 80), (0.002, 0.001))
_TRANSFORMER = _Tuned(30.0, math.inf, 800, (128, 128), (0.002, 0.002))
_TRANSFORMERS = ("transformer", "merged_transformer")
_MULTIPLE = 8  # of rows, so that devices can share a batch evenly
_POSITIONS_OF_A_WORD = 2  # padding and pieces of words included, where a batch is given in tokens
_WORDS_OF_A_SUBWORD = 16  # running words of the targets for each entry of the vocabulary
_SUBWORDS = (500, 8000)
_LONGEST, _LONGEST_IN_CHARACTERS = 51, 200
# For 30,000 pairs, and how much more for a fifth of them; at most twice as much more. A Transformer
# drops in every sublayer, and 0.3 serves it for as few as a thousand inflections.
_DROPOUTS = {
    "model.embedding_dropout": (0.2, 0.1),
    "model.output_dropout": (0.3, 0.1),
    "model.sources.source.encoder.dropout": (0.3, 0.05),
    "model.decoder.dropout": (0.3, 0.05),
}
_KIND, _DECODER = "data.subwords.kind", "model.decoder.name"
_BATCH = "data.batch_size"


@dataclasses.dataclass(frozen=True)
class SizeOfText:
    """Size of a parallel text.

    Attributes:
      pairs: Training pairs.
      words: Words of their targets.
      has_spaces: Whether both sides write spaces between words.
      bleu_tokenizer: How BLEU finds words in the targets.
    """

    pairs: int
    words: int
    has_spaces: bool = True
    bleu_tokenizer: str = "13a"

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "SizeOfText":
        """Counts a text."""
        sources, targets = zip(*pairs, strict=True)
        words = sum(len(spaced_words(target)) for target in targets)
        tokenizer = "13a" if _has_spaces(targets) else "zh" if are_chinese(targets) else "char"
        has_spaces = _has_spaces(sources) and tokenizer == "13a"
        return cls(len(targets), words, has_spaces, tokenizer)


def suited(
    size: SizeOfText,
    rows: int | None = None,
    kind: str | None = None,
    decoder: str | None = None,
    steps: int | None = None,
    is_fine_tuned: bool = False,
) -> dict[str, Any]:
    """Settings by size: returns what suits a text, by the paths of the config's fields.

      rows = 80 sqrt(pairs / 30000), rounded up to a multiple of 8, from 16 to 80
      epochs = 10 sqrt(30000 / pairs), at most 13 or 13000 / pairs, of larger batches as many more
      rate = 0.001 + 0.001 log_5(30000 / pairs), from 0.001 to 0.002
      updates = epochs pairs / rows
      warm-up = updates / 10, at most 400, of a shorter training of its own updates
      subwords = words / 16, from 500 to 8000
      dropout = base + 0.1 log_5(30000 / pairs), from base to base + 0.2

    and for the Transformer 30 in place of 10, 800 of 400, 0.05 of 0.1 and 0.1 of 0.2, with no most
    epochs, in batches of 128 rows and with a rate of 0.002 at any size.

    Args:
      size: The training text.
      rows: Pairs in a batch, if they are given.
      kind: How text becomes tokens, if that is given.
      decoder: Name of the decoder; None for a recurrent one.
      steps: Length of the training in updates, if that is given.
      is_fine_tuned: Whether training starts from trained weights, at the lowest of the rates.

    Returns:
      Values of the fields: batch size, length and intervals of training, learning rate and its
      warm-up, dropout, how BLEU finds words, and how text becomes tokens: characters where a side
      writes no spaces between words. Wherever tokens are characters there is room for longer lines.
    """
    tuned = _TRANSFORMER if decoder in _TRANSFORMERS else _RECURRENT
    ratio = _TUNED_PAIRS / size.pairs
    suitable = _rows(ratio, *tuned.rows)
    rows = rows or suitable
    # Larger batches make fewer updates of an epoch.
    most = tuned.most_epochs * max(1.0, _FEW_PAIRS / size.pairs) * max(1.0, rows / suitable)
    epochs = round(min(tuned.epochs * math.sqrt(ratio), most), 1)
    updates = max(1, round(epochs * math.ceil(size.pairs / rows)))
    rates = (tuned.rates[1], tuned.rates[1]) if is_fine_tuned else tuned.rates
    if steps is not None:
        updates = max(1, min(steps, updates))
    interval = min(500, max(25, round(updates / 8 / 25) * 25))
    kind = kind or ("bpe" if size.has_spaces else "characters")
    longest = _LONGEST_IN_CHARACTERS if kind == "characters" else _LONGEST
    return {
        _BATCH: rows,
        "training.num_epochs": epochs,
        "training.evaluate_every_steps": interval,
        "training.checkpoint_every_steps": max(25, interval // 2),
        "optimizer.learning_rate": _rate(ratio, *rates),
        "schedule.warmup_steps": min(tuned.warmup, max(1, updates // 10)),
        _KIND: kind,
        "data.subwords.size": _subwords(size, kind),
        "data.max_source_length": longest,
        "data.max_target_length": longest,
        "data.bleu_tokenizer": size.bleu_tokenizer,
        **{path: _dropout(ratio, *rates) for path, rates in _DROPOUTS.items()},
    }


def _rows(ratio: float, fewest: int, most: int) -> int:
    """Returns the pairs of a batch: smaller texts need more updates of an epoch."""
    rows = _MULTIPLE * math.ceil(most / math.sqrt(ratio) / _MULTIPLE)
    return min(max(rows, fewest), most)


def _rate(ratio: float, most: float, least: float) -> float:
    """Returns the learning rate: with a higher one, small texts need fewer epochs."""
    return round(least + (most - least) * min(max(math.log(ratio, 5), 0.0), 1.0), 5)


def _subwords(size: SizeOfText, kind: str) -> int:
    """Returns the size of a vocabulary; the largest where there are no spaces to count words by."""
    fewest, most = _SUBWORDS
    if kind == "characters" or not size.has_spaces:
        return most
    return min(max(100 * round(size.words / _WORDS_OF_A_SUBWORD / 100), fewest), most)


def _dropout(ratio: float, base: float, more: float) -> float:
    return round(base + min(max(more * math.log(ratio, 5), 0.0), 2 * more), 2)


USUAL = SizeOfText(_TUNED_PAIRS, 12 * _TUNED_PAIRS)


def settled(
    values: Mapping[str, Any] | ConfigDict,
    say: Callable[[str], None],
    size: SizeOfText | None = None,
    known: Mapping[str, Any] | None = None,
) -> ConfigDict:
    """Fills the fields that a config leaves to the size of its text, and says what and why.

    A text that cannot be read is not this function's to name: any size then serves until the data
    are loaded.

    Args:
      values: The config; one that leaves nothing open is returned as it is.
      say: Takes the line.
      size: Of the text, where that is not to be read; `USUAL` serves where any config will do.
      known: The config of the run that is continued, whose values were settled when it began; one
        that was never trained has none to keep.
    """
    config = ConfigDict(values).copy_and_resolve_references()
    data = config.get("data")
    if not isinstance(data, ConfigDict) or data.get("name") != "parallel":
        return config
    groups = {path: group for path in suited(USUAL) if (group := _open(config, path))}
    recorded = ConfigDict(known or {})
    chosen = {
        path: group[field]
        for path in groups
        for group, field in [_find(recorded, path)]
        if group is not None and group.get(field) is not None
    }
    if left := groups.keys() - chosen.keys():
        pairs = _training_pairs(data) if size is None else []
        size = SizeOfText.of(pairs) if pairs else size or USUAL
        kind, batch = (chosen.get(path) or _value(config, path) for path in (_KIND, _BATCH))
        decoder, positions = _value(config, _DECODER), _positions(data, size)
        rows = math.ceil(batch / positions) if batch else suited(size, decoder=decoder)[_BATCH]
        steps = _given_steps(config, math.ceil(size.pairs / rows))
        is_fine_tuned = bool(_value(config, "training.initial_weights"))
        values = suited(size, rows, kind, decoder, steps, is_fine_tuned)
        values[_BATCH] = rows * positions
        new = {path: value for path, value in values.items() if path in left}
        chosen |= new
        if pairs:
            listed = ", ".join(f"{path}={value}" for path, value in new.items())
            say(f"for {size.pairs:,} pairs of {size.words:,} target words: {listed}")
    with config.unlocked():
        for path, group in groups.items():
            field = path.rpartition(".")[2]
            del group[field]  # a placeholder, whose type may be another
            group[field] = chosen[path]
    return config


def _positions(data: ConfigDict, size: SizeOfText) -> int:
    """Returns what a row counts in the unit of the batch size."""
    if data.get("batch_unit") != "tokens":
        return 1
    return math.ceil(_POSITIONS_OF_A_WORD * max(size.words / size.pairs, 1.0))


def _given_steps(config: ConfigDict, steps_of_epoch: int) -> int | None:
    """Returns the length that a config gives, in updates; None where it leaves that to the text."""
    steps, epochs = (_value(config, f"training.{field}") for field in ("num_steps", "num_epochs"))
    lengths = [] if steps is None else [steps]
    lengths += [] if epochs is None else [round(epochs * steps_of_epoch)]
    return min(lengths, default=None)


def _open(config: ConfigDict, path: str) -> ConfigDict | None:
    """Returns the group of a field that is left open; None where the config says what it is."""
    group, field = _find(config, path)
    if group is None or field not in group or group[field] is not None:
        return None
    is_in_steps = field == "num_epochs" and group.get("num_steps") is not None
    return None if is_in_steps else group


def _training_pairs(data: ConfigDict) -> list[tuple[str, str]]:
    """Reads the training text, held-out pairs included; nothing where there is none to be read."""
    with contextlib.suppress(DataError):
        if table := data.get("train_table"):
            rows = (line.split("\t") for line in read_lines(table))
            return [(row[0], row[1]) for row in rows if len(row) == 2]
        if data.get("train_source") and data.get("train_target"):
            return read_pairs(data.train_source, data.train_target)
    return []


def _find(config: ConfigDict, path: str) -> tuple[ConfigDict | None, str]:
    """Finds the group of a field; None where the config has none."""
    *groups, field = path.split(".")
    group: Any = config
    for name in groups:
        group = group.get(name) if isinstance(group, ConfigDict) else None
    return (group if isinstance(group, ConfigDict) else None), field


def _value(config: ConfigDict, path: str) -> Any:
    """Returns the value of a field; None where the config has none."""
    group, field = _find(config, path)
    return None if group is None else group.get(field)


def _has_spaces(texts: Sequence[str]) -> bool:
    """Whether most texts are of a script that writes spaces between words, or given in words."""
    without = [text for text in texts if writes_no_spaces(text)]
    return 2 * len(without) <= len(texts) or are_given_in_words(without)
