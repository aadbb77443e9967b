"""What is typed into the fields of the app can be refused, and can do nothing else."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.errors import DPSynthError
from dpsynth_core.review.thresholds import Thresholds
from pages.shared.accounts import account_of
from pages.shared.data.actions import load_example, load_upload
from pages.shared.data.schema_rows import from_rows
from pages.shared.session import Session
from tests.waiting.pages import csv_of, page, session_of, settled

HUGE = ["1e-9999999", "1e9999999", "9" * 100_000, "1/" + "7" * 100_000]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path))


def refused(app: AppTest) -> bool:
    return any("finite number" in element.value for element in (*settled(app).error, *app.text))


def typed(app: AppTest, label: str, text: str) -> None:
    next(field for field in app.text_input if field.label.startswith(label)).set_value(text)


@pytest.mark.parametrize("huge", HUGE, ids=lambda text: text[:10])
def test_delta_of_a_run(huge: str) -> None:
    session = Session(mode="teaching")
    load_example(session, "two_groups_signal")
    session.settings.key, session.settings.picked = "dp_gan", True
    app = page("pages/2_Mechanism.py", session)
    typed(app, "Delta", huge)
    assert refused(app.run())
    assert session_of(app).settings.delta != huge


@pytest.mark.parametrize("huge", HUGE, ids=lambda text: text[:10])
def test_total_delta_of_an_account(huge: str) -> None:
    session = Session(mode="release")
    load_upload(session, "rows.csv", csv_of("a", "b"))
    app = page("pages/1_Data.py", session)
    typed(app, "Total delta", huge)
    next(button for button in app.button if button.label == "Open the account").click()
    assert refused(app.run())
    assert account_of(session_of(app)) is None


@pytest.mark.parametrize("huge", HUGE, ids=lambda text: text[:10])
@pytest.mark.parametrize("field", ["epsilon", "delta"])
def test_policy_of_a_review(field: str, huge: str) -> None:
    with pytest.raises(DPSynthError, match="finite number"):
        Thresholds(**{field: huge})


@pytest.mark.parametrize("huge", HUGE, ids=lambda text: text[:10])
@pytest.mark.parametrize("field", ["from", "to"])
def test_bounds_in_the_table_of_facts(field: str, huge: str) -> None:
    session = Session(mode="teaching")
    load_upload(session, "rows.csv", csv_of("a", "b"))
    draft = session.work.draft.copy()
    draft[field] = draft[field].astype(object)
    draft.loc[0, field] = huge
    schema, problems = from_rows(draft, file=None, rows_per_person=1, declared_by="")
    accepted = None if schema is None else schema.columns[0].lower
    assert (schema is None and problems and max(map(len, map(str, problems))) < 2_000) or accepted == 0
