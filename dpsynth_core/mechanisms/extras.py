"""Packages that only some mechanisms need, and that are installed with them."""

from __future__ import annotations

from importlib.util import find_spec

from dpsynth_core.errors import DPSynthError


def require_extra(title: str, extra: str, *packages: str) -> None:
    """Refuse a mechanism whose packages are not installed, before anything is charged or drawn.

    Args:
        title: Of the mechanism.
        extra: Under which the packages are installed.
        packages: What it imports.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise DPSynthError(
            f"{title} needs {' and '.join(missing)}, not installed here. Whoever runs this program can add it with "
            f"\"pip install 'dpsynth-core[{extra}]'\", or with 'pip install -r requirements-{extra}.txt'. Nothing was "
            "charged."
        )
