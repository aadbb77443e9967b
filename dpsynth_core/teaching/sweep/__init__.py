"""Mechanisms over a grid of epsilon, for teaching: public or simulated tables only."""
