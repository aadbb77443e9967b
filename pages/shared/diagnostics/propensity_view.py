"""Below the picture of the pMSE: its values in the papers' unit, and what the tree saw."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import streamlit as st

from dpsynth_core.diagnostics.base import Result
from dpsynth_core.diagnostics.wording import measured
from pages.shared.session import Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import plain_list


def show_propensity(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """The raw pMSE beside its ratio, for every release in view, and the first splits of the first one's tree."""
    shown = {label: result.tables for label, result in named.items() if "scores" in result.tables}
    if not shown:
        return
    st.markdown("**In the papers' unit**")
    rows = [
        {**({"release": label} if len(shown) > 1 else {}), **_row(score)}
        for label, tables in shown.items()
        for score in tables["scores"].to_dict("records")
    ]
    st.dataframe(rows, hide_index=True, alt="Raw pMSE, what chance gives, and their ratio")
    st.caption(
        "The raw pMSE goes from 0 (nothing tells the tables apart) to 0.25 (every row can be told, where both tables "
        "are equally long). The ratio is to what a fresh sample of the original would score by chance: about 1 is as "
        "good as can be, and it grows with the number of rows."
    )
    st.markdown("**What the tree saw first**")
    plain_list(next(iter(shown.values()))["splits"]["what the tree saw"])


def _row(score: Mapping[Hashable, object]) -> dict[str, str]:
    return {
        "model": str(score["model"]),
        "pMSE": _number(score["pMSE"]),
        "ratio": _number(score["ratio"]),
        "by chance": _number(score["expected"]),
    }


def _number(value: object) -> str:
    return measured(value) if isinstance(value, float) and math.isfinite(value) else ""
