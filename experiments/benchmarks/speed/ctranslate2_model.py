"""The Transformer of the comparison as a CTranslate2 model: the same weights under its names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.speed.workloads import (
    BOS,
    EOS,
    PAD,
    UNK,
    TransformerSizes,
    sinusoids,
)

POSITIONS = 512
EPSILON = 1e-6
_SPECIAL = {PAD: "<pad>", BOS: "<s>", EOS: "</s>", UNK: "<unk>"}


def words_of(vocabulary: int) -> list[str]:
    """Returns a name for each id: CTranslate2 reads and writes words."""
    return [_SPECIAL.get(number, f"w{number}") for number in range(vocabulary)]


def save_model(arrays: Mapping[str, np.ndarray], sizes: TransformerSizes, folder: Path) -> None:
    """Writes a model that `ctranslate2.Translator` loads.

    Args:
      arrays: Parameters, as `project_worker.save_parameters` wrote them.
      sizes: Of the model.
      folder: Where; it must exist.
    """
    from ctranslate2.specs import TransformerSpec

    spec = TransformerSpec.from_config(sizes.layers, sizes.heads, pre_norm=False)
    for path, array in weights_of(arrays, sizes).items():
        *folders, name = path.split(".")
        place: Any = spec
        for part in folders:
            place = place[int(part)] if part.isdigit() else getattr(place, part)
        setattr(place, name, array)
    spec.config.layer_norm_epsilon = EPSILON
    spec.register_source_vocabulary(words_of(sizes.vocabulary))
    spec.register_target_vocabulary(words_of(sizes.vocabulary))
    spec.validate()
    spec.save(str(folder))


def weights_of(
    arrays: Mapping[str, np.ndarray], sizes: TransformerSizes
) -> dict[str, np.ndarray]:
    """Renames and stacks parameters: matrices have a row for each output.

    Args:
      arrays: Parameters, as `project_worker.save_parameters` wrote them.
      sizes: Of the model.

    Returns:
      Arrays by their paths in `ctranslate2.specs.TransformerSpec`; numbers are places in lists.
    """
    codes = sinusoids(POSITIONS, sizes.depth)
    weights = {
        "encoder.embeddings.0.weight": arrays["source_embedding"],
        "decoder.embeddings.weight": arrays["target_embedding"],
        "encoder.position_encodings.encodings": codes,
        "decoder.position_encodings.encodings": codes,
        "decoder.projection.weight": arrays["output"],
        "decoder.projection.bias": arrays["output_bias"],
    }
    for side in ("encoder", "decoder"):
        for number in range(sizes.layers):
            ours, theirs = f"{side}.layer_{number}.", f"{side}.layer.{number}."
            weights |= _attention(arrays, ours, theirs, "self_attention", "self_norm")
            weights |= _feed_forward(arrays, ours, theirs)
            if side == "decoder":
                weights |= _attention(arrays, ours, theirs, "attention", "attention_norm")
    return {path: np.ascontiguousarray(array, np.float32) for path, array in weights.items()}


def _attention(
    arrays: Mapping[str, np.ndarray], ours: str, theirs: str, name: str, norm: str
) -> dict[str, np.ndarray]:
    """Stacks the projections that read the same: all of self-attention, keys and values else."""
    place = f"{ours}{name}."
    depth = arrays[f"{place}output_bias"].shape[0]
    projections = []
    for part in ("query", "key", "value"):
        rows = arrays[f"{place}{part}_projection"].transpose(0, 2, 1).reshape(-1, depth)
        # Softmax does not see a bias of the keys, so the project has none.
        bias = arrays.get(f"{place}{part}_bias", np.zeros(len(rows), np.float32)).flatten()
        projections.append((rows, bias))
    stacks = [projections] if name == "self_attention" else [projections[:1], projections[1:]]
    output = arrays[f"{place}output_kernel"].reshape(-1, depth).T
    stacks.append([(output, arrays[f"{place}output_bias"])])
    weights = _norm(arrays, f"{ours}{norm}", f"{theirs}{name}")
    for number, stack in enumerate(stacks):
        rows, biases = zip(*stack, strict=True)
        weights[f"{theirs}{name}.linear.{number}.weight"] = np.concatenate(rows)
        weights[f"{theirs}{name}.linear.{number}.bias"] = np.concatenate(biases)
    return weights


def _feed_forward(
    arrays: Mapping[str, np.ndarray], ours: str, theirs: str
) -> dict[str, np.ndarray]:
    weights = _norm(arrays, f"{ours}feed_forward_norm", f"{theirs}ffn")
    for number, name in enumerate(("hidden", "output")):
        weights[f"{theirs}ffn.linear_{number}.weight"] = arrays[f"{ours}feed_forward.{name}"].T
        weights[f"{theirs}ffn.linear_{number}.bias"] = arrays[f"{ours}feed_forward.{name}_bias"]
    return weights


def _norm(arrays: Mapping[str, np.ndarray], ours: str, theirs: str) -> dict[str, np.ndarray]:
    return {
        f"{theirs}.layer_norm.gamma": arrays[f"{ours}.scale"],
        f"{theirs}.layer_norm.beta": arrays[f"{ours}.bias"],
    }
