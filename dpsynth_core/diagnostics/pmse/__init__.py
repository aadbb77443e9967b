"""Propensity scores: can an observer tell synthetic rows from original ones?"""
