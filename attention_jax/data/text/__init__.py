"""Vocabularies, tokenisers and subwords."""
