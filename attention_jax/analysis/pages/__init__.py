"""Pages of what was gathered of a split's examples, one file each; a task names its own."""
