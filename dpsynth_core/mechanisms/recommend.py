"""Which mechanism to begin with."""

from __future__ import annotations

from dpsynth_core.table.schema import Schema

MAX_TREE_COLUMNS = 3
"""With more columns a KD tree loses to Private-PGM in most tables that were compared (docs/results/utility.md)."""
WHY_RECOMMENDED = (
    "A rule of thumb from our comparisons: pairs of columns came out best from the KD tree in tables of two columns, "
    "about even in tables of three, and best from Private-PGM in most tables with more."
)


def recommended(schema: Schema) -> str:
    """The key of the mechanism to begin with, from public facts only.

    Example:
        >>> recommended(Schema.from_dict({"columns": [{"name": "smoker", "kind": "boolean"}]}))
        'kd_tree'
    """
    return "kd_tree" if len(schema.columns) <= MAX_TREE_COLUMNS else "private_pgm"
