"""The name under which the ledger finds a table again.

A fingerprint is a keyed hash of what a table holds, not of how it is stored. It is the same

* under any name and order of the columns and any order of the rows;
* whichever type carries a value: 3, 3.0, "3" and "003" are one number, true is 1, "2024-01-02" is midnight of
  that day, categories are their text, a time with a zone is its moment, one without is read as UTC;
* whichever way a missing cell is written: None, NaN, NA, NaT or blank text.

Where two spellings might mean the same, they count as the same: to charge one account for two tables is safe,
to charge two accounts for one table is not. For the same reason blanks around text are ignored, moments are
compared to the microsecond and numbers as doubles (whole numbers of up to 18 digits exactly).

What it cannot do: a table with one cell changed, or a row or a column more or less, is another data set with an
account of its own. The ledger counts what it is told is one data set. That helps honest people to keep count;
it does not stop anybody who edits the file. Nor does it notice that two tables speak of the same people.

Without the key a fingerprint says nothing about the table, since the last step is HMAC-SHA256. With the key, a
guess of the whole table can be confirmed. Cells and rows are hashed to 64 bits, so two tables share a
fingerprint by chance about once in 10^19 pairs. They share it for certain only if each has two or more columns
that hold the same values in another order, and they differ in which of those columns holds which value of a row.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth_core.errors import ParameterError

Hashes: TypeAlias = npt.NDArray[np.uint64]

_TRUTH = r"(?i)^(?:true|false)$"
_WHOLE = r"^[+-]?\d{1,18}$"
# With a point or an exponent: a longer row of digits is an identifier, which a double would round.
_DECIMAL = r"^[+-]?(?:inf|\d+[eE][+-]?\d+|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?)$"
_ISO_MOMENT = r"^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$"


def fingerprint(table: pd.DataFrame, key: bytes) -> str:
    """The name of a table's content under the installation key; see the module for what it ignores.

    The index is not content.

    Example:
        >>> key = bytes(32)
        >>> table = pd.DataFrame({"age": [31, 45], "smokes": ["yes", None]})
        >>> again = pd.DataFrame({"S": [None, "yes"], "A": [45.0, 31.0]})
        >>> fingerprint(table, key) == fingerprint(again, key)
        True
    """
    if len(key) < 32:
        raise ParameterError(
            "key", f"{len(key)} bytes", allowed="at least 32 bytes", remedy="Use the installation key."
        )
    hasher = CellHasher(key)
    rows = np.zeros(len(table), dtype=np.uint64)
    columns = []
    for position in range(table.shape[1]):
        cells = hasher.cells(table.iloc[:, position])
        # What a column holds, in any order, is its name: names and places of columns do not count.
        column = hashlib.blake2b(np.sort(cells).astype("<u8", copy=False).data, key=hasher.secret("column"))
        columns.append(column.digest())
        rows += mixed(cells ^ np.uint64(int.from_bytes(columns[-1][:8], "little")))
    rows.sort()
    whole = hmac.new(hasher.secret("table"), digestmod=hashlib.sha256)
    whole.update(len(rows).to_bytes(8, "little") + b"".join(sorted(columns)))
    whole.update(rows.astype("<u8", copy=False).data)
    return whole.hexdigest()


class CellHasher:
    """Hashes cells so that equal values get equal hashes, whichever type carries them."""

    def __init__(self, key: bytes, version: int = 1) -> None:
        # Not the installation key itself, so that this one could leave the machine.
        self._key = key if version == 1 else hmac.new(key, f"dpsynth {version}".encode(), hashlib.sha256).digest()
        self._version = version
        self._missing = self._seed("missing")
        self._whole = self._seed("whole")
        self._negative = self._seed("negative")
        self._fraction = self._seed("fraction")
        self._moment = self._seed("moment")
        self._text_key = self.secret("text")

    def secret(self, purpose: str) -> bytes:
        """A key for one purpose; the number in it changes if ever the construction does."""
        return hmac.new(self._key, f"dpsynth fingerprint {self._version} {purpose}".encode(), hashlib.sha256).digest()

    def _seed(self, purpose: str) -> np.uint64:
        return np.uint64(int.from_bytes(self.secret(purpose)[:8], "little"))

    def cells(self, column: pd.Series[Any]) -> Hashes:
        """One hash for each cell."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            of_category = self.cells(pd.Series(column.cat.categories))
            # A missing cell has code -1, so it takes what stands last.
            return np.append(of_category, self._missing)[column.cat.codes.to_numpy()]
        hashes = self._reader(column.dtype)(column)
        hashes[column.isna().to_numpy(dtype=bool)] = self._missing
        return hashes

    def _reader(self, dtype: Any) -> Callable[[pd.Series[Any]], Hashes]:
        if isinstance(dtype, pd.StringDtype):
            return self._from_text
        readers = {"b": self._from_truth, "i": self._from_whole, "u": self._from_whole}
        readers |= {"f": self._from_float, "M": self._from_datetime}
        return readers.get(dtype.kind, self._from_objects)

    def _from_truth(self, column: pd.Series[Any]) -> Hashes:
        return self._wholes(column.to_numpy(dtype=bool, na_value=False).astype(np.int64))

    def _from_whole(self, column: pd.Series[Any]) -> Hashes:
        unsigned = column.dtype.kind == "u"
        return self._wholes(column.to_numpy(dtype=np.uint64 if unsigned else np.int64, na_value=0))

    def _from_float(self, column: pd.Series[Any]) -> Hashes:
        if cast("np.dtype[Any]", column.dtype).itemsize >= 8:
            return self._floats(column.to_numpy(dtype=np.float64, na_value=np.nan))
        # A file of text holds the shortest decimal for a short float, so that decimal is the value.
        short = pa.array(column.to_numpy(dtype=np.float32, na_value=np.nan))
        return self._floats(short.cast(pa.string()).cast(pa.float64()).to_numpy())

    def _from_datetime(self, column: pd.Series[Any]) -> Hashes:
        return self._moments(pd.to_datetime(pd.Index(column), utc=True))

    def _from_objects(self, column: pd.Series[Any]) -> Hashes:
        present = column.notna().to_numpy(dtype=bool)
        # Half a surrogate pair is not text to Arrow, so it is spelled out.
        texts = [
            str(value).encode("utf-8", "backslashreplace").decode() if there else None
            for value, there in zip(column.to_numpy(dtype=object), present, strict=True)
        ]
        return self._distinct(pa.array(texts, type=pa.large_string()))

    def _from_text(self, column: pd.Series[Any]) -> Hashes:
        texts = pa.array(column, type=pa.large_string(), from_pandas=True)
        return self._distinct(texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts)

    def _distinct(self, texts: Any) -> Hashes:
        coded = texts.dictionary_encode()
        of_text = np.append(self._texts(coded.dictionary), self._missing)
        codes: npt.NDArray[np.int32] = coded.indices.fill_null(-1).to_numpy()
        return of_text[codes]

    def _texts(self, texts: Any) -> Hashes:
        texts = pc.utf8_trim_whitespace(texts)
        hashes = np.full(len(texts), self._missing, dtype=np.uint64)
        rest = _flags(pc.not_equal(texts, ""))
        readers = {_TRUTH: self._truths, _WHOLE: self._whole_texts, _DECIMAL: self._decimal_texts}
        readers |= {_ISO_MOMENT: self._moment_texts}
        for pattern, read in readers.items():
            matching = _flags(pc.match_substring_regex(texts, pattern))
            if matching.any():
                hashes[matching] = read(texts.filter(pa.array(matching)))
                rest &= ~matching
        hashes[rest] = self._other_texts(texts.filter(pa.array(rest)))
        return hashes

    def _truths(self, texts: Any) -> Hashes:
        return self._wholes(_flags(pc.equal(pc.utf8_lower(texts), "true")).astype(np.int64))

    def _whole_texts(self, texts: Any) -> Hashes:
        return self._wholes(pc.utf8_ltrim(texts, "+").cast(pa.int64()).to_numpy())

    def _decimal_texts(self, texts: Any) -> Hashes:
        return self._floats(texts.cast(pa.float64()).to_numpy())

    def _moment_texts(self, texts: Any) -> Hashes:
        to_the_microsecond = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
        values = to_the_microsecond.to_numpy(zero_copy_only=False)
        moments = pd.to_datetime(pd.Index(values), format="ISO8601", errors="coerce", utc=True)
        hashes = self._moments(moments)
        impossible = np.asarray(moments.isna())
        hashes[impossible] = self._other_texts(texts.filter(pa.array(impossible)))
        return hashes

    def _other_texts(self, texts: Any) -> Hashes:
        keyed = hashlib.blake2b(digest_size=8, key=self._text_key)

        def digest(text: str) -> bytes:
            hasher = keyed.copy()
            hasher.update(text.encode())
            return hasher.digest()

        return np.frombuffer(b"".join(map(digest, texts.to_pylist())), dtype="<u8").astype(np.uint64)

    def _wholes(self, values: npt.NDArray[Any]) -> Hashes:
        # -1 and 2^64 - 1 have the same bits, hence a seed for each sign.
        return mixed(values.view(np.uint64) ^ np.where(values < 0, self._negative, self._whole))

    def _floats(self, values: npt.NDArray[np.float64]) -> Hashes:
        bits = values.view(np.uint64).copy()
        seeds = np.full(len(values), self._fraction, dtype=np.uint64)
        whole = values == np.floor(values)
        below, above = whole & (values < 0) & (values >= -(2.0**63)), whole & (values >= 0) & (values < 2.0**64)
        bits[below], seeds[below] = values[below].astype(np.int64).view(np.uint64), self._negative
        bits[above], seeds[above] = values[above].astype(np.uint64), self._whole
        return mixed(bits ^ seeds)

    def _moments(self, moments: pd.DatetimeIndex) -> Hashes:
        try:
            microseconds = moments.as_unit("us").asi8.view(np.uint64)
        except pd.errors.OutOfBoundsDatetime:
            # A file can hold moments millions of years away. They need a name too: counted modulo 2**64.
            factor = {"s": 1_000_000, "ms": 1_000}[moments.unit]
            counted = moments.asi8.view(np.uint64) * np.uint64(factor)
            microseconds = np.where(moments.isna(), moments.asi8.view(np.uint64), counted)
        return mixed(microseconds ^ self._moment)


def _flags(condition: Any) -> npt.NDArray[np.bool_]:
    return np.array(condition.to_numpy(zero_copy_only=False), dtype=bool)


def mixed(values: Hashes) -> Hashes:
    """Scatter 64 bits one to one (the SplitMix64 finaliser); the secret is in what it is given."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
