"""What the theory promises of a thresholded grid, beside what is expected: simulated rows and public facts only."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import streamlit as st

from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.grid_promises import MAX_COLUMNS, MAX_ROWS, GridPromise, grid_promises
from pages.shared.formatting import measured
from pages.shared.layout import errors_shown
from pages.shared.session import Session


@lru_cache(maxsize=64)
def _promises(columns: int, bins: int, n: int, epsilon: Fraction) -> tuple[GridPromise, ...]:
    """Simulated rows, so every visitor may see the same."""
    return grid_promises(columns=columns, bins=bins, n=n, epsilon=epsilon)


def show_theory(session: Session, schema: Schema, n: int, plan: Plan) -> None:
    """The paper's theorems for this number of columns, bins, rows and this epsilon."""
    few = len(schema.columns) <= MAX_COLUMNS and all(column.is_numeric for column in schema)
    if session.settings.key != KDGrid.key or not few:
        return
    with st.expander("What the theory promises"):
        st.markdown(
            "The paper behind this mechanism bounds how far a smoothed picture of the synthetic rows can be from that "
            "of the original (largest difference of kernel densities; 0 is best, and 1 says nothing). The promises "
            "below are for normally distributed columns whose declared range is ten standard deviations wide, with "
            "your number of columns, bins and rows and your epsilon. Beside each is what one simulated run came to."
        )
        if not st.toggle("Compute them", key="show_theory"):
            return
        rows, bins = min(n, MAX_ROWS), max(plan.cuts)
        epsilon = plan.stages[-1].epsilon
        with errors_shown("The promises cannot be computed."):
            found = _promises(len(schema.columns), bins, rows, epsilon)
            table = [_row(promise) for promise in found]
            st.dataframe(table, hide_index=True, alt="Bounds of the theorems and what happened")
            silent = [promise for promise in found if promise.bound is None]
            st.text("\n".join(f"Theorem {promise.theorem} does not apply: {promise.why_not}" for promise in silent))
        capped = f" With {MAX_ROWS:,} rows, as more take too long here." if n > MAX_ROWS else ""
        st.caption(
            f"{bins} bins per column, {rows:,} rows, ε {float(epsilon):g} for the counts; each promise fails with "
            f"probability at most 1 in 10,000.{capped} Theorem 5 looks at the rows, so it is for simulated or public "
            "ones only; “light” counts its rows in sparsely filled cells. Promises are far from what happens because "
            "they add up the noise of all cells as if none of it cancelled."
        )


def _row(promise: GridPromise) -> dict[str, str]:
    if promise.bound is None:
        said = "nothing: see below"
    elif promise.says_something:
        said = f"at most {measured(promise.bound)}"
    else:
        said = f"nothing: {measured(promise.bound)} is not below 1"
    return {
        "theorem": str(promise.theorem),
        "what the theory promises": said,
        "what is expected": measured(promise.measured),
        "fewest rows to keep a cell": f"{promise.threshold:,}",
    }
