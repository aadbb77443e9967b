"""Maximum mean discrepancy: how far apart two sets of points are through a kernel."""

from dpsynth_core.diagnostics.mmd.distance import mmd

__all__ = ["mmd"]
