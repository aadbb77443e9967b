"""Choose how the stand-in is made, and how private it is."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Mechanism")

from pages.shared.comparison.view import point_to_comparison
from pages.shared.layout import lay_out, needs_schema, next_step
from pages.shared.mechanism.forecast_view import ask_forecast
from pages.shared.mechanism.plan_view import show_plan, show_preview
from pages.shared.mechanism.plans_view import show_plans
from pages.shared.mechanism.view import choose_epsilon, choose_mechanism, choose_parameters, compare_two, save_and_load

session = lay_out("pages/2_Mechanism.py")
schema, n = needs_schema(session)

show_plans(session, key="mechanism")

st.header("How private?", anchor=False)
choose_epsilon(session, schema, n)

st.header("Which mechanism?", anchor=False)
choose_mechanism(session, schema, n)
compare_two(session, schema, n)
point_to_comparison(schema)

st.header("Parameters", anchor=False)
choose_parameters(session, schema, n)

st.header("What to expect", anchor=False)
st.markdown("Everything below follows from public facts. Nothing is spent and no row is looked at.")
show_plan(session, schema, n)
ask_forecast(session, schema, n)
show_preview(session, schema, n)
save_and_load(session, schema, n)
next_step("pages/3_Synthesize.py", "Next: synthesize", session.settings.missing(schema, n))
