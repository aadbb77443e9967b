"""Shared by all tests: how examples are drawn, and asserts that explain themselves in helpers too."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.tables", "tests.waiting")

# Deadlines measure the machine, not the code; the same examples every time, so that a red run can be repeated.
settings.register_profile(
    "dpsynth", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("dpsynth")
