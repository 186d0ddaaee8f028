"""A decoder of a few tokens whose every state leaf matters, in JAX and in plain NumPy float64."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import search

PAD, BOS, EOS, UNK = range(4)


class ToyModel:
    """Scores depend on the source and, through two leaves of the state, on all past tokens.

    A search that reordered hypotheses without reordering a leaf would report log-probabilities
    and attention that `rescore`, which knows no state, contradicts.
    """

    def __init__(self, seed=0, vocabulary=6, source=3, batch=2, scale=2.0):
        draw = np.random.default_rng(seed).normal
        self.vocabulary, self.source, self.batch = vocabulary, source, batch
        self.bias = draw(size=(batch, vocabulary))
        self.embedding = draw(size=(vocabulary, 5))
        self.recurrent = draw(size=(5, 5)) / 2
        self.readout = draw(size=(5, vocabulary)) * scale
        self.counts_readout = draw(size=(vocabulary, vocabulary))
        self.counts_attention = draw(size=(vocabulary, source))

    def start(self):
        """Returns the state before the first token, leaves `B 1 ...`."""
        return {
            "hidden": jnp.zeros((self.batch, 1, 5)),
            "counts": jnp.zeros((self.batch, 1, self.vocabulary)),
            "bias": jnp.asarray(self.bias, float)[:, None],
        }

    def step(self, state, tokens):
        """Follows the contract of a search's step function."""
        array = lambda values: jnp.asarray(values, float)  # noqa: E731
        hidden = jnp.tanh(state["hidden"] @ array(self.recurrent) + array(self.embedding)[tokens])
        counts = 0.5 * state["counts"] + jax.nn.one_hot(tokens, self.vocabulary)
        logits = hidden @ array(self.readout) + counts @ array(self.counts_readout)
        weights = jax.nn.softmax(counts @ array(self.counts_attention))
        state = {"hidden": hidden, "counts": counts, "bias": state["bias"]}
        return SoftmaxPredictions(logits + state["bias"]), weights, state

    def distributions(self, row, tokens):
        """Returns log p(. | prefix) and the attention at each position, by NumPy."""
        hidden, counts = np.zeros(5), np.zeros(self.vocabulary)
        log_probs, weights = [], []
        for token in [BOS, *tokens[:-1]]:
            hidden = np.tanh(hidden @ self.recurrent + self.embedding[token])
            counts = 0.5 * counts + np.eye(self.vocabulary)[token]
            logits = hidden @ self.readout + counts @ self.counts_readout + self.bias[row]
            log_probs.append(logits - np.log(np.exp(logits).sum()))
            scores = np.exp(counts @ self.counts_attention)
            weights.append(scores / scores.sum())
        return np.array(log_probs), np.array(weights)

    def rescore(self, row, tokens):
        """Returns log p(tokens) and the attention at each position, by NumPy."""
        log_probs, weights = self.distributions(row, tokens)
        return log_probs[np.arange(len(tokens)), tokens].sum(), weights

    def all_outputs(self, longest, shortest=1, forbid_unknown=False):
        """Lists every output of at most `longest` tokens, EOS included."""
        words = [t for t in range(UNK, self.vocabulary) if not (forbid_unknown and t == UNK)]
        for length in range(shortest, longest + 1):
            for prefix in itertools.product(words, repeat=length - 1):
                yield [*prefix, EOS]


@functools.partial(
    jax.jit,
    static_argnames=("step", "config", "max_length"),
    compiler_options={"xla_backend_optimization_level": 0},  # compiles twice as fast
)
def jitted(step, state, config, source_lengths, max_length, rng=None, prefix=None):
    """Runs a search compiled as one program, as users do."""
    return search(step, state, config, source_lengths, max_length, rng, prefix=prefix)


def penalty(normalization, alpha, length):
    """What a log-probability is divided by, from the definitions."""
    return {"none": 1.0, "length": length**alpha, "gnmt": ((5 + length) / 6) ** alpha}[
        normalization
    ]


def real(hypotheses, row, rank):
    """Returns one hypothesis's tokens without padding."""
    return np.asarray(hypotheses.tokens)[row, rank, : int(hypotheses.lengths[row, rank])].tolist()
