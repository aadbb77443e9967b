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
from dpsynth_core.charts.runs import spending_chart
from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics import DIAGNOSTICS, Measure, Result
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.diagnostics.purposes import fitness_lines, overall
from dpsynth_core.diagnostics.wording import VERDICT_WORDS, measured, statement
from dpsynth_core.ledger.accounts import Account, Entry
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.checklist import Checklist
from dpsynth_core.review.decision import Decision
from dpsynth_core.review.wording import choice, claim, costs, declarer, loss, meaning, unit
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MARK = "For internal review, not for release."
MAX_ITEMS = 15
"""Items of a diagnostic that are listed, worst first."""
TONES = {
    **dict.fromkeys(("passed", "approve", "proven", VERDICT_WORDS["excellent"], VERDICT_WORDS["good"]), "good"),
    **dict.fromkeys(("to weigh", "asymptotic", "heuristic", "hold", "not looked at"), "fair"),
    **dict.fromkeys((VERDICT_WORDS["fair"], VERDICT_WORDS["unknown"]), "fair"),
    **dict.fromkeys(("failed", "void", "none", VERDICT_WORDS["poor"]), "bad"),
}
"""How a verdict is coloured; its word says the same."""


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    markup: Markup
    """Plotly's own; it writes names so that they cannot end the script they are in."""
    alt: str


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """One part of the report. Every text in it is escaped when the page is written."""

    title: str
    texts: Sequence[str] = ()
    verdict: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    code: str = ""
    figures: Sequence[ReportFigure] = ()


@dataclass(frozen=True, kw_only=True)
class ReviewSubject:
    """What the report is about, so that nobody takes it for another's. Internal: a file's name may tell something."""

    data_set: str
    """The name of the file or of the example."""
    fingerprint: str | None
    """Of the data set, under which the ledger has its account; None where there is no account."""
    release: str
    """SHA-256 of the release: rows, public facts, configuration."""
    bundle: str
    """SHA-256 of the archive as it would leave today, or why there is none."""


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
    subject: ReviewSubject | None = None,
) -> bytes:
    """The report as an HTML page; every section carries the mark that it is not for release.

    Args:
        original: The private rows.
        synthetic: The synthetic rows.
        evaluation: The diagnostics' results.
        outcome: The run behind the synthetic rows, if known.
        account: The data set's account, if there is one.
        decision: The reviewer's latest decision, if there is one.
        checks: The checklist behind it.
        earlier: Decisions before that one, oldest first.
        subject: Names and hashes of what was reviewed.
    """
    numbers = count(1)

    def draw(chart: Chart) -> ReportFigure:
        options = {"config": {"responsive": True, "displayModeBar": False}, "div_id": f"figure-{next(numbers)}"}
        text = chart.figure.to_html(full_html=False, include_plotlyjs=False, **options)
        return ReportFigure(markup=Markup(text), alt=chart.alt)  # noqa: S704  see ReportFigure

    sections = [
        *([_reviewed(subject, original, synthetic)] if subject else []),
        _decided(decision, earlier),
        *([_checked(checks, draw(claims_chart(checks.checks)))] if checks else []),
        *([_guarantee(outcome)] if outcome else []),
        *([_budget(account, draw(spending_chart(account)))] if account else []),
        _facts(original.schema),
        _quality(evaluation),
    ]
    for result in evaluation.results:
        charts = report_pictures(result, original, synthetic)
        sections.append(_diagnostic(result, [draw(chart) for chart in charts]))
    if outcome:
        sections.append(ReportSection(title="Configuration", code=outcome.config.to_json()))
    plotly = Markup(get_plotlyjs())  # noqa: S704  the library itself
    return _template().render(mark=MARK, plotly=plotly, sections=sections, tones=TONES).encode()


@cache
def _template() -> jinja2.Template:
    text = resources.files("dpsynth_core.review").joinpath("report.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return page.from_string(text)


def _reviewed(subject: ReviewSubject, original: PrivateTable, synthetic: pd.DataFrame) -> ReportSection:
    rows = [
        ("data set", subject.data_set),
        ("fingerprint of the data set", subject.fingerprint or "none: teaching mode keeps no account"),
        ("original", f"{original.rows_in_all:,} rows, {len(original.schema.names)} columns"),
        ("synthetic table", f"{len(synthetic):,} rows"),
        ("SHA-256 of the release", subject.release),
        ("SHA-256 of the release bundle, packed today", subject.bundle),
    ]
    if original.basis:
        rows.insert(3, ("what needs rows of the original", f"{original.basis}, drawn at random by position"))
    return ReportSection(title="What was reviewed", head=("what", "which"), rows=rows)


def _decided(decision: Decision | None, earlier: Sequence[Decision]) -> ReportSection:
    if decision is None:
        return ReportSection(title="Decision", texts=["No decision has been recorded."])
    texts = [f"{decision.reviewer}, {_when(decision)}.", *([decision.note] if decision.note.strip() else [])]
    if decision.people:
        texts.append(decision.people)
    if decision.publication is not None and (chosen := choice(decision.publication)):
        texts.append(chosen)
    if decision.thresholds is not None:
        asked = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in decision.thresholds.to_dict().items())
        texts.append(f"Thresholds at the time: {asked}.")
    if decision.bundle:
        texts.append(f"SHA-256 of the approved archive: {decision.bundle}.")
    head = ("before that", "decision", "reviewer", "note")
    rows = [(_when(one), one.choice, one.reviewer, one.note) for one in reversed(earlier)]
    return ReportSection(title="Decision", verdict=decision.choice, texts=texts, head=head, rows=rows)


