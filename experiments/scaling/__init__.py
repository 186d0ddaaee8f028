"""How training scales: planned before there are devices, measured where there are some."""
