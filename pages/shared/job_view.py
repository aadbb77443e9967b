"""A run at work, on whatever page it was started: its place in the queue, its stage, what it tells, and Cancel."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts import series_chart
from dpsynth_core.runs.jobs import AT_ONCE, Job
from pages.shared.runs import cancel, queue_words
from pages.shared.show import show_chart
from pages.shared.words import elapsed

LOOK_EVERY = 0.5
"""Seconds between two looks at a run."""


@st.fragment(run_every=LOOK_EVERY)
def watch(job: Job, *, expected: float | None, release: bool, key: str) -> None:
    """How far it is, and a way to stop it; the page begins again when it has ended."""
    if not job.active:
        st.rerun()
    with st.container(border=True):
        queue = queue_words(job)
        if queue:
            st.info(queue, icon=":material/hourglass_top:")
            note = "If you cancel now, nothing is charged." if release else ""
            st.caption(f"At most {AT_ONCE} run at once on this server; yours begins when its turn comes. {note}")
        else:
            st.progress(job.done, text=f"{job.stage} · {job.done:.0%}")
            st.caption(elapsed(job.seconds, expected))
        if st.button("Cancel", key=f"cancel_{key}", icon=":material/cancel:"):
            cancel(job)
            st.rerun()
        show_series(job, release=release, key=key)


def show_series(job: Job, *, release: bool, key: str) -> None:
    """What the mechanism tells while it runs; in release mode, what depends on private rows only on demand."""
    lines = [line for line in job.series.values() if line.points]
    hidden = [line for line in lines if release and not line.releasable]
    note = "Show how it goes (not for release: it depends on private rows)"
    if hidden and not st.toggle(note, key=f"series_private_{key}"):
        lines = [line for line in lines if line.releasable]
    if not lines:
        return
    as_table = st.toggle("Show as tables", key=f"series_table_{key}")
    for i, line in enumerate(lines):
        show_chart(series_chart(line), key=f"series_{key}_{i}", as_table=as_table)
