"""Tables and budgets at the edge: every page is drawn, with a result or a refusal in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.mechanisms import MECHANISMS
from pages.shared.data.actions import declare_all_public, load_upload
from pages.shared.session import Session
from tests.waiting.pages import ROOT, settled

RNG = np.random.default_rng(0)
PLAIN = pd.DataFrame({"group": RNG.choice(["a", "b"], 100), "age": RNG.integers(18, 90, 100)})
TABLES = {
    "one row": PLAIN[:1],
    "one column": PLAIN[["age"]],
    "300 columns": pd.DataFrame(RNG.integers(0, 5, (50, 300)), columns=[f"c{i}" for i in range(300)]),
    "1,000 categories": pd.DataFrame({"code": [f"k{i}" for i in range(1000)] * 2, "age": RNG.integers(18, 90, 2000)}),
    "constant columns": pd.DataFrame({"word": ["same"] * 50, "number": [7] * 50}),
}


def loaded(table: pd.DataFrame) -> Session:
    session = Session()
    load_upload(session, "extreme.csv", table.to_csv(index=False).encode())
    declare_all_public(session, public=True)
    return session


def drawn(session: Session, *pages: str) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.session_state["dpsynth"] = session
    for page in pages:
        settled(app.switch_page(f"pages/{page}.py").run())


@pytest.mark.parametrize("name", TABLES)
def test_pages_are_drawn_for_tables_at_the_edge(name: str) -> None:
    drawn(loaded(TABLES[name]), "1_Data", "2_Mechanism", "3_Synthesize", "5_Tradeoffs")


@pytest.mark.parametrize("epsilon", ["0.000001", pytest.param("1000000", marks=pytest.mark.slow)])
def test_pages_are_drawn_for_every_mechanism_at_tiny_and_huge_epsilon(epsilon: str) -> None:
    session = loaded(PLAIN)
    session.settings.epsilon = epsilon
    for key in MECHANISMS:
        session.settings.key = key
        session.settings.version += 1
        drawn(session, "2_Mechanism", "3_Synthesize")
