"""Tasks, one file each; a data set's config, or a model's, names its task by the file's name."""
