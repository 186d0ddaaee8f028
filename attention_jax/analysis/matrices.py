"""Attention matrices: the weights of every layer and head, in memory and as files for others."""

import dataclasses
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_jax.analysis.self_attention import self_attention
from attention_jax.data.examples import Split
from attention_jax.data.field import SOURCE
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.scoring import given_pairs
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.decoding.source_tokens import source_tokens
from attention_jax.files import replacing
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import writing

CROSS_ATTENTION = "attention"
_DIGITS = 6  # after the point, in text


@dataclasses.dataclass(frozen=True, eq=False)
class AttentionMatrices:
    """Attention of forced decoding: what a model attends to while it predicts a given target.

    Attributes:
      source_tokens: The S tokens of the source, EOS last.
      tokens: The T tokens of the target, EOS last.
      weights: Cross-attention, `T S`, the mean over heads where there are several; in a model with
        an aligner of its own (`model.aligner`), what that says.
      heads: Weights of every layer and head by the path of the layer: `attention`, `H T S`, where
        cross-attention has several heads (of several layers side by side), or an aligner beside it;
        `attention/NAME`, `H T _`, to the further source NAME; `opposite_alignment`, `1 S T`, of a
        two-way aligner; self-attention, `H N N`.
      further_tokens: The tokens of each further source, EOS last, by its name.
    """

    source_tokens: Sequence[str]
    tokens: Sequence[str]
    weights: Float[np.ndarray, "T S"]
    heads: Mapping[str, Float[np.ndarray, "H N M"]]
    further_tokens: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)


def attention_matrices(run: TrainedRun, split: Split) -> list[AttentionMatrices]:
    """Forced decoding: computes the attention of every layer and head to the pairs of a split.

    The run's model must attend to tokens. Of an ensemble, the mean cross-attention is all there is.
    """
    of_layers = self_attention(run, split)
    found = []
    for index, forced in enumerate(forced_attention(run, split)):
        heads = {layer: pairs[index].weights for layer, pairs in of_layers.items()}
        if forced.heads is not None:
            heads[CROSS_ATTENTION] = forced.heads
        heads |= {f"{CROSS_ATTENTION}/{name}": each for name, each in forced.further.items()}
        if forced.opposite is not None:
            heads["opposite_alignment"] = forced.opposite[None]
        found.append(
            AttentionMatrices(
                source_tokens(split, SOURCE.name, index), split.target_tokens(index),
                forced.weights, heads,
                {name: source_tokens(split, name, index) for name in run.further_sources},
            )
        )  # fmt: skip
    return found


def forced_outputs(
    run: TrainedRun,
    sources: Sequence[str],
    outputs: Sequence[Hypothesis],
    further: Mapping[str, Sequence[str]] = {},
) -> Split:
    """Forced decoding: returns outputs of a search as the targets of a split, by their ids.

    To encode their texts again might give others.

    Args:
      run: The run that has written the outputs.
      sources: The text of which each is an output.
      outputs: The outputs.
      further: Texts of each further source, by its name.
    """
    split = given_pairs(run, sources, [""] * len(outputs), further)
    return split.with_target_ids([output.tokens for output in outputs])


def write_matrices(
    path: Path,
    run: TrainedRun,
    outputs: Sequence[tuple[int, Hypothesis]],
    lines: Sequence[str],
    further: Mapping[str, Sequence[str]],
) -> None:
    """Writes the attention of outputs, forced again, as NumPy arrays or as JSON lines.

    Of output n, from 0, `.npz` holds the arrays `n/line` (the number of its line, from 0),
    `n/source_tokens`, `n/tokens`, `n/weights` and `n/heads/LAYER`, and of further sources
    `n/further_tokens/NAME`; `.jsonl` has a line for each output, an object of the same names
    beside `source` and `output`, the texts.

    Args:
      path: The file.
      run: The run that has written the outputs; it attends to tokens.
      outputs: The number of a line and an output of it.
      lines: All lines that were read.
      further: Those of each further source, by its name.

    Raises:
      RunDirectoryError: If the file cannot be written.
    """
    numbers = [number for number, _ in outputs]
    sources = [lines[number] for number in numbers]
    others = {name: [texts[number] for number in numbers] for name, texts in further.items()}
    split = forced_outputs(run, sources, [output for _, output in outputs], others)
    found = attention_matrices(run, split) if outputs else []
    rows = []
    for (number, output), source, one in zip(outputs, split.sources, found, strict=True):
        vocabulary = output.vocabulary(run.target_vocabulary)  # which knows what a prefix told
        one = dataclasses.replace(one, tokens=vocabulary.tokens(output.tokens))
        rows.append((number, source, vocabulary.decode(output.tokens), one))
    content = _as_arrays(rows) if path.suffix == ".npz" else _as_lines(rows)
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(content)


_Rows = Sequence[tuple[int, str, str, AttentionMatrices]]


def _as_arrays(rows: _Rows) -> bytes:
    arrays: dict[str, Any] = {}
    for n, (number, _, _, one) in enumerate(rows):
        arrays |= {
            f"{n}/line": np.int64(number),
            f"{n}/source_tokens": np.array(one.source_tokens, np.str_),
            f"{n}/tokens": np.array(one.tokens, np.str_),
            f"{n}/weights": one.weights,
            **{f"{n}/heads/{layer}": weights for layer, weights in one.heads.items()},
            **{
                f"{n}/further_tokens/{name}": np.array(tokens, np.str_)
                for name, tokens in one.further_tokens.items()
            },
        }
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _as_lines(rows: _Rows) -> bytes:
    return "".join(f"{line}\n" for line in _lines(rows)).encode()


def _lines(rows: _Rows) -> Iterator[str]:
    for number, source, output, one in rows:
        value = {
            "line": number,
            "source": source,
            "output": output,
            "source_tokens": [*one.source_tokens],
            "tokens": [*one.tokens],
            "weights": _rounded(one.weights),
            "heads": {layer: _rounded(weights) for layer, weights in one.heads.items()},
        }
        if one.further_tokens:
            value["further_tokens"] = {k: [*tokens] for k, tokens in one.further_tokens.items()}
        yield json.dumps(value, ensure_ascii=False)


def _rounded(weights: np.ndarray) -> list[Any]:
    # By way of float64: float32 would be written with digits that it does not have.
    return np.round(weights.astype(np.float64), _DIGITS).tolist()
