"""How good a model is: losses, searches and scores of a split, and when to stop for them."""
