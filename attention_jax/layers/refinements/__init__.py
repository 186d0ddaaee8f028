"""One file for each refinement of multi-head attention; its name is the one that configs use."""
