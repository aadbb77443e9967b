"""A small keyed sketch of a table's rows, by which a table that shares most of its rows with another is recognised.

A fingerprint changes with a single cell, so a corrected or extended table would get a fresh budget although it is about
the same people. The sketch keeps the smallest of the rows' keyed hashes and how often each occurs ("bottom-k"; Broder
1997; Cohen & Kaplan 2007). Of two tables, the smallest hashes of both together are a sample of their different rows,
in which both counts are known: the sums of the lesser and of the greater counts estimate the Jaccard similarity of the
two multisets, and with their sizes the number of rows in common.

A row's hash is the sum of keyed hashes of its cells modulo 2^64. Names and order of columns and the types of cells make
no difference, and leaving a column out is a subtraction: there is one sketch of whole rows, and one without each
column, so that one column that was added, removed or changed hides nothing. Of a file of text there is one of its
lines besides, which no choice of a layout changes. Batches of rows can be sketched in any order and merged.

Without the installation key the hashes tell nothing about the rows; they stay in the ledger and are never published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth_core.ledger.fingerprint import CellHasher, mixed

SIZE = 128
"""Hashes that are kept: the standard error of the estimated similarity is at most 1 / (2 sqrt(128)), about 0.04."""
MAX_COLUMNS = 60
"""Of wider tables only the sketch of whole rows is kept."""
NEAR = 0.5
"""Share of the smaller table's rows that are in the other one, from which on a warning is due."""
ALIKE = 0.25
"""Where rows repeat: how much nearer than two samples of one population the counts must be, for a warning."""
FEW = 16
"""Different rows that must be left where a column is left out and rows repeat: fewer agree by chance."""
ONE_ROW = 2
"""By how much counts differ in all if one row is replaced."""
FORMAT = 2
"""Of a stored sketch. Sketches of format 1 cannot be compared with these; they are made anew when a table is seen."""
_HASHER = 3
"""So that these hashes have nothing in common with those of fingerprints."""
LINES = "lines"
_CHUNK = 100_000
"""Rows whose hashes are held at a time."""


@dataclass(frozen=True, kw_only=True)
class SmallestRows:
    """The smallest hashes of different rows, and how often each of those rows occurs."""

    hashes: tuple[int, ...]
    """Ascending."""
    counts: tuple[int, ...]
    rows: int
    """Of the whole table."""

    @cached_property
    def by_hash(self) -> dict[int, int]:
        return dict(zip(self.hashes, self.counts, strict=True))

    @property
    def distinct(self) -> float:
        """About how many different rows there are: exact up to ``SIZE``, else (k - 1) / (k-th smallest hash)."""
        return len(self.hashes) if len(self.hashes) < SIZE else (SIZE - 1) * 2.0**64 / max(self.hashes[-1], 1)


@dataclass(frozen=True, kw_only=True)
class RowSketch:
    """The smallest hashes of a table's rows."""

    parts: Mapping[str, SmallestRows]
    """Of whole rows under the empty name, of rows without a column under its number, of a text's lines."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; hashes as text, because JSON readers may round long numbers."""
        parts = {
            name: {"rows": part.rows, "hashes": [f"{h:x}" for h in part.hashes], "counts": list(part.counts)}
            for name, part in self.parts.items()
        }
        return {"format": FORMAT, "parts": parts}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> RowSketch | None:
        """A sketch as the ledger has stored it; None if its format is another one."""
        if saved.get("format") != FORMAT:
            return None
        parts = {
            str(name): SmallestRows(
                hashes=tuple(int(h, 16) for h in part["hashes"]),
                counts=tuple(map(int, part["counts"])),
                rows=int(part["rows"]),
            )
            for name, part in saved["parts"].items()
        }
        return cls(parts=parts)


class RowSketcher:
    """Sketches rows in batches; what a pass adds up."""

    def __init__(self, hasher: CellHasher, columns: int) -> None:
        self._hasher = hasher
        self._rows = 0
        without = range(columns) if 1 < columns <= MAX_COLUMNS else ()
        self._parts = dict.fromkeys(("", *map(str, without)), _NOTHING)

    def add_cells(self, cells: pd.DataFrame) -> None:
        self._rows += len(cells)
        for begin in range(0, len(cells), _CHUNK):
            self._add(cells.iloc[begin : begin + _CHUNK])

    def _add(self, cells: pd.DataFrame) -> None:
        total: NDArray[np.uint64] = np.zeros(len(cells), dtype=np.uint64)
        hashed = []
        for index in range(cells.shape[1]):
            hashed.append(mixed(self._hasher.cells(cells.iloc[:, index])))
            total += hashed[-1]
        for name, known in self._parts.items():
            rows = mixed(total - hashed[int(name)] if name else total)
            if len(known[0]) == SIZE:
                rows = rows[rows <= known[0][-1]]
            self._parts[name] = _merged(known, np.unique(rows, return_counts=True))

    def pack(self) -> list[NDArray[np.uint64]]:
        rows = np.array([self._rows], dtype=np.uint64)
        return [rows, *(array.astype(np.uint64) for part in self._parts.values() for array in part)]

    def absorb(self, packed: list[NDArray[np.uint64]]) -> None:
        self._rows += int(packed[0][0])
        for index, (name, known) in enumerate(self._parts.items()):
            self._parts[name] = _merged(known, (packed[1 + 2 * index], packed[2 + 2 * index].astype(np.int64)))

    def sketch(self) -> RowSketch:
        return RowSketch(
            parts={
                name: SmallestRows(hashes=tuple(map(int, hashes)), counts=tuple(map(int, counts)), rows=self._rows)
                for name, (hashes, counts) in self._parts.items()
            }
        )


