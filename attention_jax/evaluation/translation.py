"""Scores of translations: BLEU, chrF and length ratio, as sacrebleu defines them."""

from collections.abc import Sequence

from sacrebleu.metrics import BLEU, CHRF

from attention_jax.evaluation.error_rates import check_parallel
from attention_jax.evaluation.unknown import scorable


def translation_scores(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, float | str]:
    """BLEU and chrF: scores detokenised translations against one or more references each.

    Args:
      hypotheses: One detokenised translation for each source; for unknown words see `unknown`.
      references: The references of each source, in any number.
      tokenize: sacrebleu's tokenizer for BLEU: `13a`, `intl`, `char`, `zh`, ...
      lowercase: Whether case is ignored.

    Returns:
      `bleu` and `chrf` (0 to 100), `length_ratio` (tokens of the hypotheses over those of the
      references nearest in length), and the `bleu_signature` and `chrf_signature` that say
      exactly what was computed.

    Raises:
      ValueError: If the lists are empty or of unequal length, or an example has no reference.
    """
    check_parallel(hypotheses, references)
    hypotheses = scorable(hypotheses, references)
    streams = reference_streams(references)
    # `force` only silences a complaint about hypotheses that end in " .".
    bleu = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    chrf = CHRF(lowercase=lowercase)
    # sacrebleu's annotations do not know of the None that its documentation asks for.
    bleu_score = bleu.corpus_score(hypotheses, streams)  # type: ignore[arg-type]
    chrf_score = chrf.corpus_score(hypotheses, streams)  # type: ignore[arg-type]
    return {
        "bleu": bleu_score.score,
        "chrf": chrf_score.score,
        "length_ratio": bleu_score.sys_len / max(bleu_score.ref_len, 1),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
    }


def reference_streams(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Reference streams: transposes references to sacrebleu's layout, by rank before sentence.

    Sentences with fewer references than the most have None in the last streams.
    """
    most = max(len(variants) for variants in references)
    return [
        [variants[rank] if rank < len(variants) else None for variants in references]
        for rank in range(most)
    ]
