"""Spans in, requests out."""
