"""Untrained runs of two sources, of which the second is the longer one."""

from pathlib import Path
from typing import Any

from attention_jax.data.loading import TaskData
from attention_jax.layers.aligner import ALIGNERS
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import TrainedRun
from tests.models.test_encoders_with_decoders import small
from tests.training.untrained import untrained, write_text

D = 8
HEADS = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
STACK = {"num_layers": 1, "feed_forward_dim": D}
TRANSFORMER = {"name": "transformer", "num_layers": 2, "feed_forward_dim": D}
RECURRENT = {"name": "conditional_gru", "hidden_dim": D, "readout_dim": D}
ADDITIVE = {"name": "bahdanau", "attention_dim": D}


def further_lines(number: int) -> list[str]:
    """Returns texts of the second source: longer than the first source's are."""
    words = [f"mot{place}" for place in range(12)]
    return [" ".join(words[: 7 + index % 5]) for index in range(number)]


def two_sources_run(
    folder: Path,
    *,
    number: int = 6,
    transformer: bool = True,
    alone: bool = False,
    aligner: str = "attention",
    **fields: Any,
) -> tuple[TrainedRun, TaskData]:
    """Returns a run over the lines of `write_text` and, beside them, those of `further_lines`.

    Args:
      folder: Of the run; the texts are written beside it.
      number: How many lines.
      transformer: Whether it is a Transformer; otherwise its decoder is recurrent.
      alone: Whether its model reads the first source alone.
      aligner: What says the links; other than attention, it is taught at the step that reads.
      **fields: Of the aligner.
    """
    folder.parent.mkdir(exist_ok=True)
    source, target = write_text(folder.parent, number)
    further = folder.parent / "text.fr"
    further.write_text("".join(f"{line}\n" for line in further_lines(number)))
    data = {"name": "parallel", "subwords": {"kind": "words"}, "eval_batch_size": 4}
    for split in ("train", "validation", "test"):
        data |= {f"{split}_source": source, f"{split}_target": target}
    data["further"] = {"second": {split: str(further) for split in ("train", "validation", "test")}}
    encoder = {"name": "self_attention", **STACK} if transformer else {"hidden_dim": D}
    reading = {"input": {"name": "tokens", "embedding_dim": D}, "encoder": encoder}
    score = HEADS if transformer else ADDITIVE
    model = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {"source": reading} if alone else {"source": reading, "second": reading},
        "attention": score if alone else {"name": "parallel", "score": score},
        "decoder": TRANSFORMER if transformer else RECURRENT,
    }
    objectives = {"nll": {}}
    if aligner != "attention":
        model["aligner"] = {**small(ALIGNERS.config(aligner)), **fields}
        objectives["supervised_alignment"] = {"step": "reads"}
        data["alignment"] = {"method": "ibm1"}
    config = from_config_dict({
        "data": data, "model": model, "objectives": objectives, "training": {"num_steps": 1},
        "search": {"method": "greedy"}, "evaluation": {"splits": ("test",), "num_heat_maps": 0},
    })  # fmt: skip
    return untrained(config, folder)
