"""What a run tells while it trains: to the screen, to files, to other writers."""
