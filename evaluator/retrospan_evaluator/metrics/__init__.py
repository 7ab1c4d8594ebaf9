"""What a score is and how each is computed."""
