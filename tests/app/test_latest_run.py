"""What is shown is what was just made, on every page; and what is about to be spent is said in full."""

from __future__ import annotations

from functools import lru_cache

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.examples import EXAMPLES
from pages.shared.accounts import open_ledger
from pages.shared.data.actions import load_example, load_upload, open_account, replace_draft
from pages.shared.data.schema_rows import mark_public
from pages.shared.session import Session
from tests.tables.releases import outcome_of
from tests.waiting.pages import click, csv_of, data_page, elements, page, session_of, settled, texts

EXAMPLE = "two_groups_signal"


@lru_cache
def made() -> RunResult:
    example = EXAMPLES[EXAMPLE]
    return outcome_of(example.load(), example.schema, "perturbed_histogram")


def with_runs(count: int) -> Session:
    session = Session()
    load_example(session, EXAMPLE)
    for _ in range(count):
        session.work.add_run(made())
    return session


@pytest.mark.parametrize(
    ("path", "key"),
    [("pages/3_Synthesize.py", "history"), ("pages/6_Release.py", "reviewed")],
    ids=["made", "reviewed"],
)
def test_a_new_run_is_what_is_shown_and_older_ones_can_be_chosen(path: str, key: str) -> None:
    app = page(path, with_runs(2))
    assert app.selectbox(key=key).value == 2
    settled(app.selectbox(key=key).set_value(1).run())
    assert app.selectbox(key=key).value == 1
    session_of(app).work.add_run(made())
    settled(app.run())
    assert app.selectbox(key=key).value == 3


def test_diagnostics_look_at_the_new_run() -> None:
    app = page("pages/4_Diagnostics.py", with_runs(2))
    settled(app.multiselect(key="compared").set_value([1]).run())
    session_of(app).work.add_run(made())
    settled(app.run())
    assert app.multiselect(key="compared").value == [3]


def test_another_tab_shows_where_the_table_came_from() -> None:
    session = Session()
    load_upload(session, "mine.csv", csv_of("age", "weight"))
    assert data_page(session).radio(key="source").value == "file"
    load_example(session, "wine")
    app = data_page(session)
    assert (app.radio(key="source").value, app.selectbox(key="example_key").value) == ("example", "wine")


def release(*, epsilon: str, spent: Budget | None = None, public: bool = True) -> Session:
    session = Session(mode="release")
    load_upload(session, "private.csv", csv_of("age", "weight"))
    session.work.layout_public = public
    replace_draft(session, mark_public(session.work.draft, public=public))
    open_account(session, epsilon, "1e-6")
    if spent is not None:
        with open_ledger().charge(session.work.data.fingerprint or "", spent, purpose="before") as charge:
            charge.drawn()
    session.settings.pick_epsilon("1")
    return session


def asked(session: Session) -> tuple[AppTest, str]:
    """The dialog before a run: its title and what it says."""
    app = click(page("pages/3_Synthesize.py", session), "synthesize")
    (dialog,) = [block.proto for block in elements(app._tree) if block.type == "dialog"]
    return app, dialog.dialog.title


@pytest.mark.parametrize(
    ("session", "title"),
    [
        (lambda: release(epsilon="1"), "Spend the whole budget?"),
        (lambda: release(epsilon="2", spent=Budget.of(1)), "Spend all that is left of the budget?"),
        (lambda: release(epsilon="3"), "Spend part of the budget?"),
    ],
    ids=["all", "rest", "part"],
)
def test_the_dialog_says_whether_all_is_spent(session: object, title: str) -> None:
    assert asked(session())[1] == title  # type: ignore[operator]


@pytest.mark.parametrize("public", [True, False], ids=["possible", "void"])
def test_the_dialog_says_that_the_guarantee_is_void(public: bool) -> None:
    app, _ = asked(release(epsilon="3", public=public))
    assert any("The guarantee is void" in warning.value for warning in app.warning) == (not public)
    assert ("columns were read from the data" in texts(app)) == (not public)


def test_the_header_of_a_review_names_delta() -> None:
    app = page("pages/6_Release.py", with_runs(1))
    assert any("δ = 0 (pure)" in element.value for element in app.markdown)
