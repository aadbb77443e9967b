"""Comparators of the KD tree: the mean of a kernel's features over all rows, released once, and rows made from it."""
