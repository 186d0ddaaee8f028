"""One folder per data set, each holding a TFDS builder that needs no TensorFlow."""
