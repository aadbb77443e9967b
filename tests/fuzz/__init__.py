"""Mutated files against the readers: ``python -m tests.fuzz --files 10000``."""
