"""The aligners once more, written with loops over words, and over all paths of the HMM."""

import itertools
import math
from collections import defaultdict

NULL = None


def ibm1(pairs, iterations, *, null, smoothing):
    """Returns t as {(f, e): probability} and the log-likelihood before every iteration."""
    target_words = {word for _, target in pairs for word in target}
    table = defaultdict(lambda: 1 / len(target_words))
    history = []
    for _ in range(iterations):
        counts, log_likelihood = defaultdict(float), 0.0
        for source, target in pairs:
            states = list(source) + [NULL] * null
            for word in target:
                total = sum(table[state, word] for state in states)
                log_likelihood += math.log(total / len(states))
                for state in states:
                    counts[state, word] += table[state, word] / total
        history.append(log_likelihood)
        table = normalized(counts, smoothing, len(target_words))
    return table, history


def normalized(counts, smoothing, num_target_words):
    """Returns t(e|f) for every pair of words with a count."""
    totals = defaultdict(float)
    for (source, _), count in counts.items():
        totals[source] += count
    return {
        (source, target): (count + smoothing) / (totals[source] + smoothing * num_target_words)
        for (source, target), count in counts.items()
    }


def paths(emissions, null_emissions, start, transitions, p0):
    """Yields every path with its probability.

    A path has a (position, is null) for each target word; NULL stays at the position before.
    """
    length, positions = len(emissions), range(len(start))
    for path in itertools.product(itertools.product(positions, (False, True)), repeat=length):
        probability, before = 1.0, None
        for step, (position, is_null) in enumerate(path):
            if is_null:
                reached = start[position] if before is None else float(position == before)
                probability *= p0 * reached * null_emissions[step]
            else:
                reached = start[position] if before is None else transitions[before][position]
                probability *= (1 - p0) * reached * emissions[step][position]
            before = position
        if probability:
            yield path, probability


def summed_over_paths(emissions, null_emissions, start, transitions, p0):
    """Returns p, posteriors (NULL last), expected starts, expected jumps, and the best states."""
    length, positions = len(emissions), len(start)
    posteriors = [[0.0] * (positions + 1) for _ in range(length)]
    starts = [0.0] * positions
    jumps = [[0.0] * positions for _ in range(positions)]
    total, best, best_path = 0.0, 0.0, None
    for path, probability in paths(emissions, null_emissions, start, transitions, p0):
        total += probability
        if probability > best:
            best, best_path = probability, path
        for step, (position, is_null) in enumerate(path):
            posteriors[step][positions if is_null else position] += probability
            if not step:
                starts[position] += probability
            elif not is_null:
                jumps[path[step - 1][0]][position] += probability
    scaled = [[[value / total for value in row] for row in rows] for rows in (posteriors, jumps)]
    states = [positions if is_null else position for position, is_null in best_path]
    return total, scaled[0], [value / total for value in starts], scaled[1], states


def jump_probabilities(num_words, weight_of, uniform_share):
    """Returns the distribution of the first position, and that of the next for each position."""
    rows = []
    for before in range(-1, num_words):
        weights = [weight_of[position - before] for position in range(num_words)]
        rows.append(
            [
                (1 - uniform_share) * weight / sum(weights) + uniform_share / num_words
                for weight in weights
            ]
        )
    return rows[0], rows[1:]


def hmm_counts(pairs, table, weight_of, uniform_share, p0):
    """Returns the expected counts of links and of jumps by width, and the log-likelihood."""
    links, widths, log_likelihood = defaultdict(float), defaultdict(float), 0.0
    for source, target in pairs:
        start, transitions = jump_probabilities(len(source), weight_of, uniform_share)
        emissions = [[table[word, each] for word in source] for each in target]
        null_emissions = [table[NULL, each] for each in target]
        total, posteriors, starts, jumps, _ = summed_over_paths(
            emissions, null_emissions, start, transitions, p0
        )
        log_likelihood += math.log(total)
        for word, row in zip(target, posteriors, strict=True):
            for state, value in zip([*source, NULL], row, strict=True):
                links[state, word] += value
        for position, value in enumerate(starts):
            widths[position + 1] += value
        for before, row in enumerate(jumps):
            for position, value in enumerate(row):
                widths[position - before] += value
    return links, widths, log_likelihood


def similarity(one, other):
    """Returns the Dice coefficient of two words' bigrams; 0 if one is NULL."""
    if one is NULL:
        return 0.0
    bigrams = [{*zip(["^", *word], [*word, "$"], strict=True)} for word in (one, other)]
    return 2 * len(bigrams[0] & bigrams[1]) / (len(bigrams[0]) + len(bigrams[1]))


def spelt(counts, num_target_words, settings):
    """Returns t(e|f) of counts {(f, e): count} by the prior of `spelling` with these settings."""
    smoothing, letters = settings["SMOOTHING"], settings["STEM_LETTERS"]

    def stem(word):
        return NULL if word is NULL else word[:letters]

    stem_counts, of_word, of_stem = defaultdict(float), defaultdict(float), defaultdict(float)
    for (source, target), count in counts.items():
        stem_counts[stem(source), stem(target)] += count
        of_word[target] += count
        of_stem[stem(target)] += count
    by_stem = normalized(stem_counts, smoothing, len(of_stem))
    seen, totals = {}, defaultdict(float)
    for (source, target), count in counts.items():
        alike = similarity(source, target) ** settings["SIMILARITY_POWER"]
        seen[source, target] = count + settings["SIMILARITY_WEIGHT"] * alike
        totals[source] += seen[source, target]
    found = {}
    for (source, target), count in seen.items():
        share = of_word[target] / of_stem[stem(target)]
        back = settings["STEM_WEIGHT"] * by_stem[stem(source), stem(target)] * share
        total = totals[source] + smoothing * num_target_words + settings["STEM_WEIGHT"]
        found[source, target] = (count + smoothing + back) / total
    return found
