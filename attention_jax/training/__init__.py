"""Training a model: the loop, what it is assembled from, its devices and its directory."""
