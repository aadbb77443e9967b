"""Cutting the declared domain into cells: grids and trees."""
