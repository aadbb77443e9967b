"""The Diagnostics page's parts: what to compare, the verdict, and one panel for each diagnostic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from dpsynth_core.charts import compare_chart
from dpsynth_core.charts.overlays import box_chart, correlation_chart, ecdf_chart, pair_chart
from dpsynth_core.charts.scores import distance_chart, dot_chart, giveaway_chart, pair_heat_map
from dpsynth_core.diagnostics import DIAGNOSTICS, Result, Verdict
from dpsynth_core.diagnostics.evaluation import Evaluation
from pages.shared.diagnostics.actions import MOST_COMPARED, release_name
from pages.shared.diagnostics.groups_view import show_groups
from pages.shared.diagnostics.regression_view import show_regression
from pages.shared.formatting import measured
from pages.shared.layout import Colour, guarantee_badge
from pages.shared.session import Session
from pages.shared.widgets import plain_list, show_internal_chart

VERDICT: dict[Verdict, tuple[str, Colour, str]] = {
    "excellent": ("As close as a fresh sample", "green", ":material/check_circle:"),
    "good": ("Close", "green", ":material/check:"),
    "fair": ("Visible differences", "orange", ":material/warning:"),
    "poor": ("Far apart", "red", ":material/cancel:"),
    "unknown": ("Not known", "gray", ":material/help:"),
}
WORST = 5
"""Items named under a panel's headline."""


def show_mark(session: Session) -> None:
    """What is on this page leaks, and must not leave the building."""
    if session.mode == "release":
        st.warning(
            "For internal review, not for release. Everything below is computed from the private rows. Choosing "
            "between releases by these numbers tells about the rows too: settle on one before you look.",
            icon=":material/visibility_lock:",
        )
    else:
        st.caption(
            "With private data, everything on this page would be **for internal review, not for release**: it is "
            "computed from the original rows."
        )


def ask_releases(session: Session) -> list[int]:
    """Which of the session's releases to look at, the first of them in detail."""
    places = list(range(len(session.outcomes)))
    if len(places) == 1:
        st.text(f"Release {release_name(session, 0)}")
        return places
    kept = [place for place in session.compared if place in places]
    chosen = st.multiselect(
        "Releases to compare (the first one in detail)", places[::-1], default=kept or places[-1:], key="compared",
        format_func=lambda place: release_name(session, place), max_selections=MOST_COMPARED,
    )  # fmt: skip
    session.compared = list(chosen)
    return session.compared


def ask_columns(session: Session, names: tuple[str, ...]) -> tuple[str, ...]:
    """Which columns to look at; all of them unless told otherwise."""
    with st.expander(f"Columns: {len(session.examined or names)} of {len(names)}", icon=":material/view_column:"):
        kept = [name for name in session.examined if name in names]
        chosen = st.multiselect(
            "Columns to look at", names, default=kept, key="examined", placeholder="All columns",
            help="Fewer columns are quicker, and answer for the columns you need.",
        )  # fmt: skip
    session.examined = tuple(chosen)
    return tuple(name for name in names if name in chosen) or names


def verdict_badge(verdict: Verdict) -> None:
    """A verdict in a word, with a colour and a sign."""
    label, colour, icon = VERDICT[verdict]
    st.badge(label, icon=icon, color=colour)


def show_verdict(session: Session, found: Mapping[int, Evaluation]) -> None:
    """The verdict on every release, side by side, and what stands behind it."""
    for slot, (place, evaluation) in zip(st.columns(len(found)), found.items(), strict=True):
        with slot.container(border=True):
            st.text(release_name(session, place))
            with st.container(horizontal=True):
                verdict_badge(evaluation.verdict)
                guarantee_badge(session.outcomes[place].guarantee)
            st.markdown(evaluation.summary)
            for result in evaluation.culprits:
                with st.container(horizontal=True, vertical_alignment="center"):
                    verdict_badge(result.verdict)
                    st.text(f"{result.title}: {_headline(result)}")


def _headline(result: Result) -> str:
    item = result.headline
    if item.value is None:
        return item.reading
    where = f" ({item.name})" if item.name != result.title else ""
    return f"{result.scale.name} {measured(item.value)}{where}"


