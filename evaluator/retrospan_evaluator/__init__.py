"""Score, replay and diagnose recorded requests."""
