"""Below the picture of the classifiers: what they predict, and a choice of another label or of all twelve."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsynth_core.diagnostics import Result
from dpsynth_core.diagnostics.classification import ClassificationDiagnostic, can_be_label
from dpsynth_core.diagnostics.classifiers import CLASSIFIERS, QUICK
from pages.shared.diagnostics.actions import CLASSIFYING, classify, label_of, to_classify
from pages.shared.formatting import duration
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import plain_list, show_task

CHOICES = {"six quick ones": QUICK, "all twelve": CLASSIFIERS}


def show_classification(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """Which label it was; then another one, or more classifiers, in a worker."""
    shown = [result for result in named.values() if "classifiers" in result.tables]
    if shown:
        plain_list(shown[0].notes)
        st.caption(
            "The release was made from all rows. The synthetic table has therefore seen the held-out rows too, though "
            "only through the mechanism; the classifiers trained on original rows have not seen them at all."
        )
    work, schema = session.work, run.result.schema
    task = work.tasks.get(CLASSIFYING)
    if task is not None:
        show_task(task, key=CLASSIFYING)
        if task.active:
            return
    names = [column.name for column in schema if can_be_label(column)]
    if not names or len(schema.columns) < 2:
        st.text("No column has two to ten labels, so there is nothing for a classifier to predict.")
        return
    with st.container(border=True):
        st.markdown("**Train other classifiers**")
        mine = label_of(work, schema.names) or (shown[0].tables["classifiers"]["label"].iloc[0] if shown else "")
        label = st.selectbox("Label to predict", names, index=names.index(mine) if mine in names else 0, key="label")
        with st.container(horizontal=True):
            for count, chosen in CHOICES.items():
                seconds = ClassificationDiagnostic(classifiers=chosen).seconds(schema, work.n)
                waiting = duration(seconds * max(1, len(to_classify(work, label))))
                text = f"Train {count} ({waiting})"
                if st.button(text, icon=":material/model_training:", key=f"classify_{len(chosen)}"):
                    with errors_shown("The classifiers were not trained."):
                        classify(work, label, chosen)
                        st.rerun()
