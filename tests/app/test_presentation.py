"""For teachers: links that keep section, table and epsilon, and a presentation that can be read from the last row."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.table.examples import EXAMPLES
from pages.shared.data.actions import choose_mode, declare_all_public, load_example, load_upload
from pages.shared.session import Session
from pages.shared.tradeoffs.state import Tradeoffs
from pages.shared.tradeoffs.tables import MINE, SIMULATED, choose_comparison
from pages.shared.tradeoffs.view import SECTIONS
from tests.waiting.pages import ROOT, csv_of, elements, page, session_of, settled

TRADEOFFS = "pages/5_Tradeoffs.py"


def linked(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page(TRADEOFFS)
    for name, value in parameters.items():
        app.query_params[name] = value
    return settled(app.run())


def address_of(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def letters(app: AppTest) -> float:
    """The size of the letters in the first figure."""
    chart = next(element for element in elements(app._tree) if element.type == "plotly_chart")
    size: float = json.loads(chart.proto.spec)["layout"]["font"]["size"]
    return size


@pytest.mark.parametrize("section", [each for each in SECTIONS if each != "lessons"])
def test_a_link_keeps_section_table_and_epsilon_on_every_tab(section: str) -> None:
    app = linked(section=section, table="wine", epsilon="2")
    session = session_of(app)
    assert (session.tradeoffs.section, session.tradeoffs.table) == (section, "wine")
    address = address_of(app)
    assert (address["section"], address["table"]) == (section, "wine")
    if section in ("person", "noise"):
        assert app.select_slider(key=f"{section}_epsilon").value == "2"
        assert address["epsilon"] == "2"
    again = address_of(linked(**{name: address[name] for name in ("section", "table", "epsilon") if name in address}))
    assert {name: again.get(name) for name in address} == address
    for tasks in session.tasks:
        tasks.leave()


def test_what_a_link_must_not_say_is_left_out() -> None:
    session = session_of(linked(section="noise", table="../private", epsilon="1e9"))
    assert session.tradeoffs.section == "noise"
    assert session.tradeoffs.table in EXAMPLES
    assert session.tradeoffs.choices["noise_epsilon"] == "0.3"


def test_a_link_does_not_name_a_table_of_ones_own() -> None:
    session = Session(tradeoffs=Tradeoffs(section="noise"))
    load_upload(session, "secret name.csv", csv_of("a", "b"))
    app = settled(page(TRADEOFFS, session))
    assert session.tradeoffs.table == MINE
    assert "table" not in address_of(app)


def test_another_epsilon_leads_to_the_comparison_on_the_table_at_hand() -> None:
    session = Session()
    load_example(session, "wine")
    choose_comparison(session)
    assert (session.tradeoffs.section, session.tradeoffs.table) == ("sweep", MINE)
    choose_mode(session, "release")
    load_upload(session, "mine.csv", csv_of("a", "b"))
    declare_all_public(session, public=True)
    choose_comparison(session)
    assert (session.tradeoffs.section, session.tradeoffs.table) == ("sweep", SIMULATED), "never private rows"


def test_a_presentation_has_large_letters_and_nothing_around_it() -> None:
    usual, large = (linked(lesson="5", epsilon="0.1", answer="3", **more) for more in ({}, {"present": "1"}))
    assert letters(large) == 1.5 * letters(usual)
    assert not large.sidebar.children
    assert usual.sidebar.children
    assert "next" in {button.key for button in usual.button}
    assert "next" not in {button.key for button in large.button}
    assert any("p = " in text.value or "p < " in text.value for text in large.text), "p-values under the draw"
    assert not [caption for caption in large.caption if "This page uses only examples" in caption.value]