_Smallest = tuple[NDArray[np.uint64], NDArray[np.int64]]
_NOTHING: _Smallest = (np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))


def _merged(one: _Smallest, other: _Smallest) -> _Smallest:
    """The smallest of both. A hash that was dropped was larger than all that are kept, and so are its later rows."""
    hashes, places = np.unique(np.concatenate([one[0], other[0][:SIZE]]), return_inverse=True)
    counts = np.zeros(len(hashes), dtype=np.int64)
    np.add.at(counts, places, np.concatenate([one[1], other[1][:SIZE]]))
    return hashes[:SIZE], counts[:SIZE]


def sketch_hasher(key: bytes) -> CellHasher:
    """Hashes the cells of a sketch under the installation key."""
    return CellHasher(key, _HASHER)


def sketch_rows(table: pd.DataFrame, key: bytes, *, lines: Iterable[pd.Series[Any]] = ()) -> RowSketch:
    """The sketch of a table in memory.

    Args:
        table: Its cells, typed or as text: ``1``, ``1.0`` and ``" 1"`` are the same.
        key: The installation key.
        lines: Of the text that it was read from, in pieces.
    """
    sketcher = RowSketcher(sketch_hasher(key), table.shape[1])
    sketcher.add_cells(table)
    return with_lines(sketcher.sketch(), lines, key)


def with_lines(sketch: RowSketch, pieces: Iterable[pd.Series[Any]], key: bytes) -> RowSketch:
    """The sketch, with one of the text's lines beside it; as it is where there are none."""
    of_lines = RowSketcher(sketch_hasher(key), 1)
    for piece in pieces:
        of_lines.add_cells(piece.to_frame())
    whole = of_lines.sketch().parts[""]
    return RowSketch(parts={**sketch.parts, LINES: whole}) if whole.rows else sketch


def shared_share(one: RowSketch, other: RowSketch) -> float:
    """About which share of the smaller table's rows is in the other one, perhaps but for one column; 0 if not most."""
    pairs = [(one.parts[LINES], other.parts[LINES])] if LINES in one.parts and LINES in other.parts else []
    pairs += [
        (mine, theirs)
        for (name, mine), (another, theirs) in product(one.parts.items(), other.parts.items())
        if LINES not in (name, another) and _enough_left(name, mine) and _enough_left(another, theirs)
    ]
    return max((_shared(mine, theirs) for mine, theirs in pairs), default=0.0)


def _enough_left(name: str, part: SmallestRows) -> bool:
    return not name or part.distinct >= FEW


def _shared(one: SmallestRows, other: SmallestRows) -> float:
    """The share, if it is no coincidence.

    Where rows mostly differ from each other, half of them in common is none. Where they repeat, two samples of one
    population have most rows in common by chance: the counts of a row that is expected c times then differ by about
    E|X - Y| = 2 sqrt(c / pi), X and Y being Poisson. Only tables that are much more alike are versions of one.
    """
    if not one.by_hash.keys() & other.by_hash.keys():
        return 0.0
    sample = sorted(one.by_hash.keys() | other.by_hash.keys())[:SIZE]
    counts = [(one.by_hash.get(h, 0), other.by_hash.get(h, 0)) for h in sample]
    both, either = sum(map(min, counts)), sum(map(max, counts))
    # From the Jaccard similarity J of multisets of a and b elements: J (a + b) / (1 + J) are in both.
    similarity = both / either
    share = similarity * (one.rows + other.rows) / (1 + similarity) / min(one.rows, other.rows)
    if all(2 * part.distinct >= part.rows for part in (one, other)):
        return min(1.0, share) if share >= NEAR else 0.0
    by_chance = sum(2 * math.sqrt((a + b) / 2 / math.pi) for a, b in counts)
    return min(1.0, share) if either - both <= max(ONE_ROW, ALIKE * by_chance) else 0.0
