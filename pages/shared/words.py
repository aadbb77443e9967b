"""Numbers as people read them."""

from __future__ import annotations

from fractions import Fraction


def number(value: Fraction | float) -> str:
    """A short decimal.

    Example:
        >>> number(Fraction(1, 3)), number(0)
        ('0.3333', '0')
    """
    return f"{float(value):.4g}"


def big_number(value: int) -> str:
    """A count of any size, readable.

    Example:
        >>> big_number(4096), big_number(2_199_023_255_552), big_number(10**40)
        ('4,096', '2.2 trillion', '10^40')
    """
    if value < 10**6:
        return f"{value:,}"
    for limit, name in ((10**9, "million"), (10**12, "billion"), (10**15, "trillion")):
        if value < limit:
            return f"{value * 1000 / limit:.3g} {name}"
    exponent = len(str(value)) - 1
    lead = value / 10**exponent
    return f"10^{exponent}" if lead < 1.05 else f"{lead:.1f} × 10^{exponent}"


def rows_per_cell(rows: int, cells: int) -> str:
    """How crowded the domain is, in words."""
    if cells <= rows:
        return f"{rows / cells:.3g}"
    return f"1 in {big_number(cells // rows)}"
