"""Word aligners: IBM Model 1, an HMM and a pair of HMMs of our own, and eflomal if installed."""
