"""Data: builders, text processing, length buckets, batch plans and iterators."""
