"""Compiling inner loops to machine code, once per installation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).parent
LONG = 0.2
"""Seconds of compiling from which on a program is stored."""


def compiled(function: F) -> F:
    """The same function as machine code, kept on disk for the next process and free of the interpreter's lock."""
    try:
        return cast("F", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # Neither the package nor the user's cache directory can be written: compile anew in every process.
        return cast("F", numba.njit(nogil=True)(function))


def compiled_sums(function: F) -> F:
    """The same, with sums in the quickest order: only for loops whose result may depend on it in the last digit.

    Values that are not numbers or not finite keep their meaning, unlike with all of Numba's fast arithmetic.
    """
    options: Any = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:
        return cast("F", numba.njit(**options)(function))


def keep_programs(jax: Any) -> None:
    """Let JAX keep the programs that take it longest to compile, for the next process.

    Only for programs that get every table as an argument: a constant of a program would be written to disk with it.
    """
    if os.access(PACKAGE, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(PACKAGE / "__pycache__" / f"programs-{jax.__version__}"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LONG)


def _cache_folder() -> Path:
    """A folder of its own for each version of the loops.

    Loops call loops of other files, whose changes Numba does not notice: it would go on with the old ones.
    """
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if b"@compiled" in source:
            digest.update(source)
    return PACKAGE / "__pycache__" / f"loops-{digest.hexdigest()[:16]}"


_config = cast("Any", numba.config)  # its attributes are made at run time
if not _config.CACHE_DIR and os.access(PACKAGE, os.W_OK):
    _config.CACHE_DIR = str(_cache_folder())
