"""The default path: a run that leaves something in the account, and no skipping into a table that noise has ruined."""

from __future__ import annotations

from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.diagnostics.total_variation import LIMITS
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.forecast import AS_IT_IS, COLUMN_LIMITS, WITH_MORE, Forecast, forecast_with_remedies
from pages.shared.data.actions import choose_mode, load_example, load_upload, open_account
from pages.shared.mechanism.actions import SKIP_CHECK, scenario_of
from pages.shared.mechanism.settings import MechanismSettings
from pages.shared.session import Session
from tests.waiting.jobs import finish
from tests.waiting.pages import click, csv_of, data_page, page, session_of, settled


def forecast_of(column: float, pair: float | None = None) -> Forecast:
    pairs = () if pair is None else (("a", "b", pair),)
    return Forecast(rows=100, errors=(ExpectedError(columns=(("a", column),), pairs=pairs, repetitions=1),))


def said(app: AppTest) -> str:
    return "\n".join(str(part.value) for part in [*app.markdown, *app.warning, *app.caption, *app.title])


def skipped(session: Session) -> AppTest:
    """The page after the button, and after the forecast has come."""
    app = click(data_page(session), "skip")
    task = session.work.tasks.get(SKIP_CHECK)
    assert task is not None
    finish(task.job)
    return settled(app.run())


@pytest.mark.parametrize(
    ("left", "proposed"), [(None, "1"), ("5", "1"), ("2", "1"), ("1", "0.5"), ("0.5", "0.25"), ("0.001", "0.01")]
)
def test_the_first_run_does_not_use_up_the_account(left: str | None, proposed: str) -> None:
    settings = MechanismSettings()
    settings.suit_account(None if left is None else Fraction(left))
    assert settings.epsilon == proposed


def test_an_epsilon_that_was_chosen_stays() -> None:
    settings = MechanismSettings()
    settings.pick_epsilon("3")
    settings.suit_account(Fraction(1))
    assert settings.epsilon == "3"


def test_before_there_is_an_account_half_of_its_proposed_total_is_proposed_and_forecast() -> None:
    session = Session(mode="release")
    load_upload(session, "mine.csv", csv_of("age", "weight"))
    assert session.work.proposed_total.epsilon == 1
    assert session.settings.epsilon == "0.5"
    assert "No account is open yet" in said(settled(page("pages/2_Mechanism.py", session)))
    load_example(session, "wine")
    choose_mode(session, "teaching")
    assert session.settings.epsilon == "1", "nothing is charged there"


def test_opening_an_account_of_epsilon_1_proposes_half_of_it_and_says_so() -> None:
    session = Session(mode="release")
    load_upload(session, "mine.csv", csv_of("age", "weight"))
    open_account(session, "1", "1e-6")
    assert session.settings.epsilon == "0.5"
    assert "at most half of it" in said(settled(page("pages/2_Mechanism.py", session)))


@pytest.mark.parametrize(
    ("column", "pair", "light"),
    [(0.04, None, "green"), (0.04, 0.09, "green"), (0.06, 0.09, "amber"), (0.04, 0.2, "amber"), (0.16, 0.2, "red")],
)
def test_the_light_is_the_worse_of_columns_and_pairs(column: float, pair: float | None, light: str) -> None:
    assert forecast_of(column, pair).light == light
    assert COLUMN_LIMITS == LIMITS, "red before a run means what far apart means after it"


def test_skipping_stops_where_the_plan_is_red_and_says_what_to_change() -> None:
    session = Session()
    load_example(session, "wine")
    app = skipped(session)
    assert [title.value for title in app.title] == ["Data"]
    text = said(app)
    assert "expect a table that is far from the original" in text
    assert "For 178 rows and 14 columns, Private-PGM at ε = 1" in text
    assert "What to change." in text
    assert "would help most" in text
    click(app, "skip_anyway")
    assert [title.value for title in app.title] == ["Synthesize"]


def test_skipping_goes_on_where_the_plan_is_not_red() -> None:
    session = Session()
    load_example(session, "bivariate_normal")
    app = skipped(session)
    assert [title.value for title in app.title] == ["Synthesize"]
    assert not session_of(app).work.skipping


@pytest.mark.slow
def test_a_plan_that_has_changed_is_not_judged_by_the_old_forecast() -> None:
    session = Session()
    load_example(session, "wine")
    app = skipped(session)
    session.settings.pick_epsilon("10")
    settled(app.run())
    assert "expect a table that is far from the original" not in said(app)


def test_only_a_red_plan_needs_remedies() -> None:
    session = Session()
    ways = {}
    for name in ("wine", "bivariate_normal"):
        load_example(session, name)
        work = session.work
        assert work.schema is not None
        scenario = scenario_of(session, session.settings.config(work.schema, work.n, teaching=True))
        ways[name] = forecast_with_remedies(scenario, Fraction(0))
    assert set(ways["bivariate_normal"]) == {AS_IT_IS}
    assert WITH_MORE in ways["wine"]
