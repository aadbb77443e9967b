"""The internal review report: one page that needs no network, for those who may see the data and nobody else.

It is written from diagnostics and therefore private. It shares no code path with the release bundle: the bundle's gate
admits neither an evaluation nor a decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import count

import jinja2
import pandas as pd
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from dpsynth_core.charts.checklist import WORDS, claims_chart
from dpsynth_core.charts.diagnostics import report_pictures
from dpsynth_core.charts.spending import spending_chart
from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics import DIAGNOSTICS, Measure, Result
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.checklist import Checklist
from dpsynth_core.review.decision import Decision
from dpsynth_core.review.wording import claim, declarer, loss, meaning, unit
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MARK = "For internal review, not for release."
MOST_ITEMS = 15
"""Items of a diagnostic that are listed, worst first."""
TONES = {
    **dict.fromkeys(("passed", "approve", "proven", "excellent", "good"), "good"),
    **dict.fromkeys(("to weigh", "asymptotic", "heuristic", "fair", "unknown", "hold", "not looked at"), "fair"),
    **dict.fromkeys(("failed", "void", "none", "poor"), "bad"),
}
"""How a verdict is coloured; its word says the same."""


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    """A figure as it stands in the page."""

    markup: Markup
    """Plotly's own; it writes names so that they cannot end the script they stand in."""
    alt: str
    """To be read instead."""


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """One part of the report. Every text in it is escaped when the page is written."""

    title: str
    """What it is about."""
    texts: Sequence[str] = ()
    """Paragraphs."""
    verdict: str = ""
    """In a word."""
    head: Sequence[str] = ()
    """Titles of the table's columns."""
    rows: Sequence[Sequence[str]] = ()
    """The table."""
    code: str = ""
    """Text to be shown as it is."""
    figures: Sequence[ReportFigure] = ()
    """Pictures."""


def review_report(
    original: PrivateTable,
    synthetic: pd.DataFrame,
    evaluation: Evaluation,
    *,
    outcome: RunResult | None = None,
    account: Account | None = None,
    decision: Decision | None = None,
    checks: Checklist | None = None,
    earlier: Sequence[Decision] = (),
) -> bytes:
    """The report as an HTML page; every section carries the mark that it is not for release.

    Args:
        original: The private rows.
        synthetic: The synthetic rows.
        evaluation: What diagnostics found.
        outcome: The run behind the synthetic rows, where it is known.
        account: The data set's account, where there is one.
        decision: What the reviewer has decided last, if anything.
        checks: The checklist behind it.
        earlier: Decisions before that one, oldest first.
    """
    number = count(1)

    def draw(chart: Chart) -> ReportFigure:
        text = chart.figure.to_html(
            full_html=False, include_plotlyjs=False, div_id=f"figure-{next(number)}",
            config={"responsive": True, "displayModeBar": False},
        )  # fmt: skip
        return ReportFigure(markup=Markup(text), alt=chart.alt)  # noqa: S704  see ReportFigure

    sections = [
        _decided(decision, earlier),
        *([_checked(checks, draw(claims_chart(checks.checks)))] if checks else []),
        *([_guarantee(outcome)] if outcome else []),
        *([_budget(account, draw(spending_chart(account)))] if account else []),
        _facts(original.schema),
        _quality(evaluation),
    ]
    for result in evaluation.results:
        drawn = [draw(chart) for chart in report_pictures(result, original, synthetic)]
        sections.append(_diagnostic(result, drawn))
    if outcome:
        sections.append(ReportSection(title="Configuration", code=outcome.config.to_json()))
    plotly = Markup(get_plotlyjs())  # noqa: S704  the library itself
    return _template().render(mark=MARK, plotly=plotly, sections=sections, tones=TONES).encode()


