"""Numbers as people read them."""

from __future__ import annotations

import math

from dpsynth_core.diagnostics.wording import measured
from dpsynth_core.privacy.budget import Amount, Guarantee, format_amount

__all__ = ["big_number", "delta_badge", "duration", "elapsed", "format_loss", "measured", "rows_per_cell"]


def format_loss(epsilon: Amount, delta: Amount, *, up: bool = True) -> str:
    """A privacy loss; with ``up=False`` what is left, which is rounded down.

    Example:
        >>> format_loss("0.1", 0)
        'ε 0.1, δ 0'
    """
    return f"ε {format_amount(epsilon, up=up)}, δ {format_amount(delta, up=up)}"


def delta_badge(guarantee: Guarantee) -> str:
    """The delta of a release, in the few words of a badge."""
    return "δ = 0 (pure)" if guarantee.kind == "pure" else f"δ = {format_amount(guarantee.delta)}"


def big_number(value: int) -> str:
    """A count of any size, readable.

    Example:
        >>> big_number(4096), big_number(2_199_023_255_552), big_number(10**40)
        ('4,096', '2.2 trillion', '10^40')
    """
    if value < 10**6:
        return f"{value:,}"
    # Not by way of text: Python refuses to write out numbers of thousands of digits.
    exponent = math.floor(math.log10(value))
    lead = value / 10**exponent
    if lead >= (9.995 if exponent < 15 else 9.95):  # it would be shown as ten
        exponent, lead = exponent + 1, 1.0
    if exponent < 15:
        return f"{lead * 10 ** (exponent % 3):.3g} {('million', 'billion', 'trillion')[exponent // 3 - 2]}"
    return f"10^{exponent}" if lead < 1.05 else f"{lead:.1f} × 10^{exponent}"


def rows_per_cell(rows: int, cells: int) -> str:
    """How crowded the domain is.

    Example:
        >>> rows_per_cell(12_345_678, 2), rows_per_cell(100, 250), rows_per_cell(400, 10**25)
        ('6.17 million', '0.4', 'below 0.001')
    """
    if rows >= 999 * cells:
        return big_number(rows // cells)
    return f"{rows / cells:.3g}" if cells <= 1_000 * rows else "below 0.001"


def duration(seconds: float) -> str:
    """A waiting time, roughly.

    Example:
        >>> duration(0.2), duration(12.4), duration(200)
        ('about 1 s', 'about 12 s', 'about 3 min')
    """
    return f"about {max(seconds, 1):.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"


def elapsed(seconds: float, expected: float | None) -> str:
    """How long something has taken so far, beside what was expected.

    Example:
        >>> elapsed(3.2, 12.0), elapsed(3.2, None), elapsed(30, 12.0)
        ('3 s so far; expected: about 12 s.', '3 s so far.', '30 s so far; longer than the 12 s expected.')
    """
    so_far = f"{seconds:.0f} s so far"
    if expected is None:
        return f"{so_far}."
    if seconds > 1.5 * expected + 1:
        return f"{so_far}; longer than the {expected:.0f} s expected."
    return f"{so_far}; expected: {duration(expected)}."
