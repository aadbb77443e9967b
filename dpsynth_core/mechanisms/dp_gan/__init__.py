"""A generator that learns from critics through gradients made private on their way back."""

from dpsynth_core.mechanisms.dp_gan.mechanism import DPGAN

__all__ = ["DPGAN"]
