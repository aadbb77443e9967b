"""A graphical model fitted to noisy counts of columns and pairs."""

from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM

__all__ = ["PrivatePGM"]
