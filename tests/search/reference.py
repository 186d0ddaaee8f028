"""Beam search as its definition reads, in plain Python and float64, prefix by prefix."""

import numpy as np

from tests.search.toy_model import BOS, EOS, PAD, penalty


def coverage_penalty(kind, beta, weights, words):
    """What the attention `T S` of a hypothesis adds to its score; `words` columns count."""
    received = np.asarray(weights, np.float64).sum(axis=0)[:words]
    if kind == "gnmt":
        return beta * np.log(np.clip(received, 1e-10, 1)).sum()
    return -beta * np.maximum(received - 1, 0).sum() if kind == "summary" else 0.0


def has_repeats(tokens, size):
    """Whether an n-gram of `size` tokens occurs twice."""
    grams = [tuple(tokens[n : n + size]) for n in range(len(tokens) - size + 1)]
    return size > 0 and len(set(grams)) < len(grams)


def score(model, row, tokens, config, source_length):
    """The score of an output."""
    log_prob, weights = model.rescore(row, tokens)
    normalised = log_prob / penalty(config.length_normalization, config.length_alpha, len(tokens))
    cost = coverage_penalty(
        config.coverage_penalty, config.coverage_beta, weights, source_length - 1
    )
    return normalised + cost


def beam_search(model, row, config, source_length, longest, prefix=()):
    """The finished hypotheses [(score, tokens)], best first, of one source.

    All begin with the prefix. Stops when K have ended, never because nothing could become better.
    """
    start = model.rescore(row, [*prefix])[0] if prefix else 0.0
    live, finished = [(start, [*prefix])], []
    for length in range(len(prefix) + 1, longest + 1):
        continuations = []
        for log_prob, prefix in live:
            log_probs, weights = model.distributions(row, [*prefix, EOS])
            handicap = 0.0
            if config.coverage_stepwise:
                handicap = coverage_penalty(
                    config.coverage_penalty, config.coverage_beta, weights, source_length - 1
                )
            others = [] if length == longest else [
                token for token in range(model.vocabulary) if token not in (PAD, BOS, EOS)
                and not has_repeats([*prefix, token], config.no_repeat_ngram_size)
            ]  # fmt: skip
            for token in [EOS, *others]:
                reached = log_prob + log_probs[-1, token]
                continuations.append((reached + handicap, reached, [*prefix, token]))
        continuations.sort(reverse=True)
        best = continuations[: config.beam_size]
        for _, _, tokens in best:
            if tokens[-1] == EOS:
                finished.append((score(model, row, tokens, config, source_length), tokens))
        if len(finished) >= config.beam_size:
            break
        unfinished = [one for one in continuations if one[2][-1] != EOS]
        live = [(reached, tokens) for _, reached, tokens in unfinished[: config.beam_size]]
    return sorted(finished, reverse=True)[: config.num_hypotheses]
