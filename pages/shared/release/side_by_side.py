"""Several releases beside each other, check by check."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from dpsynth_core.review import Checklist, ChecklistItem
from dpsynth_core.review.checklist import side_by_side
from dpsynth_core.review.checklist_item import CheckState
from pages.shared.layout import Colour

STATE: dict[CheckState, tuple[str, Colour, str]] = {
    "pass": ("Pass", "green", ":material/check_circle:"),
    "warn": ("Warn", "orange", ":material/warning:"),
    "open": ("Open", "gray", ":material/help:"),
    "fail": ("Fail", "red", ":material/cancel:"),
}

USES, NOT_COMPARED = "What is it good for?", "Not compared with the original yet."


def show_side_by_side(
    named: Mapping[str, Checklist], *, uses: Mapping[str, str] = MappingProxyType({}), key: str
) -> None:
    """One row for each check, one column for each release; on a narrow screen one below the other.

    Args:
        named: The releases' checks, by names of our own.
        uses: What those are good for that were compared with the original, in a sentence each.
        key: Of the controls.
    """
    with st.container(horizontal=True):
        differing = st.toggle("Only what differs", key=f"{key}_differing")
        as_table = st.toggle("Show as table", key=f"{key}_as_table")
    if as_table:
        rows = side_by_side(named)
        if uses:
            rows.insert(1, {"check": USES} | {name: uses.get(name, NOT_COMPARED) for name in named})
        rows = [row for row in rows if not differing or len({*row.values()} - {row["check"]}) > 1]
        st.dataframe(rows, hide_index=True, alt="Every check of every release, one column for each release")
        return
    _sentences("May it be released?", {name: found.answer for name, found in named.items()})
    if uses:
        _sentences(USES, {name: uses.get(name, NOT_COMPARED) for name in named})
    for title, items in _by_title(named).items():
        known = {(item.state, item.measured) if item is not None else None for item in items.values()}
        if not differing or len(known) > 1:
            with st.container(border=True):
                st.markdown(f"**{title}**")
                for column, (name, item) in zip(st.columns(len(named)), items.items(), strict=True):
                    with column:
                        _cell(name, item)


def _sentences(title: str, said: Mapping[str, str]) -> None:
    with st.container(border=True):
        st.markdown(f"**{title}**")
        for column, (name, text) in zip(st.columns(len(said)), said.items(), strict=True):
            column.caption(name)
            column.text(text)


def _by_title(named: Mapping[str, Checklist]) -> dict[str, dict[str, ChecklistItem | None]]:
    titles = {check.key: check.title for found in named.values() for check in found.checks}
    return {
        title: {name: next((each for each in found.checks if each.key == key), None) for name, found in named.items()}
        for key, title in titles.items()
    }


def _cell(name: str, item: ChecklistItem | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if item is None:
            st.badge("Not part of this review", color="gray")
        else:
            label, colour, icon = STATE[item.state]
            st.badge(label, icon=icon, color=colour)
        st.caption(name)
    if item is not None and item.state != "open":
        st.text(item.measured)
