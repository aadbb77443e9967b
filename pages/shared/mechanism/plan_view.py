"""What to expect of the chosen mechanism: pictures from public facts alone, and a preview on simulated data."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from dpsynth_core.charts.columns import compare_chart
from dpsynth_core.charts.privacy import domain_chart, error_chart, noise_chart, split_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.table.schema import Schema
from pages.shared.buttons import clicked
from pages.shared.formatting import big_number, duration, measured
from pages.shared.layout import errors_shown, show_error
from pages.shared.mechanism.actions import PREVIEW, start_preview
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.mechanism.theory_view import show_theory
from pages.shared.session import Session
from pages.shared.table_work import Preview
from pages.shared.widgets import show_chart, show_task

PICTURES = 3


def counts_rows(plan: Plan) -> bool:
    """Whether the mechanism counts rows in cells."""
    return not math.isnan(plan.count_error)


def error_text(plan: Plan) -> str:
    """How far a count is off, in words."""
    return f"about {measured(plan.count_error)} rows" if counts_rows(plan) else "none: rows are drawn, not counted"


def show_plan(session: Session, schema: Schema, n: int) -> None:
    """Pictures that answer before anything is spent: they use public facts only."""
    try:
        plan = session.settings.plan(schema, n)
    except DPSynthError as error:
        show_error("This does not fit the table.", error)
        return
    if MECHANISMS[session.settings.key].counts_cells:
        _show_cells(session, schema, n, plan)
        return
    st.metric("Expected time", duration(session.settings.seconds(schema, n)), border=True, width=260)
    st.markdown("This mechanism fits a model to the whole table instead of counting rows in cells.")
    if plan.stages:
        st.markdown("**How epsilon is divided**")
        show_chart(split_chart(plan), key="split", as_table=st.toggle("Show as tables", key="plan_as_tables"))


def _show_cells(session: Session, schema: Schema, n: int, plan: Plan) -> None:
    """Cells, the noise on their counts, and how the two compare."""
    typical, error = measured(n / plan.cells), measured(plan.count_error)
    facts = (
        ("Cells at the start", big_number(plan.cells)),
        ("Rows in an average cell", typical),
        ("Error of a count", f"± {error} rows" if counts_rows(plan) else "none"),
        ("Expected time", duration(session.settings.seconds(schema, n))),
    )
    for two in (facts[:2], facts[2:]):  # four in a row would be cut off at 150% zoom
        for slot, (label, value) in zip(st.columns(2), two, strict=True):
            slot.metric(label, value, border=True)
    if counts_rows(plan):
        st.markdown(
            f"A cell holds {typical} rows on average, and a count is off by about {error}. Where a cell "
            "holds fewer rows than that, it drowns in noise; what many rows share survives."
        )
    as_table = st.toggle("Show as tables", key="plan_as_tables")
    st.markdown("**How epsilon is divided**")
    show_chart(split_chart(plan), key="split", as_table=as_table)
    left, right = st.columns(2)
    with left:
        st.markdown(
            f"**The cells at the start**, over {'the' if len(schema.names) < 3 else 'two of the'} declared columns"
        )
        show_chart(domain_chart(schema, plan.cuts), key="cells", as_table=as_table)
    with right:
        if counts_rows(plan):
            _show_noise(session, schema, n, plan, as_table)
        else:
            st.markdown("**Noise**: this mechanism draws rows instead of counting; see the reason above.")
    show_theory(session, schema, n, plan)


def _show_noise(session: Session, schema: Schema, n: int, plan: Plan, as_table: bool) -> None:
    st.markdown("**Error of a count** against epsilon")
    fitting: dict[float, Plan] = {}
    for epsilon in sorted({*map(float, EPSILONS), float(session.settings.epsilon)}):
        with suppress(DPSynthError):
            fitting[epsilon] = session.settings.plan(schema, n, epsilon=epsilon)
    show_chart(error_chart(fitting, float(session.settings.epsilon), n), key="errors", as_table=as_table)
    scale = [stage.scale for stage in plan.stages if stage.scale is not None][-1]
    with st.expander("The noise on one count"):
        show_chart(noise_chart(scale, max(1, round(n / plan.cells))), key="noise", as_table=as_table)


def show_preview(session: Session, schema: Schema, n: int) -> None:
    """Teaching: the same mechanism on simulated data with the same schema."""
    if session.mode != "teaching":
        return
    with errors_shown("The preview cannot be made."):
        config = replace(session.settings.config(schema, n, teaching=True), seed=None)
        if clicked("Preview on simulated data", icon=":material/visibility:", key="preview"):
            start_preview(session, config)
        work = session.work
        task = work.tasks.get(PREVIEW)
        if work.preview is not None and work.preview.config == config:
            _show_preview(work.preview, schema)
        elif task is not None and task.about == config:
            show_task(task, key=PREVIEW)


def _show_preview(preview: Preview, schema: Schema) -> None:
    st.caption("Simulated rows with your schema, and what this mechanism makes of them. Nothing here is your data.")
    as_table = st.toggle("Show as tables", key="preview_as_tables")
    for slot, name in zip(st.columns(PICTURES), schema.names[:PICTURES], strict=False):
        with slot:
            chart = compare_chart(preview.simulated, preview.synthetic, schema, name, first="simulated")
            show_chart(chart, key=f"preview_{schema.names.index(name)}", as_table=as_table)
