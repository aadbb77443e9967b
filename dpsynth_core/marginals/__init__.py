"""Counts over few columns at a time: workloads, measurements, and the models that are fitted to them."""
