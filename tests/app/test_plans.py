"""Planning before paying: the grid on the Data and Mechanism pages."""

from __future__ import annotations

from fractions import Fraction

from streamlit.testing.v1 import AppTest

from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.forecast import AS_IT_IS, Forecast, Scenario
from pages.shared.accounts import account_of
from pages.shared.data.actions import choose_mode, edit_draft, load_example, load_upload, open_account
from pages.shared.mechanism.actions import scenario_of, start_forecast
from pages.shared.mechanism.plans import (
    PLANS,
    advance,
    apply_plan,
    found_plans,
    is_applied,
    next_batch,
    planned_rows,
    start_plans,
    too_dear,
    waiting_rows,
)
from pages.shared.session import Session
from tests.waiting.jobs import finish
from tests.waiting.pages import click, csv_of, data_page, page, session_of, settled

MECHANISM = "pages/2_Mechanism.py"


def private(rows: int = 60) -> Session:
    session = Session()
    choose_mode(session, "release")
    load_upload(session, "table.csv", csv_of("a", "b", rows=rows))
    return session


def foreseen(column: float, pair: float) -> Forecast:
    errors = ExpectedError(columns=(("a", column),), pairs=(("a", "b", pair),), repetitions=1)
    return Forecast(rows=60, errors=(errors,))


def filled(session: Session) -> Session:
    """The grid as workers would fill it: everything close from epsilon 1 on."""
    for row in planned_rows(session):
        for each in row.scenarios:
            good = each.budget.epsilon >= 1
            session.work.forecasts[each] = foreseen(0.01, 0.02) if good else foreseen(0.4, 0.6)
    return session


def said(app: AppTest) -> str:
    return "\n".join(str(part.value) for part in [*app.markdown, *app.caption, *app.warning])


def plan_of(session: Session, key: str, epsilon: str, *, delta: bool = False) -> Scenario:
    (row,) = (row for row in planned_rows(session) if row.key == key and bool(row.delta) == delta)
    return next(each for each in row.scenarios if each.budget.epsilon == Fraction(epsilon))


def test_in_release_mode_the_grid_comes_before_the_total_is_fixed_and_looks_at_no_row() -> None:
    session = private()
    app = data_page(session)
    (expander,) = (each for each in app.expander if "Plan first" in each.label)
    assert expander.proto.expanded
    assert account_of(session) is None
    click(app, "plans_data")
    task = session.work.tasks[PLANS]
    assert not task.paid
    for scenario in task.about:
        assert isinstance(scenario, Scenario), "public facts: a schema, a number of rows and a budget"
    task.cancel()


def test_cells_are_filled_quick_ones_first_and_none_is_forecast_twice() -> None:
    session = Session()
    load_example(session, "two_groups_signal")
    batch = next_batch(session)
    seconds = [row.seconds for row in waiting_rows(session)]
    assert seconds == sorted(seconds)
    finish(start_plans(session, batch).job)
    following = advance(session)
    assert set(batch) <= set(found_plans(session)) | session.work.unforeseen
    assert following is not None
    assert not set(following.about) & set(batch)
    following.cancel()
    after = advance(session)
    assert after is following, "cancelled means cancelled"
    # The same forecast on the Mechanism page is taken from the grid.
    known = next(each for each in batch if each.mechanism.key == "kd_tree")
    session.settings.pick("kd_tree")
    session.settings.pick_epsilon(str(known.budget.epsilon))
    scenario = scenario_of(session, session.settings.config(known.schema, known.n, teaching=True))
    assert scenario == known
    finish(start_forecast(session, scenario).job)
    session.collect()
    assert session.work.forecast is not None
    assert session.work.forecast.found[AS_IT_IS] == found_plans(session)[known]


def test_one_click_applies_a_plan_and_proposes_a_total_with_room_for_two() -> None:
    session = filled(private())
    app = data_page(session)
    assert "The least ε in this grid that is forecast to be close" in said(app)
    plan = plan_of(session, "kd_tree", "2")
    rows = planned_rows(session)
    index = next(i for i, row in enumerate(rows) if row.key == "kd_tree")
    click(app, f"plan_data_{index}_2")
    settings = session_of(app).settings
    assert (settings.key, settings.epsilon, settings.delta_of()) == ("kd_tree", "2", "0")
    assert is_applied(session, plan)
    assert app.number_input(key="total_epsilon").value == 4.0
    settled(app.button(key="FormSubmitter:account-Open the account").click().run())
    account = account_of(session)
    assert account is not None
    assert account.total == Budget.of(4, "1e-6")
    assert settings.epsilon == "2", "the plan that was chosen stays"


def test_a_plan_with_a_delta_proposes_twice_its_delta() -> None:
    session = filled(private())
    apply_plan(session, plan_of(session, "private_pgm", "1", delta=True))
    assert session.work.proposed_total == Budget.of(2, "2e-6")
    assert Budget.of(session.settings.epsilon, session.settings.delta_of()) == Budget.of(1, "1e-6")
    apply_plan(session, plan_of(session, "private_pgm", "0.5"))
    assert session.settings.delta_of() == "0"


def test_a_plan_that_the_account_cannot_pay_for_cannot_be_pressed() -> None:
    session = private()
    open_account(session, "1", "1e-7")
    filled(session)
    assert too_dear(session, plan_of(session, "kd_tree", "2"))
    assert not too_dear(session, plan_of(session, "kd_tree", "1"))
    app = settled(page(MECHANISM, session))
    buttons = {button.label: button.disabled for button in app.button if "ε 5" in button.label}
    assert buttons
    assert all(buttons.values())


def test_other_facts_make_another_grid() -> None:
    session = filled(private())
    before = planned_rows(session)
    session.work.rows_per_person = 3
    edit_draft(session, session.work.draft)
    assert planned_rows(session) != before
    assert not found_plans(session)


def test_a_grid_that_is_red_throughout_says_so_before_the_total_is_fixed() -> None:
    session = private()
    for row in planned_rows(session):
        session.work.forecasts |= dict.fromkeys(row.scenarios, foreseen(0.5, 0.7))
    assert "Every plan in this grid is far off" in said(data_page(session))
