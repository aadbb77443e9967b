"""What edited source calls where a slip of the pen needs more than an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.privacy.noise import Noise


def unpaid(noise: Noise, draw: Callable[[], Any]) -> Any:
    """A draw whose charge is not written down."""
    charges, spent = list(noise._charges), noise._spent
    drawn = draw()
    noise._charges[:], noise._spent = charges, spent
    return drawn


def reused(noise: Noise, values: Any, draw: Callable[[Any], Any]) -> Any:
    """A draw that is paid for, with the noise of the first draw of as many values."""
    kept: dict[Any, Any] = noise.__dict__.setdefault("_reused", {})
    fresh = np.asarray(draw(values)) - np.asarray(values)
    return np.asarray(values) + kept.setdefault(fresh.shape, fresh)


def guessed(values: Any) -> Any:
    """A column whose kind is guessed from its cells: numbers if most of them look like numbers, else text."""
    if not isinstance(values, pd.Series):
        return values
    numbers = pd.to_numeric(values, errors="coerce")
    return numbers if numbers.notna().mean() > 1 / 2 else values.astype(str)


def inferred(values: Any) -> Any:
    """A column of the type that all its cells have in common, if they have one."""
    return values.convert_dtypes() if isinstance(values, pd.Series) else values
