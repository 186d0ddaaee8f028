"""Online decoding: what a model needs to write outputs before it has read the whole source."""

from typing import Any

from attention_jax.layers.mechanism import described
from attention_jax.layers.readout import Readout, sums_over_slots


def why_it_waits(model: Any) -> str | None:
    """Says in one line which part of a model has to see the whole source.

    What has been read is encoded once and for all by an encoder that looks back only; a decoder
    that starts from nothing needs no more of it than its attention reads; and attention that
    stops while it reads tells how far that is.

    Args:
      model: Any model; of both directions, the forward one counts.

    Returns:
      The field, what it is expected to be, and what was found; None where a prefix suffices.
    """
    model = getattr(model, "forward", model)
    if not hasattr(model, "sources"):
        return f"model.name: expected a model that reads a source, found {model.config.name!r}"
    config, sources, decoder = model.config, model.sources, model.decoder
    first = sources[0]
    encoder, chosen = first.encoder, config.sources[first.name].encoder
    if len(sources) > 1:
        return f"model.sources: expected one, found {', '.join(source.name for source in sources)}"
    if not (encoder.is_causal and encoder.keeps_positions):
        direction = getattr(chosen, "direction", None)
        found = f"{chosen.name!r}" + (f" with direction {direction!r}" if direction else "")
        return (
            f"model.sources.{first.name}.encoder: expected annotations that do not change as more "
            f"is read, such as those of 'recurrent' with direction 'forward', found {found}"
        )
    if type(model.readout).prepare is not Readout.prepare:
        why = ", which sums over all slots" if sums_over_slots(config.readout) else ""
        return (
            "model.readout.name: expected a readout that reads no source, such as 'softmax', found "
            f"{config.readout.name!r}{why}"
        )
    mechanism = decoder.mechanism
    if mechanism is None or not mechanism.traits.is_online:
        evaluation = getattr(config.attention, "evaluation", None)
        found = f" with evaluation {evaluation!r}" if evaluation else ""
        if mechanism is not None and mechanism.traits.reads_length:
            found += ", which reads how many slots there are"
        return (
            "model.attention: expected attention that stops while it reads, 'monotonic' or 'mocha' "
            f"with evaluation 'hard', found {described(config.attention)}{found}"
        )
    if model.aligner.is_separate:
        return (
            "model.aligner.name: expected 'attention', by which it is told how much has been read, "
            f"found {config.aligner.name!r}"
        )
    if not decoder.is_online:
        return (
            "model.decoder: expected one that starts from nothing, with bridge 'zero', or a "
            "transformer of one layer, found another"
        )
    return None
