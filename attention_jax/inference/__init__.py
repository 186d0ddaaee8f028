"""What a trained run is for: to decode, translate, score, compare and look into it."""
