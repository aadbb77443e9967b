"""Giving memory that nobody uses any more back to the system."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa


def give_back() -> None:
    """Free what sessions that have gone held, and tell the system.

    A session's parts refer to each other, so they wait for Python's collector; what it frees lies in pieces between
    things still in use, where the C library would keep it.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
