"""What the papers on coverage and on supervised attention claim, as comparisons of variants."""

from collections.abc import Mapping

from experiments.kit.alignment_variants import BASE
from experiments.kit.claims import Claim

_TU, _COHN, _SEE = "Tu et al. 2016", "Cohn et al. 2016", "See et al. 2017"
_LIU, _MI, _GARG = "Liu et al. 2016", "Mi et al. 2016", "Garg et al. 2019"

CLAIMS = (
    Claim(_TU, "linguistic coverage translates better", "bleu", "linguistic", BASE),
    Claim(_TU, "fertility helps linguistic coverage", "bleu", "fertility", "linguistic"),
    Claim(_TU, "neural coverage translates better", "bleu", "neural", BASE),
    Claim(_TU, "neural coverage aligns better", "aer", "neural", BASE),
    Claim(_TU, "neural coverage aligns better", "saer", "neural", BASE),
    Claim(_TU, "coverage drops fewer words", "dropped", "neural", BASE),
    Claim(_TU, "coverage repeats less", "repeated", "neural", BASE),
    Claim(_MI, "coverage embeddings translate better", "bleu", "embedding", BASE),
    Claim(_MI, "coverage embeddings align better", "aer", "embedding", BASE),
    Claim(_COHN, "structural biases translate better", "bleu", "biases", BASE),
    Claim(_COHN, "structural biases align better", "aer", "biases", BASE),
    Claim(_COHN, "global fertility in a second stage helps biases", "bleu", "global", "biases"),
    Claim(_COHN, "training both directions helps", "bleu", "symmetry", BASE),
    Claim(_COHN, "training both directions aligns better", "aer", "symmetry", BASE),
    Claim(_SEE, "the coverage loss repeats less", "repeated", "see_loss", BASE),
    Claim(_LIU, "supervision aligns better", "aer", "ce_hmm", BASE),
    Claim(_LIU, "supervision translates better", "bleu", "ce_hmm", BASE),
    Claim(_LIU, "cross-entropy is better than squared error", "bleu", "ce_hmm", "mse_hmm"),
    Claim(_LIU, "cross-entropy is better than multiplication", "bleu", "ce_hmm", "mul_hmm"),
    Claim(_GARG, "a supervised head aligns better", "aer", "head_eflomal", BASE),
)
# What no paper claims and a reader asks: what changes from the first variant to the second.
CONTRASTS: Mapping[str, tuple[str, str]] = {
    "supervision added to structural biases": ("biases", "combined"),
    "structural biases added to supervision": ("mse_eflomal", "combined"),
    "eflomal's links for the HMM's, CE": ("ce_hmm", "ce_eflomal"),
    "eflomal's links for the HMM's, MSE": ("mse_hmm", "mse_eflomal"),
    "eflomal's links for the HMM's, MUL": ("mul_hmm", "mul_eflomal"),
    "CE for MSE, eflomal's links": ("mse_eflomal", "ce_eflomal"),
    "CE for MUL, eflomal's links": ("mul_eflomal", "ce_eflomal"),
    "taught as it is read, for as it is written": ("ce_eflomal", "read_eflomal"),
    "a free head beside the taught one": ("read_eflomal", "head_eflomal"),
}