def _when(decision: Decision) -> str:
    return decision.decided.strftime("%Y-%m-%d %H:%M UTC")


def _checked(checks: Checklist, figure: ReportFigure) -> ReportSection:
    head = ("verdict", "claim", "asked", "measured", "evidence")
    rows = [
        (WORDS[check.state], check.title, check.asked, check.measured, "\n".join((check.evidence, *check.details)))
        for check in checks.checks
    ]
    return ReportSection(title="Checklist", verdict=checks.answer, figures=[figure], head=head, rows=rows)


def _guarantee(outcome: RunResult) -> ReportSection:
    guarantee, mechanism = outcome.guarantee, outcome.config.mechanism
    made_by = f"Made by {mechanism.title}. {mechanism.summary}"
    texts = [text for text in (claim(guarantee), guarantee.meaning, meaning(guarantee), made_by) if text]
    head = ("stage", "noise", "loss per row")
    rows = [(charge.label, charge.primitive, loss(charge.budget)) for charge in outcome.charges]
    texts += (*costs(guarantee), *guarantee.caveats)
    return ReportSection(title="Guarantee", verdict=guarantee.status, texts=texts, head=head, rows=rows)


def _budget(account: Account, figure: ReportFigure) -> ReportSection:
    epsilon, delta = (format_amount(amount, up=False) for amount in (account.left.epsilon, account.left.delta))
    texts = [
        f"Total: {loss(account.total)}. Left: epsilon {epsilon}, delta {delta}.",
        f"Stated for {unit(account.rows_per_person)}.",
    ]
    head = ("when (UTC)", "by", "purpose", "loss", "state", "reason")
    rows = [
        (_minute(entry), str(entry.by), entry.purpose, loss(entry.budget), entry.state, entry.reason)
        for entry in account.entries
    ]
    return ReportSection(title="Budget", texts=texts, figures=[figure], head=head, rows=rows)


def _minute(entry: Entry) -> str:
    return entry.created.strftime("%Y-%m-%d %H:%M")


def _facts(schema: Schema) -> ReportSection:
    public = (
        "Every fact is declared public." if schema.is_public else "Some facts were read from the data: no guarantee."
    )
    head = ("column", "kind", "declared public", "source of its facts")
    rows = [(column.name, column.kind, "yes" if column.public else "no", column.origin) for column in schema]
    return ReportSection(title="Public facts", texts=[public, f"By whom: {declarer(schema)}."], head=head, rows=rows)


def _quality(evaluation: Evaluation) -> ReportSection:
    rows = [(result.title, VERDICT_WORDS[result.verdict], statement(result)) for result in evaluation.culprits]
    head = ("diagnostic", "verdict", "worst item")
    verdict = VERDICT_WORDS[evaluation.verdict]
    lines = fitness_lines(evaluation)
    texts = [evaluation.summary, overall(lines), *(line.text for line in lines)]
    return ReportSection(title="Quality", verdict=verdict, texts=texts, head=head, rows=rows)


def _diagnostic(result: Result, figures: Sequence[ReportFigure]) -> ReportSection:
    question = [DIAGNOSTICS[result.key].question] if result.key in DIAGNOSTICS else []
    direction = f"{result.scale.name}: {result.scale.better} is better; a good value is {result.scale.good}."
    said = f"{statement(result)}."
    texts = [text for text in (*question, said, result.headline.reading, direction, *result.notes) if text]
    head = ("item", "value", "95% interval", "a fresh sample", "verdict")
    rows = [_item(item) for item in (result.items or (result.headline,))[:MAX_ITEMS]]
    verdict = VERDICT_WORDS[result.verdict]
    return ReportSection(title=result.title, verdict=verdict, texts=texts, head=head, rows=rows, figures=figures)


def _item(item: Measure) -> tuple[str, ...]:
    interval = "" if item.low is None else f"{measured(item.low)} to {measured(item.high)}"
    return item.name, measured(item.value), interval, measured(item.reference), VERDICT_WORDS[item.verdict]
