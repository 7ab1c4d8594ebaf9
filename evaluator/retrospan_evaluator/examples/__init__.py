"""Shipped example systems."""
