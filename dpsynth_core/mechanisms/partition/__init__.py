"""Cutting the declared domain into cells: what the histograms, the KD grid, the KD tree and MWEM share."""
