"""Shared by all tests: hypothesis profiles and a schema strategy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code.
settings.register_profile("dpsynth", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("dpsynth")
