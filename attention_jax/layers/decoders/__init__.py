"""One file for each order of decoding; its name is the one that configs use."""
