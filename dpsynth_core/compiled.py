"""Compiling inner loops to machine code, once per installation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The same function as machine code, kept on disk for the next process and free of the interpreter's lock."""
    try:
        return cast("F", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # Neither the package nor the user's cache directory can be written: compile anew in every process.
        return cast("F", numba.njit(nogil=True)(function))
