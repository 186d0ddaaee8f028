"""Analysis of trained runs: evaluation, alignments, heads, comparisons and the attention viewer."""
