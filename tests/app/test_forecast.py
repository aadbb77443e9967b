"""What the pages say about error before and after spending, and what they offer to do about it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.forecast import AS_IT_IS, WITH_DELTA, Forecast
from pages.shared.data.actions import choose_mode, load_example, load_upload, open_account
from pages.shared.mechanism import forecast_view
from pages.shared.mechanism.actions import FORECAST, offered_delta, scenario_of, start_forecast
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from pages.shared.table_work import ForecastRecord
from pages.shared.tasks import RUN
from tests.waiting.jobs import finish
from tests.waiting.pages import csv_of, page, session_of, settled, texts

MECHANISM, SYNTHESIZE = "pages/2_Mechanism.py", "pages/3_Synthesize.py"


def teaching(example: str = "breast_cancer") -> Session:
    session = Session()
    load_example(session, example)
    session.settings.pick("private_pgm")
    return session


def config_of(session: Session) -> object:
    work = session.work
    assert work.schema is not None
    return session.settings.config(work.schema, work.n, teaching=True)


def foreseen(session: Session, *ways: str) -> ForecastRecord:
    """A forecast as a worker would bring it."""

    def error(column: float, pair: float) -> ExpectedError:
        return ExpectedError(columns=(("a", column),), pairs=(("a", "b", pair),), repetitions=1)

    found = Forecast(rows=569, errors=(error(0.021, 0.05), error(0.03, 0.2)))
    record = ForecastRecord(
        scenario=scenario_of(session, config_of(session)),  # type: ignore[arg-type]
        found=dict.fromkeys(ways or (AS_IT_IS,), found),
        delta=Fraction(1, 10**6),
    )
    session.work.forecast = record
    return record


def shown(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.info]
    return "\n".join([*(str(part.value) for part in parts), *(f"{each.label}: {each.value}" for each in app.metric)])


@pytest.mark.parametrize("path", [MECHANISM, SYNTHESIZE])
def test_the_forecast_is_shown_where_money_is_spent(path: str) -> None:
    session = teaching()
    foreseen(session, AS_IT_IS, WITH_DELTA)
    said = shown(settled(page(path, session)))
    assert "Single columns, on average: 2.1% to 3.0%" in said
    assert "Pairs of columns, on average: 5.0% to 20%" in said
    assert "With δ = 0.000001 it would be" in said or "With δ = 1e-6 it would be" in said
    assert "No row of your table was looked at" in said


def test_a_forecast_is_about_what_would_be_run_now() -> None:
    session = teaching()
    foreseen(session)
    session.settings.epsilon = "3"
    assert "Single columns, on average" not in shown(settled(page(MECHANISM, session)))


def test_a_quick_forecast_begins_by_itself_before_spending_and_no_slow_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(forecast_view, "start_forecast", lambda session, _: begun.append(foreseen(session)))
    settled(page(MECHANISM, teaching()))
    assert not begun, "the Mechanism page changes with every click"
    settled(page(SYNTHESIZE, teaching()))
    assert len(begun) == 1
    monkeypatch.setattr(forecast_view, "BEGIN_SECONDS", 0.0)
    app = settled(page(SYNTHESIZE, teaching()))
    assert len(begun) == 1
    settled(app.button(key="forecast").click().run())
    assert len(begun) == 2


def test_a_forecast_runs_in_a_worker_and_is_kept() -> None:
    session = teaching("two_groups_signal")
    scenario = scenario_of(session, config_of(session))  # type: ignore[arg-type]
    finish(start_forecast(session, scenario).job)
    session.collect()
    record = session.work.forecast
    assert record is not None
    assert record.scenario == scenario
    assert set(record.found) == {AS_IT_IS, WITH_DELTA}
    assert 0 < record.found[AS_IT_IS].column_error < 1


def test_a_run_frees_the_worker_that_forecasts() -> None:
    session = teaching("two_groups_signal")
    forecasting = start_forecast(session, scenario_of(session, config_of(session)))  # type: ignore[arg-type]
    task = start(session, config_of(session))  # type: ignore[arg-type]
    assert session.work.tasks.get(FORECAST) is None
    assert not forecasting.active
    finish(task.job)
    session.collect()
    assert session.work.tasks.get(RUN) is task
    assert session.runs


def test_delta_is_proposed_in_plain_numbers_and_the_suggestion_follows() -> None:
    app = settled(page(MECHANISM, teaching()))
    before = shown(app)
    assert "counts of pairs instead of none" in before
    assert "columns are drawn independently" in before
    settled(app.button(key="use_delta").click().run())
    settings = session_of(app).settings
    assert settings.grant_delta
    assert Budget.of(1, settings.delta_of()).delta == Fraction(1, 10**6)
    after = shown(app)
    assert "columns are drawn independently" not in after
    assert "could make" not in after


def private(delta: str) -> Session:
    session = Session()
    choose_mode(session, "release")
    load_upload(session, "table.csv", csv_of("a", "b", "c", "d", rows=400))
    open_account(session, "3", delta)
    session.settings.pick("private_pgm")
    return session


@pytest.mark.parametrize(
    ("left", "offered"), [("0", Fraction(0)), ("1e-8", Fraction(1, 10**8)), ("1e-3", Fraction(1, 10**6))]
)
def test_only_a_delta_that_the_account_has_is_offered(left: str, offered: Fraction) -> None:
    assert offered_delta(private(left)) == offered


@pytest.mark.parametrize(("epsilon", "far"), [("10", False), ("0.01", True)])
def test_after_a_run_the_release_says_how_accurate_it_is(epsilon: str, far: bool) -> None:
    session = teaching("two_groups_signal")
    session.settings.pick_epsilon(epsilon)
    finish(start(session, config_of(session)).job)  # type: ignore[arg-type]
    session.collect()
    app = settled(page(SYNTHESIZE, session))
    assert any("How accurate is it?" in each.label for each in app.expander)
    assert "Single columns: " in texts(app)
    assert "No private row was used" in shown(app)
    assert ("**Far off:** noise is estimated to put about" in shown(app)) is far, "beside its proven guarantee"


def test_what_another_page_has_forecast_is_shown_and_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.shared.mechanism.actions.BEGIN_SECONDS", 0.0)
    monkeypatch.setattr(forecast_view, "BEGIN_SECONDS", 0.0)
    session = teaching()
    record = foreseen(session)
    session.work.forecast = None
    session.work.forecasts[record.scenario] = record.found[AS_IT_IS]
    app = settled(page(SYNTHESIZE, session))
    assert "Forecast of the error" in shown(app)
    assert session_of(app).work.tasks.get(FORECAST) is None
