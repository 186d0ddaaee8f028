"""How the cost of training grows with its sizes and with the number of devices."""