@cache
def _template() -> jinja2.Template:
    text = resources.files("dpsynth_core.review").joinpath("report.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return page.from_string(text)


def _decided(decision: Decision | None, earlier: Sequence[Decision]) -> ReportSection:
    if decision is None:
        return ReportSection(title="Decision", texts=["No decision has been recorded."])
    texts = [f"{decision.reviewer}, {_when(decision)}.", *([decision.note] if decision.note.strip() else [])]
    if decision.thresholds is not None:
        asked = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in decision.thresholds.to_dict().items())
        texts.append(f"Thresholds at the time: {asked}.")
    rows = [(_when(one), one.choice, one.reviewer, one.note) for one in reversed(earlier)]
    return ReportSection(
        title="Decision", verdict=decision.choice, texts=texts, head=("before that", "decision", "reviewer", "note"),
        rows=rows,
    )  # fmt: skip


def _when(decision: Decision) -> str:
    return decision.decided.strftime("%Y-%m-%d %H:%M UTC")


def _checked(checks: Checklist, drawn: ReportFigure) -> ReportSection:
    rows = [
        (WORDS[check.state], check.title, check.asked, check.measured, "\n".join((check.evidence, *check.details)))
        for check in checks.checks
    ]
    return ReportSection(
        title="Checklist", verdict=checks.answer, figures=[drawn],
        head=("verdict", "claim", "asked", "measured", "evidence"), rows=rows,
    )  # fmt: skip


def _guarantee(outcome: RunResult) -> ReportSection:
    guarantee, mechanism = outcome.guarantee, outcome.config.mechanism
    lines = [claim(guarantee), guarantee.meaning, meaning(guarantee), f"Made by {mechanism.title}. {mechanism.summary}"]
    stages = [(charge.label, charge.primitive, loss(charge.budget)) for charge in outcome.charges]
    return ReportSection(
        title="Guarantee", verdict=guarantee.status, texts=[line for line in (*lines, *guarantee.caveats) if line],
        head=("stage", "noise", "loss per row"), rows=stages,
    )  # fmt: skip


def _budget(account: Account, drawn: ReportFigure) -> ReportSection:
    left, total = account.left, account.total
    rows = [
        (entry.created.strftime("%Y-%m-%d %H:%M"), entry.purpose, loss(entry.budget), entry.state, entry.reason)
        for entry in account.entries
    ]
    epsilon, delta = (format_amount(amount, up=False) for amount in (left.epsilon, left.delta))
    said = f"Total: {loss(total)}. Left: epsilon {epsilon}, delta {delta}."
    return ReportSection(
        title="Budget", texts=[said, f"Stated for {unit(account.rows_per_person)}."], figures=[drawn],
        head=("when (UTC)", "purpose", "loss", "state", "reason"), rows=rows,
    )  # fmt: skip


def _facts(schema: Schema) -> ReportSection:
    rows = [(column.name, column.kind, "yes" if column.public else "no", column.origin) for column in schema]
    said = "Every fact is declared public." if schema.is_public else "Some facts were read from the data: no guarantee."
    return ReportSection(
        title="Public facts", texts=[said, f"By whom: {declarer(schema)}."],
        head=("column", "kind", "declared public", "its facts come from"), rows=rows,
    )  # fmt: skip


def _quality(evaluation: Evaluation) -> ReportSection:
    rows = [(result.title, result.verdict, _value(result.headline.value)) for result in evaluation.culprits]
    return ReportSection(
        title="Quality", verdict=evaluation.verdict, texts=[evaluation.summary],
        head=("diagnostic", "verdict", "value"), rows=rows,
    )  # fmt: skip


def _diagnostic(result: Result, drawn: Sequence[ReportFigure]) -> ReportSection:
    kind = DIAGNOSTICS.get(result.key)
    direction = f"{result.scale.name}: {result.scale.better} is better; a good value is {result.scale.good}."
    texts = [*([kind.question] if kind else []), result.headline.reading, direction, *result.notes]
    return ReportSection(
        title=result.title, verdict=result.verdict, texts=[text for text in texts if text],
        head=("item", "value", "95% interval", "a fresh sample", "verdict"),
        rows=[_item(item) for item in (result.items or (result.headline,))[:MOST_ITEMS]], figures=drawn,
    )  # fmt: skip


def _item(item: Measure) -> tuple[str, ...]:
    interval = "" if item.low is None else f"{_value(item.low)} to {_value(item.high)}"
    return item.name, _value(item.value), interval, _value(item.reference), item.verdict


def _value(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
