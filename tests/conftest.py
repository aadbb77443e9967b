"""Shared by all tests: hypothesis profiles and a schema strategy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code; the same examples every time, so that a red run can be repeated.
settings.register_profile(
    "dpsynth", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("dpsynth")
