"""Benchmarks of the store, its look-ups and the assembler; `python -m tests.benchmarks list`."""
