"""Excel files made by hand, down to the XML of their cells."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from collections.abc import Sequence
from typing import Any

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def column_letters(place: int) -> str:
    letters = ""
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def cell_xml(value: Any, reference: str) -> str:
    if value is None:
        return f'<c r="{reference}" s="0"/>'
    if isinstance(value, bool):
        return f'<c r="{reference}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.date):
        day = (value - dt.date(1899, 12, 30)).days
        return f'<c r="{reference}" s="1"><v>{day}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{reference}"><v>{value}</v></c>'
    return f'<c r="{reference}" t="inlineStr"><is><t>{value}</t></is></c>'


def sheet_xml(rows: Sequence[Sequence[Any]]) -> str:
    return "".join(
        f'<row r="{number}">'
        + "".join(cell_xml(v, f"{column_letters(i)}{number}") for i, v in enumerate(row, 1))
        + "</row>"
        for number, row in enumerate(rows, 1)
    )


def workbook(*sheets: str, extra: dict[str, str] | None = None, hidden: Sequence[int] = ()) -> bytes:
    """Return the bytes of an Excel file whose sheets hold the given rows, written as XML."""
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="S{n}" sheetId="{n}" r:id="rId{n}" state="{"hidden" if n in hidden else "visible"}"/>'
        for n in numbers
    )
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
    )
    members = {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="rId1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{links}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
        "</cellXfs></styleSheet>",
    }
    for number, rows in zip(numbers, sheets, strict=True):
        members[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return archive(members | (extra or {}))


def archive(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return out.getvalue()


def shared_strings(*texts: str) -> dict[str, str]:
    items = "".join(f"<si><t>{content}</t></si>" for content in texts)
    return {"xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{items}</sst>'}