def show_panel(session: Session, key: str, found: Mapping[int, Evaluation]) -> None:
    """One diagnostic: question, number, reading, pictures, and how it is computed."""
    results = {place: evaluation[key] for place, evaluation in found.items() if key in evaluation}
    if not results:
        return
    kind, first = DIAGNOSTICS[key], next(iter(results.values()))
    st.header(kind.title, anchor=False)
    st.markdown(f"*{kind.question}*")
    with st.container(horizontal=True, vertical_alignment="center"):
        verdict_badge(first.verdict)
        st.text(_numbers(first))
    st.text(first.headline.reading)
    named = {release_name(session, place): result for place, result in results.items()}
    as_table = st.toggle("Show as tables", key=f"table_{key}")
    PICTURES.get(key, _dots)(session, next(iter(found)), named, as_table)
    with st.expander("How is this computed?", icon=":material/function:"):
        st.markdown(kind.method)
        direction = "Lower is better" if kind.scale.better == "lower" else "Higher is better"
        st.markdown(f"{direction}; a good value is {kind.scale.good}.")
        plain_list(first.notes)


def _numbers(result: Result) -> str:
    item = result.headline
    if item.value is None:
        return "could not be computed"
    where = f" for {item.name}" if item.name != result.title else ""
    interval = f"95% interval {measured(item.low)} to {measured(item.high)}"
    fresh = f"a fresh sample: about {measured(item.reference)}, up to {measured(item.reference_high)}"
    name = result.scale.name[0].upper() + result.scale.name[1:] if result.scale.name.islower() else result.scale.name
    return f"{name} {measured(item.value)}{where} ({interval}; {fresh})"


def _dots(session: Session, place: int, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    show_internal_chart(dot_chart(named), key=f"dots_{next(iter(named.values())).key}", as_table=as_table)


def _distributions(session: Session, place: int, named: Mapping[str, Result], as_table: bool) -> None:
    """Every column's score; then one column in full, the worst unless another is chosen."""
    _dots(session, place, named, as_table)
    result, outcome = next(iter(named.values())), session.outcomes[place]
    private = session.private()
    if private is None:
        return
    names = [item.name for item in result.items]
    name = st.selectbox("Column", names, key="column_detail", help="Worst first.")
    column, original, synthetic = outcome.schema[name], private.rows(), outcome.tables[0]
    charts = [compare_chart(original, synthetic, outcome.schema, name)]
    if column.is_numeric:
        charts.append(ecdf_chart(original, synthetic, outcome.schema, name))
    if column.kind in ("continuous", "integer"):
        charts.append(box_chart(original, synthetic, outcome.schema, name))
    for number, (slot, chart) in enumerate(zip(st.columns(len(charts)), charts, strict=True)):
        with slot:
            show_internal_chart(chart, key=f"column_{number}", as_table=as_table)


def _pairs(session: Session, place: int, named: Mapping[str, Result], as_table: bool) -> None:
    """The heat map; then one pair in full, chosen from a list that works with the keyboard too."""
    result, outcome = next(iter(named.values())), session.outcomes[place]
    private = session.private()
    if not result.items or private is None:
        return
    if len(named) > 1:
        _dots(session, place, named, as_table)
    names = [name for name in outcome.schema.names if any(name in item.columns for item in result.items)]
    left, right = st.columns([3, 2])
    with left:
        show_internal_chart(pair_heat_map(result, names), key="pair_map", as_table=as_table)
    with right:
        st.markdown("**Worst pairs**")
        plain_list(f"{item.name}: {_value(item.value)}" for item in result.items[:WORST])
    labels = [item.name for item in result.items]
    chosen = st.selectbox("Pair", range(len(labels)), format_func=lambda i: labels[i], key="pair_detail")
    first, second = result.items[chosen].columns
    show_internal_chart(pair_chart(private, outcome.tables[0], first, second), key="pair", as_table=as_table)
    correlations = correlation_chart(result)
    if correlations is not None:
        st.subheader("Correlations", anchor=False)
        show_internal_chart(correlations, key="correlations", as_table=as_table)


def _value(value: float | None) -> str:
    return "could not be computed" if value is None else measured(value)


def _propensity(session: Session, place: int, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """The models' scores, and what gives the synthetic rows away."""
    result = next(iter(named.values()))
    left, right = st.columns(2)
    with left:
        show_internal_chart(dot_chart(named, log=True), key="pmse", as_table=as_table)
    with right:
        show_internal_chart(giveaway_chart(result), key="giveaways", as_table=as_table)
    st.markdown("**What the tree saw first**")
    plain_list(result.tables["splits"]["what the tree saw"])


def _distance(session: Session, place: int, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """The distance between its two marks."""
    if any(result.headline.value is not None for result in named.values()):
        show_internal_chart(distance_chart(named), key="mmd", as_table=as_table)


PICTURES: dict[str, Callable[[Session, int, Mapping[str, Result], bool], None]] = {
    "marginals": _distributions,
    "pairs": _pairs,
    "pmse": _propensity,
    "mmd": _distance,
    "mann_whitney": show_groups,
    "regression": show_regression,
}
"""Pictures of their own; a diagnostic without one gets a dot plot of its items."""
