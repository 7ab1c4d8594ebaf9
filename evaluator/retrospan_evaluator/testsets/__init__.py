"""Cases and datasets."""
