"""The name under which the ledger finds a table that is too long to be held: made in one pass, in any order of rows.

Like the first fingerprint it is a keyed hash of what a table holds and not of how it is stored: names and order of
columns, order of rows, and the type that carries a value make no difference (``fingerprint.py`` lists what counts as
the same). Unlike it, it is a sum: over the rows and for each column, whole numbers modulo 2^64 are added up, so batches
and partitions can be merged in any order (a keyed additive multiset hash, Clarke et al. 2003). One changed cell changes
the sum of its row and that of its column.

What it cannot tell apart: two tables whose columns hold the same values and whose rows hold the same values, and which
differ only in which column of a row holds which. They share an account, which is the safe side.

Without the key it says nothing about the table; sums are hashed with HMAC-SHA256 at the end. Two different tables share
a name by chance about once in 2^64 pairs.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth_core.ledger.fingerprint import CellHasher, mixed

VERSION = 2


class MultisetSum:
    """Sums over rows and columns so far; what a pass adds up."""

    def __init__(self, hasher: CellHasher, columns: int) -> None:
        self._hasher = hasher
        self._rows = np.zeros(3, dtype=np.uint64)
        self._columns = np.zeros((columns, 2), dtype=np.uint64)

    def add_cells(self, cells: pd.DataFrame) -> None:
        row = np.zeros(len(cells), dtype=np.uint64)
        for index in range(cells.shape[1]):
            hashes = mixed(self._hasher.cells(cells.iloc[:, index]))
            row += hashes
            self._columns[index] += _lanes(hashes)
        self._rows += np.append(_lanes(row), np.uint64(len(cells)))

    def pack(self) -> list[npt.NDArray[np.uint64]]:
        return [self._rows, self._columns]

    def absorb(self, packed: list[npt.NDArray[np.uint64]]) -> None:
        self._rows += packed[0]
        self._columns += packed[1]

    def digest(self) -> str:
        whole = hmac.new(self._hasher.secret("table"), digestmod=hashlib.sha256)
        whole.update(self._rows.astype("<u8").tobytes())
        for column in sorted(line.astype("<u8").tobytes() for line in self._columns):
            whole.update(column)
        return f"2{whole.hexdigest()[1:]}"


def _lanes(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Two sums of the same hashes, scattered differently: a chance that one of them agrees is not enough."""
    second = mixed(hashes ^ np.uint64(0x9E3779B97F4A7C15))
    return np.array([mixed(hashes).sum(dtype=np.uint64), second.sum(dtype=np.uint64)], dtype=np.uint64)


@dataclass(frozen=True)
class FingerprintTask:
    """One pass over every stored column. A derived key travels with it, never the installation key."""

    by_position: ClassVar[bool] = False
    columns: tuple[str, ...]
    hasher: CellHasher

    def start(self) -> BatchSum:
        return BatchSum(self.hasher, len(self.columns))


class BatchSum(MultisetSum):
    """Takes batches as an engine hands them over."""

    def add(self, batch: object) -> None:
        self.add_cells(batch.cells)  # type: ignore[attr-defined]


def multiset_fingerprint(table: pd.DataFrame, key: bytes) -> str:
    """The name of a table in memory, the same as that of the same table where it stays in files.

    Example:
        >>> table = pd.DataFrame({"age": [31, 45], "smokes": ["yes", None]})
        >>> again = pd.DataFrame({"S": [None, "yes"], "A": [45.0, 31.0]})
        >>> multiset_fingerprint(table, bytes(32)) == multiset_fingerprint(again, bytes(32))
        True
    """
    total = MultisetSum(CellHasher(key, VERSION), table.shape[1])
    total.add_cells(table)
    return total.digest()
