"""A private KD tree."""

from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree

__all__ = ["KDTree"]
