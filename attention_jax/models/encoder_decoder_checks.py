"""Do the parts of an encoder-decoder fit? Each check raises `ValueError`, in one line.

What is said begins with the path of a field below `config.model`, for `build` to complete.
"""

from typing import Any

from attention_jax.layers import mechanism
from attention_jax.layers.decoder import SequenceDecoder
from attention_jax.layers.readout import sums_over_slots
from attention_jax.layers.refinement import positional_refinements
from attention_jax.layers.source import Source


def check_tying(
    config: Any, sources: tuple[Source, ...], source_size: int, target_size: int
) -> None:
    """Weight tying: rejects one table for vocabularies or depths that differ."""
    if config.tie_embeddings != "all":
        return
    if source_size != target_size:
        raise ValueError(
            "tie_embeddings: expected a joint vocabulary for 'all', found "
            f"{source_size} source and {target_size} target symbols"
        )
    for source in sources:
        if source.input.vocabulary_size is None:
            raise ValueError(
                "tie_embeddings: expected sources of tokens for 'all', found "
                f"sources.{source.name}.input.name={config.sources[source.name].input.name!r}"
            )
        if source.input.depth != config.target_embedding_dim:
            raise ValueError(
                "tie_embeddings: expected embeddings of one depth for 'all', found "
                f"{source.input.depth} and {config.target_embedding_dim}"
            )


def check_parts(config: Any, source: Source) -> None:
    """Idle parts: rejects one that leaves another without effect."""
    reading, chosen = source.encoder, config.sources[source.name].encoder
    is_initial_only = getattr(config.attention, "conditioning", None) == "initial_state"
    bridge = getattr(config.decoder, "bridge", None)
    reads_both_ways = bool(reading.finals) and len(reading.finals[-1].readings) > 1
    is_partial = bridge in ("backward", "copy_backward") and reads_both_ways
    if is_initial_only and (bridge == "zero" or is_partial):
        raise ValueError(
            "decoder.bridge: expected one that hands over all that the encoder has read, as "
            f"attention.conditioning is 'initial_state', found {bridge!r}"
        )
    cells = [getattr(config.decoder, "cell", None), *(final.cell for final in reading.finals)]
    if config.initialization.forget_bias and "lstm" not in cells:
        raise ValueError(
            "initialization.forget_bias: expected only with an lstm in encoder or decoder, "
            f"found {config.initialization.forget_bias}"
        )
    if is_initial_only and getattr(config.decoder, "variant", None) in ("gnmt", "gnmt_v2"):
        raise ValueError(
            "decoder.variant: expected 'paper' where attention.conditioning is 'initial_state', "
            f"since variants differ in their contexts, found {config.decoder.variant!r}"
        )
    if reading.makes_keys and not config.attention.reads_keys:
        raise ValueError(
            f"sources.{source.name}.encoder.name: expected one without keys of their own beside "
            f"attention that reads none, {mechanism.described(config.attention)}, found "
            f"{chosen.name!r}"
        )
    positional = positional_refinements(config.attention)
    stacks = [part for part in (chosen, config.decoder) if hasattr(part, "self_attention")]
    if positional and stacks and all(part.self_attention is not None for part in stacks):
        raise ValueError(
            "attention.refinements: expected none that compare positions where every "
            "self_attention has its own, found "
            f"{', '.join(map(repr, positional))}"
        )


def check_readout(config: Any, functions: SequenceDecoder) -> None:
    """Readout: rejects one that is not for what the decoder returns."""
    if sums_over_slots(config.readout) and functions.reads_contexts:
        raise ValueError(
            "decoder.name: expected one that reads no contexts, such as 'transducer', beside the "
            f"readout {config.readout.name!r}, found {config.decoder.name!r}"
        )
    if not (sums_over_slots(config.readout) or functions.reads_contexts):
        raise ValueError(
            "readout.name: expected one that reads the source, such as 'marginal', beside the "
            f"decoder {config.decoder.name!r}, found {config.readout.name!r}"
        )
    conditioning = getattr(config.attention, "conditioning", "every_step")
    if conditioning != "every_step" and not functions.reads_contexts:
        raise ValueError(
            "attention.conditioning: expected 'every_step' beside the decoder "
            f"{config.decoder.name!r}, which reads no contexts, found {conditioning!r}"
        )
