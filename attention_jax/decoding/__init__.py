"""Decoding: a split or a text searched, forced decoding, and outputs turned into text."""
