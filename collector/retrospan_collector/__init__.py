"""Receive spans, store them in ClickHouse, assemble requests."""
