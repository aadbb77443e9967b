"""Work that ends in the background draws the page anew; a click at that moment is neither lost nor used twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.shared import buttons
from pages.shared.accounts import account_of
from pages.shared.data.actions import declare_all_public, load_upload, open_account
from pages.shared.mechanism import forecast_view
from pages.shared.session import Session
from tests.waiting.pages import click, page, settled, texts


def counting() -> None:
    """A page that may begin anew before it comes to its button."""
    import streamlit as st

    from pages.shared.buttons import clicked

    if st.session_state.pop("begin_anew", False):
        st.rerun()
    if not st.session_state.get("hidden") and clicked("Count", key="count", disabled=bool(st.session_state.get("off"))):
        st.session_state["counted"] = st.session_state.get("counted", 0) + 1


def counted(app: AppTest) -> int:
    return int(app.session_state["counted"]) if "counted" in app.session_state else 0


@pytest.fixture
def counter() -> AppTest:
    return settled(AppTest.from_function(counting).run())


@pytest.mark.parametrize("begin_anew", [False, True])
def test_a_click_counts_once_whether_or_not_the_page_begins_anew(counter: AppTest, begin_anew: bool) -> None:
    counter.session_state["begin_anew"] = begin_anew
    click(counter, "count")
    assert counted(counter) == 1
    settled(counter.run())
    assert counted(counter) == 1


@pytest.mark.parametrize("obstacle", ["hidden", "off"])
def test_a_click_that_could_not_be_answered_is_not_used_later(
    counter: AppTest, obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button is gone or disabled when the page comes to it, and is there again after a while."""
    counter.session_state[obstacle] = True
    click(counter, "count")
    monkeypatch.setattr(buttons, "KEPT_SECONDS", 0.0)
    counter.session_state[obstacle] = False
    settled(counter.run())
    assert counted(counter) == 0


@pytest.fixture
def release() -> Session:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"income": np.round(rng.normal(50, 10, 200), 2), "sex": np.repeat(["f", "m"], 100)})
    session = Session(mode="release")
    load_upload(session, "people.csv", table.to_csv(index=False).encode())
    declare_all_public(session, public=True)
    open_account(session, 5, "1e-5")
    return session


@pytest.fixture
def restarts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """True in it makes the Synthesize page begin anew, once, as it does when a forecast has just ended."""
    due: list[bool] = []

    def show_forecast(*_: object, **__: object) -> None:
        if due:
            due.pop()
            st.rerun()

    monkeypatch.setattr(forecast_view, "show_forecast", show_forecast)
    return due


@pytest.mark.parametrize(("button", "name"), [("synthesize", "run"), ("test_run_synthesize", "test")])
def test_what_costs_epsilon_is_asked_and_paid_for_once(
    release: Session, restarts: list[bool], button: str, name: str
) -> None:
    app = page("pages/3_Synthesize.py", release)
    restarts.append(True)
    click(app, button)
    assert "costs ε " in texts(app), "the click was lost"
    restarts.append(True)
    settled(app.run())
    assert "costs ε " in texts(app), "the dialog was closed"
    account = account_of(release)
    assert account is not None
    assert account.entries == ()
    restarts.append(True)
    click(app, f"confirm_{name}")
    for task in release.work.tasks:
        task.wait(60)
    settled(app.run())
    account = account_of(release)
    assert account is not None
    assert len(account.entries) == 1


def test_a_cancelled_question_is_not_asked_again(release: Session, restarts: list[bool]) -> None:
    app = click(page("pages/3_Synthesize.py", release), "synthesize")
    restarts.append(True)
    click(app, "cancel_run")
    assert "costs ε " not in texts(app)
    assert release.work.asked is None
