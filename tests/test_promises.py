"""One file and one line: a mechanism that tests register, and nothing else knows of, gets everything that others have.

The contract tests run on it as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.tables import README, mechanism_rows, updated
from dpsynth_core.audit.checks import failures
from dpsynth_core.audit.claims import claim_checks
from dpsynth_core.audit.replay import replay_checks
from dpsynth_core.audit.subject import registered
from dpsynth_core.audit.suite import QUICK
from dpsynth_core.charts.sweeps import sweep_chart
from dpsynth_core.cli.synthesize import add_arguments
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import parameters
from dpsynth_core.teaching.sweep.config import SweepConfig
from dpsynth_core.teaching.sweep.run import sweep
from pages.shared.data.actions import load_example
from pages.shared.session import Session
from tests.tables.schemas import mixed_schema, mixed_table
from tests.tables.toy import Toy
from tests.waiting.pages import page, session_of, settled

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with MECHANISMS.register("toy", Toy):
        yield


def test_its_form_follows_from_its_fields() -> None:
    bins, rows = (next(p for p in parameters(Toy) if p.name == name) for name in ("bins", "rows"))
    assert (bins.title, bins.kind, bins.help) == ("Bins of the toy", "int", "Cells along every numeric column.")
    assert rows.optional


def test_it_has_a_card_and_a_form_on_the_mechanism_page() -> None:
    session = Session(mode="teaching")
    load_example(session, "two_groups_signal")
    app = page("pages/2_Mechanism.py", session)
    shown = [element.value for element in [*app.markdown, *app.caption]]
    for text in (Toy.title, Toy.summary, Toy.good_for):
        assert any(text in value for value in shown), text
    settled(app.button(key="choose_toy").click().run())
    assert session_of(app).settings.key == "toy"
    assert "Bins of the toy" in {element.label for element in app.number_input}


def test_it_is_a_subject_of_the_audit_and_passes() -> None:
    subject = registered()["toy"]
    assert not failures(replay_checks(subject, QUICK, 1))
    assert not failures(claim_checks(kinds={"toy": Toy}))


def test_it_has_a_line_in_the_charts() -> None:
    config = SweepConfig(mechanisms=("kd_grid", "toy"), epsilons=(0.5, 5.0), repetitions=1)
    result = sweep(mixed_table(100), mixed_schema(), config)
    chart = sweep_chart(result, list(result.aspects[:1]))
    lines = {trace.name: trace.line.color for trace in chart.figure.data if trace.name}
    assert lines[Toy.title] != lines[MECHANISMS["kd_grid"].title]


def test_the_command_line_offers_it() -> None:
    command = argparse.ArgumentParser()
    add_arguments(command)
    assert "toy" in command.format_help()


def test_a_command_writes_its_row_of_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    row = f"| `toy` | {Toy.summary} | {Toy.good_for} |\n"
    assert row not in text
    assert row in updated(text)
    assert updated(updated(text)) == updated(text)


def test_the_readme_has_every_mechanism_in_its_own_words() -> None:
    rows = [row for row in mechanism_rows().splitlines() if not row.startswith("| `toy`")]
    assert "\n".join(rows) in README.read_text(encoding="utf-8"), "run python -m docs.tables"


def test_contributing_names_everything_that_a_mechanism_must_have() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text.split("## Adding a mechanism")[1].split("\n## ")[0]
    required = set(Mechanism.__abstractmethods__)
    required |= {name for name in Mechanism.__annotations__ if "ClassVar" in str(Mechanism.__annotations__[name])}
    assert not {name for name in required if f"`{name}`" not in section and f"`{name}(" not in section}
