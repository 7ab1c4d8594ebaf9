"""Intervals and tests, each with its source."""
