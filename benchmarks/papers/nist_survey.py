"""The NIST excerpt of the American Community Survey, with a schema from its public data dictionary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.table.schema import Schema

MISSING = "N"
"""How the dictionary writes that a question does not apply."""
BINS = 20
"""Ranges that a number is cut into."""


def nist_table(folder: Path) -> tuple[pd.DataFrame, Schema]:
    """7,634 people in Massachusetts, 24 columns."""
    file, facts = folder / "ma2019.csv", folder / "crc_data_dictionary.json"
    if not file.exists():
        raise DPSynthError(f"{file.name} is missing from the folder {folder.name!r} of the published data (--data).")
    texts = pd.read_csv(file, dtype=str, keep_default_na=False)
    words: dict[str, dict[str, Any]] = json.loads(facts.read_text(encoding="utf-8"))
    columns = [_column(name, words[name].get("values", {}), texts[name]) for name in map(str, texts)]
    schema = Schema.from_dict({"columns": columns})
    return pd.DataFrame({column["name"]: _values(texts[column["name"]], column) for column in columns}), schema


def _column(name: str, values: Mapping[str, Any], texts: pd.Series[str]) -> dict[str, Any]:
    """A column's public facts. A code beside a range ("501": above the range) widens it, unless it means missing."""
    if "min" in values:
        ends = [float(values["min"]), float(values["max"]), *(float(code) for code in values if code.isdigit())]
        whole = all(end.is_integer() for end in ends)
        return {
            "name": name,
            "kind": "integer" if whole else "continuous",
            "lower": min(ends),
            "upper": max(ends),
            "bins": BINS,
            "nullable": MISSING in values,
            "public": True,
        }
    # Industry codes are the one list that the dictionary only points to; here it is those that occur.
    labels = list(values) or sorted(set(texts))
    return {"name": name, "kind": "categorical", "categories": labels, "public": True}


def _values(texts: pd.Series[str], column: Mapping[str, Any]) -> pd.Series[Any]:
    return texts if column["kind"] == "categorical" else pd.to_numeric(texts.where(texts != MISSING))
