"""One file for each attention mechanism; its name is the one that configs use."""
