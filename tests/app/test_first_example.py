"""The first example succeeds at the default settings, and the same with few rows shows why size matters."""

from __future__ import annotations

import pytest

from dpsynth_core import PrivateTable, evaluate, synthesize
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.forecast import Scenario, forecast
from dpsynth_core.table.examples import EXAMPLES, FIRST
from pages.shared.data.actions import load_example
from pages.shared.session import Session
from tests.waiting.pages import click, data_page, session_of

EXAMPLE = EXAMPLES[FIRST]
DEFAULT_EPSILON = "1"


def diagnosed(rows: int, seed: int) -> Evaluation:
    """The suggested mechanism at the default epsilon, without a delta."""
    table = PrivateTable(EXAMPLE.load(rows), EXAMPLE.schema)
    mechanism = MECHANISMS[recommended(EXAMPLE.schema)].suggest(EXAMPLE.schema, rows, DEFAULT_EPSILON)
    return evaluate(table, synthesize(table, mechanism, epsilon=DEFAULT_EPSILON, seed=seed).sample(rows))


def few() -> int:
    assert EXAMPLE.few_rows is not None
    return EXAMPLE.few_rows


def test_the_first_example_succeeds_and_few_rows_do_not() -> None:
    assert diagnosed(EXAMPLE.default_rows, seed=0).verdict in ("good", "excellent")
    assert diagnosed(few(), seed=0).verdict == "poor"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_it_succeeds_whatever_the_noise(seed: int) -> None:
    assert diagnosed(EXAMPLE.default_rows, seed=seed).verdict in ("fair", "good", "excellent")


def test_the_forecast_says_so_beforehand() -> None:
    lights = {}
    for rows in (EXAMPLE.default_rows, few()):
        mechanism = MECHANISMS[recommended(EXAMPLE.schema)].suggest(EXAMPLE.schema, rows, DEFAULT_EPSILON)
        scenario = Scenario(mechanism=mechanism, schema=EXAMPLE.schema, n=rows, budget=Budget.of(DEFAULT_EPSILON))
        lights[rows] = forecast(scenario).light
    assert lights[EXAMPLE.default_rows] == "green"
    assert lights[few()] != "green"


def test_one_click_leads_to_the_same_with_few_rows_and_back() -> None:
    session = Session()
    load_example(session, FIRST)
    app = click(data_page(session), "other_size")
    assert session_of(app).work.n == few()
    assert app.number_input(key=f"rows_{FIRST}_{session.tables_used}").value == few()
    assert session_of(click(app, "other_size")).work.n == EXAMPLE.default_rows


def test_an_example_of_one_size_offers_no_other() -> None:
    session = Session()
    load_example(session, "wine")
    assert not [button for button in data_page(session).button if button.key == "other_size"]
