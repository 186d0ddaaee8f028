"""Word aligners: IBM Model 1 and an HMM of our own, and eflomal where it is installed."""
