"""What a training survives: faults that are made to happen, and what is lost to them."""
