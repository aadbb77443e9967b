"""Multiplicative weights with the exponential mechanism."""

from dpsynth_core.mechanisms.mwem.mechanism import MWEM

__all__ = ["MWEM"]
