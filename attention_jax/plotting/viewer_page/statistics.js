// Numbers that are computed from the weights.

/** The sum of the weights over target positions, for each source token. */
function coverageOf(attention) {
  const width = attention.source.length;
  const sums = new Float64Array(width);
  attention.levels.forEach((level, place) => {
    sums[place % width] += level * attention.step;
  });
  return sums;
}

/** Half the sum of absolute differences. */
function variation(one, other) {
  let sum = 0;
  for (let place = 0; place < one.length; place++) sum += Math.abs(one[place] - other[place]);
  return sum / 2;
}

/**
 * The mean total variation distance between the rows of two views, from 0 to 1. Where the targets
 * differ there are no rows to compare, and it is the distance between the shares of coverage.
 */
function disagreementOf(index, first, second) {
  const [one, other] = [attentionOf(index, first), attentionOf(index, second)];
  if (!sameTokens(one.target, other.target)) {
    return variation(shares(coverageOf(one)), shares(coverageOf(other)));
  }
  const rows = one.target.length;
  return rows ? variation(valuesOf(one), valuesOf(other)) / rows : 0;
}

function valuesOf(attention) {
  return Float64Array.from(attention.levels, (level) => level * attention.step);
}

function shares(values) {
  const total = values.reduce((sum, value) => sum + value, 0);
  return total ? values.map((value) => value / total) : values;
}

function sameTokens(one, other) {
  return one.length === other.length && one.every((token, place) => token === other[place]);
}

/** Where a row has its largest weight, or null where it has none. */
function strongest(attention, target) {
  let best = null;
  let most = 0;
  for (let source = 0; source < attention.source.length; source++) {
    const weight = weightOf(attention, target, source);
    if (weight > most) [best, most] = [source, weight];
  }
  return best;
}

function asWeight(value) {
  if (value === 0) return "0";
  return value < 0.005 ? "<0.01" : value.toFixed(2);
}

function asScore(value) {
  if (Number.isInteger(value)) return String(value);
  return value.toFixed(Math.abs(value) < 1 ? 3 : Math.abs(value) < 10 ? 2 : 1);
}
