"""Measurements, as ratios within one run. See README.md."""
