"""Damaged files: good ones, each with a few changes that a careless or hostile hand could make."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import cache

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.tables.workbooks import archive, shared_strings, sheet_xml, workbook

CANARY = "Zq7CANARYzQ"
"""In every good file; it must never stand in a message."""
ROWS = 60

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF)
XML_PIECES = (
    "<row>",
    "</row>",
    '<c r="XFD1048576"><v>1</v></c>',
    '<c r="A1" t="s"><v>999999999</v></c>',
    "<v>1e400</v>",
    "<is><t>",
    "&#0;",
    "&amp;amp;",
    "<!-- -->",
    "<![CDATA[",
    '<row r="4294967295">',
    '<c r="A0">',
    "<v>-1</v>",
    '<!DOCTYPE a [<!ENTITY b "c">]>',
    "\x01",
    "é",
    "<t>" + "x" * 5_000 + "</t>",
    '<c r="A1" s="9999999">',
    "",
)


@cache
def seeds() -> dict[str, list[bytes]]:
    """Good files of every format."""
    cells = [
        [CANARY if i % 3 == 0 else f"text {i}", i, i / 7, i % 2 == 0, date(2024, 1, 1 + i % 28)] for i in range(ROWS)
    ]
    columns = [list(column) for column in zip(*cells, strict=True)]
    names = ["label", "count", "share", "flag", "day"]
    table = pa.table(dict(zip(names, map(pa.array, columns), strict=True)))
    nested = table.append_column("cost", pa.array([Decimal(i) / 8 for i in range(ROWS)]))
    nested = nested.append_column("coded", pa.array([CANARY, "b"] * (ROWS // 2)).dictionary_encode())
    options = (
        {"compression": "none"},
        {"compression": "zstd", "use_dictionary": True},
        {"compression": "snappy", "use_dictionary": False, "data_page_version": "2.0", "row_group_size": 7},
        {"compression": "gzip", "write_page_checksum": True},
    )
    sheet = sheet_xml([names, *cells])
    shared = shared_strings(CANARY, "b")
    pointing = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>{i % 2}</v></c></row>' for i in range(1, ROWS))
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)))
    return {
        "parquet": [_parquet(table, **each) for each in options] + [_parquet(nested, **each) for each in options],
        "excel": [workbook(sheet), workbook(pointing, extra=shared), workbook("", sheet, hidden=[1])],
        "text": [frame.to_csv(index=False).encode(), frame.to_csv(sep=";", decimal=",").encode("utf-16")],
    }


def _parquet(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)  # type: ignore[arg-type]
    return out.getvalue()


def mutated(seed: bytes, rng: random.Random) -> bytes:
    """A file with one to three changes; in a workbook, often inside its members."""
    if seed.startswith(b"PK") and rng.random() < 0.7:
        return _mutated_members(seed, rng)
    content = bytearray(seed)
    for _ in range(rng.randint(1, 3)):
        rng.choice(CHANGES)(content, rng)
    return bytes(content)


def _mutated_members(seed: bytes, rng: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(seed)) as opened:
        members = {name: opened.read(name).decode() for name in opened.namelist()}
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(list(members))
        text, at = members[name], rng.randint(0, len(members[name]))
        cut = at + rng.choice((0, 0, 1, 5, 50))
        members[name] = text[:at] + rng.choice(XML_PIECES) * rng.choice((1, 1, 1, 50)) + text[cut:]
    if rng.random() < 0.05:
        members.pop(rng.choice(list(members)))
    content = bytearray(archive({name: text.encode("utf-8", "replace").decode() for name, text in members.items()}))
    if rng.random() < 0.2:
        rng.choice(CHANGES)(content, rng)
    return bytes(content)


def _flip(content: bytearray, rng: random.Random) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _set(content: bytearray, rng: random.Random) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _number(content: bytearray, rng: random.Random) -> None:
    """A size or an offset that is not true."""
    width = rng.choice((2, 4, 8))
    if len(content) > width:
        at = rng.randrange(len(content) - width)
        content[at : at + width] = struct.pack("<Q", rng.choice(NUMBERS))[:width]


def _cut(content: bytearray, rng: random.Random) -> None:
    at = rng.randint(0, len(content))
    del content[at : at + rng.choice((1, 8, 100, len(content)))]


def _repeat(content: bytearray, rng: random.Random) -> None:
    at = rng.randint(0, len(content))
    piece = content[at : at + rng.randint(1, 64)]
    content[at:at] = piece * rng.choice((1, 2, 20))


def _move(content: bytearray, rng: random.Random) -> None:
    at, to, size = rng.randint(0, len(content)), rng.randint(0, len(content)), rng.randint(1, 200)
    content[to : to + size] = content[at : at + size]


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (_flip, _set, _number, _number, _cut, _repeat, _move)
