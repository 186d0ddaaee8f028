"""Fields of a batch that only some need, such as an objective: found by name, a file each."""
