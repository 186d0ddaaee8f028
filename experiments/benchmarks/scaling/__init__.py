"""Scaling: how the cost of training grows with sizes and with the number of devices."""
