"""A small keyed sketch of a table's rows, by which a table that shares most of its rows with another is recognised.

A fingerprint changes with a single cell, so a corrected or extended table would get a fresh budget although it is about
the same people. The sketch keeps the smallest of the rows' keyed hashes ("bottom-k"; Broder 1997; Cohen & Kaplan 2007).
Of two tables, the share of common hashes among the k smallest of both together estimates the Jaccard similarity of the
two sets of rows; with their sizes, that gives the number of rows in common.

A row's hash is the sum of keyed hashes of its cells, each with its column's name, modulo 2^64. It does not depend on
the order of columns, and leaving a column out is a subtraction: there is one sketch of whole rows, and one without each
column, so that one column that was added, removed, renamed or changed hides nothing. Without the installation key the
hashes tell nothing about the rows; they stay in the ledger and are never published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SIZE = 128
"""Hashes that are kept: the standard error of the estimated similarity is at most 1 / (2 sqrt(128)), about 0.04."""
MAX_COLUMNS = 60
"""Of wider tables only the sketch of whole rows is kept."""
NEAR = 0.5
"""Share of the smaller table's rows that are in the other one, from which on a warning is due."""
NEAR_WHERE_ROWS_REPEAT = 0.95
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Takes the hashes of a row's repetitions apart; odd, so that no two coincide."""


@dataclass(frozen=True, kw_only=True)
class RowSketch:
    """The smallest hashes of a table's rows."""

    rows: int
    hashes: Mapping[str, tuple[int, ...]]
    """Ascending; of whole rows under the empty name, and of rows without a column under that column's keyed name."""
    distinct: Mapping[str, int]
    """Different rows, by the same names."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; hashes as text, because JSON readers may round long numbers."""
        hashes = {name: [f"{h:x}" for h in found] for name, found in self.hashes.items()}
        return {"rows": self.rows, "hashes": hashes, "distinct": dict(self.distinct)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> RowSketch:
        """A sketch as the ledger has stored it."""
        hashes = {str(name): tuple(int(h, 16) for h in found) for name, found in saved["hashes"].items()}
        distinct = {str(name): int(count) for name, count in saved["distinct"].items()}
        return cls(rows=int(saved["rows"]), hashes=hashes, distinct=distinct)


def sketch_rows(table: pd.DataFrame, key: bytes) -> RowSketch:
    """The sketch of a table as it was read.

    Args:
        table: Its cells, typed or as text: ``1``, ``1.0`` and ``" 1"`` are the same.
        key: The installation key.
    """
    secret = hashlib.blake2b(b"dpsynth row sketch", key=key, digest_size=16).hexdigest()[:16]
    total: NDArray[np.uint64] = np.zeros(len(table), dtype=np.uint64)
    columns = {}
    for place, name in enumerate(table.columns):
        columns[_keyed_name(str(name), key)] = cells = _hashed(table.iloc[:, place], str(name), secret)
        total = total + cells
    found = {"": _smallest(total)}
    if len(columns) <= MAX_COLUMNS:
        found |= {name: _smallest(total - cells) for name, cells in columns.items()}
    return RowSketch(
        rows=len(table),
        hashes={name: hashes for name, (hashes, _) in found.items()},
        distinct={name: distinct for name, (_, distinct) in found.items()},
    )


def shared_share(one: RowSketch, other: RowSketch) -> float:
    """About which share of the smaller table's rows is in the other one, perhaps but for one column; 0 if not most.

    Where rows mostly differ from each other, half of them in common is no coincidence. Where they repeat, two samples
    of the same population share most of them by chance, so nearly all must be the same.
    """
    pairs = [("", ""), *((name, "") for name in one.hashes), *(("", name) for name in other.hashes)]
    pairs += [(name, name) for name in one.hashes if name in other.hashes]
    pairs += product(one.hashes.keys() - other.hashes.keys(), other.hashes.keys() - one.hashes.keys())  # renamed
    best = 0.0
    for mine, theirs in pairs:
        share = _containment(one, mine, other, theirs)
        telling = 2 * one.distinct[mine] >= one.rows and 2 * other.distinct[theirs] >= other.rows
        if share >= (NEAR if telling else NEAR_WHERE_ROWS_REPEAT):
            best = max(best, share)
    return best


def _containment(one: RowSketch, mine: str, other: RowSketch, theirs: str) -> float:
    """From the Jaccard similarity J of sets of a and b elements: J (a + b) / (1 + J) are in both."""
    first, second = set(one.hashes[mine]), set(other.hashes[theirs])
    smallest = sorted(first | second)[:SIZE]
    if not smallest or not one.rows or not other.rows:
        return 0.0
    similarity = len(first & second & set(smallest)) / len(smallest)
    return min(1.0, similarity * (one.rows + other.rows) / (1 + similarity) / min(one.rows, other.rows))


def _smallest(hashes: NDArray[np.uint64]) -> tuple[tuple[int, ...], int]:
    """The smallest hashes, and how many rows differ. A row that occurs again counts as another one."""
    ordered = np.sort(hashes)
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, dtype=np.int64)
    if len(first) < len(ordered):
        occurrence = np.arange(len(ordered)) - np.repeat(first, np.diff(np.r_[first, len(ordered)]))
        ordered = np.sort(ordered + occurrence.astype(np.uint64) * _ODD)
    return tuple(int(h) for h in ordered[:SIZE]), len(first)


def _keyed_name(name: str, key: bytes) -> str:
    return hashlib.blake2b(name.strip().casefold().encode(), key=key, digest_size=8).hexdigest()


def _hashed(column: pd.Series[Any], name: str, secret: str) -> NDArray[np.uint64]:
    """SipHash of each cell with its column's name, under the key."""
    codes, distinct = pd.factorize(column, use_na_sentinel=True)
    prefix = name.strip().casefold()
    texts = np.array([f"{prefix}\0{_plain(value)}" for value in distinct] + [f"{prefix}\0"], dtype=object)
    hashed = pd.util.hash_array(texts, hash_key=secret, categorize=False)
    return np.asarray(hashed[codes], dtype=np.uint64)  # a missing cell has code -1: the last text


def _plain(value: object) -> str:
    """A cell as text, the same whether it was read as a number or as text."""
    text = str(value).strip()
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text.casefold()
