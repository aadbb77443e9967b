"""Everything that belongs to the table in use, and everything learned about each of its runs."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import pandas as pd

from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics.causes import Causes
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.comparison_power import ComparisonPower
from dpsynth_core.inference.discovery_risk import DiscoveryRisk
from dpsynth_core.inference.question import Question
from dpsynth_core.inference.question_risk import QuestionRisk
from dpsynth_core.ledger.declarations import RowOverlap
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.row_sketch import RowSketch
from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.privacy.budget import Budget, format_amount, sequential
from dpsynth_core.review import Bundle, Decision, Evidence, Publication, release_digest
from dpsynth_core.runs.configuration import RunConfig, RunResult
from dpsynth_core.runs.forecast import Forecast, Scenario
from dpsynth_core.runs.originals import SampledSource
from dpsynth_core.runs.planning import PlanRow
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.row_sample import RowSample, sample_sentence
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.false_discovery import FalseDiscoveryReplay
from pages.shared.asked import Asked
from pages.shared.tasks import RUN, Tasks

Mode: TypeAlias = Literal["teaching", "release"]


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """The table in use."""

    title: str
    """The example's title, the file's name or that of a table on this server. Untrusted text."""
    table: pd.DataFrame
    """The rows at hand: all of them, or of a long table on this server a random sample. Whatever is charged for or
    counts rows needs ``original``."""
    uploaded: bool
    """Whether it came from a person's file."""
    server: SourceTable | None = None
    """The table on this server that it is; None where all rows are here."""
    example: str = ""
    """The example's key; empty for a file."""
    fingerprint: str | None = None
    """Its account in the ledger; None in teaching mode, where nothing is charged."""
    version: str | None = None
    """Its own name where it shares the account of another table; None where it has the account's."""
    content: bytes | None = field(default=None, repr=False)
    """The file, to be read again if its layout is corrected; None where the table came from no file. Private."""

    @property
    def n(self) -> int:
        """Rows of the table, here or not."""
        return len(self.table) if self.server is None else self.server.n

    @property
    def complete(self) -> bool:
        """Whether every row is at hand."""
        return len(self.table) == self.n

    @property
    def basis(self) -> str:
        """On how many of how many rows what needs rows at hand is computed; empty where that is all of them."""
        return "" if self.complete else sample_sentence(len(self.table), self.n)

    def original(self, by: Person) -> pd.DataFrame | SourceTable:
        """All rows, or what a worker needs to open them again for somebody."""
        return self.table if self.server is None else replace(self.server, by=by)

    def sampled(self, by: Person) -> pd.DataFrame | SampledSource:
        """Rows to compare one by one, with a way to count all of them."""
        if self.server is None:
            return self.table
        return SampledSource(table=replace(self.server, by=by), sample=self.table)

    def encoded(self, schema: Schema) -> PrivateTable:
        """The rows at hand, with these facts."""
        return PrivateTable(self.table, schema) if self.complete else RowSample(self.table, schema, of=self.n)

    @cached_property
    def nbytes(self) -> int:
        """Memory that it takes, about."""
        return int(self.table.memory_usage(deep=True).sum()) + len(self.content or b"")

    @property
    def layout(self) -> FileLayout | None:
        """How the file was read; None where the table came from no file."""
        return layout_of(self.table.attrs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Preview:
    """What a mechanism makes of simulated rows."""

    config: RunConfig
    simulated: pd.DataFrame
    synthetic: pd.DataFrame


@dataclass(frozen=True, kw_only=True, eq=False)
class ForecastRecord:
    """Errors to expect, from public facts."""

    scenario: Scenario
    """The release that it is about."""
    found: Mapping[str, Forecast]
    """As it is and with changes, by the names in ``dpsynth_core.runs.forecast``."""
    delta: Fraction
    """The delta that could be granted."""


@dataclass(kw_only=True, eq=False)
class RunRecord:
    """One run on the table, and everything learned about it since. Private: it never leaves the session."""

    number: int
    """Its number in the history, from 1."""
    result: RunResult
    charge: int | None = None
    """The ledger's number of its charge; None in teaching mode."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))
    """In UTC."""
    store_problem: str = ""
    """Why it is not in the store beside the ledger, although it was paid for; empty where it is."""
    evaluations: dict[tuple[str, ...], Evaluation] = field(default_factory=dict)
    """By the columns that were compared with the original."""
    pictures: dict[tuple[str, ...], tuple[tuple[object, ...], Sequence[Chart]]] = field(default_factory=dict)
    """Charts of Diagnostics with what they show: drawn once, not whenever the page is. Private."""
    causes: dict[tuple[str, ...], Causes] = field(default_factory=dict)
    """Why a column or pair differs, by its names. Private."""
    risks: dict[tuple[str, str, tuple[Any, ...] | None], DiscoveryRisk] = field(default_factory=dict)
    """Of a false discovery, by value column, group column and the two levels (None: all pairs). Releasable."""
    own_risks: dict[tuple[str, str, tuple[Any, ...] | None], DiscoveryRisk] = field(default_factory=dict)
    """The same from the original's own groups: private."""
    questions: dict[Question, QuestionRisk] = field(default_factory=dict)
    """How far other ordinary tests on it can be trusted."""
    evidence: Evidence | None = None
    """Gathered for a review."""
    bundle: tuple[Publication, tuple[PaidComparison, ...], Bundle] | None = None
    """As it was last packed, with the words and the private tests in it."""
    published_tests: tuple[PaidComparison, ...] = ()
    """Private tests that are to be published with it."""
    decisions: list[Decision] = field(default_factory=list)
    """In teaching mode, where there is no ledger: oldest first."""
    _digest: tuple[tuple[PaidComparison, ...], str] | None = None

    @property
    def config(self) -> RunConfig:
        """What was asked for."""
        return self.result.config

    @cached_property
    def nbytes(self) -> int:
        """Memory that its tables take, about."""
        return sum(int(table.memory_usage(deep=True).sum()) for table in self.result.tables)

    @property
    def outcome(self) -> RunResult:
        """What would be published: the tables, and the private tests that go with them, in one statement."""
        return self.result.with_comparisons(self.published_tests) if self.published_tests else self.result

    @property
    def digest(self) -> str:
        """SHA-256 of what would be published."""
        if self._digest is None or self._digest[0] != self.published_tests:
            self._digest = self.published_tests, release_digest(self.outcome)
        return self._digest[1]

    @property
    def name(self) -> str:
        """What it is called on screen."""
        return f"{self.number}: {self.config.mechanism.title}, ε {format_amount(self.config.each.epsilon)}"

    @property
    def dated_name(self) -> str:
        """The same with the time it was made."""
        return f"{self.name}, {self.made:%Y-%m-%d %H:%M} UTC"


@dataclass(kw_only=True)
class ComparisonForm:
    """What the form for a private test of two groups holds."""

    value: str = ""
    group: str = ""
    epsilon: str = ""
    """As typed; empty: that of the settings or of the release."""
    delta: str = "1e-6"
    effect: int = 70
    """Of 100 random pairs, those that have the larger value in the first group."""
    share: int = 50
    """Percent of rows in the first group."""


@dataclass(kw_only=True, eq=False)
class TableWork:
    """Everything that belongs to the table in use; another table gets a new one."""

    data: DataSet
    draft: pd.DataFrame
    """The schema as the visitor is editing it, one row per column of the table."""
    editor_base: pd.DataFrame | None = None
    """The rows that the editor on screen was given."""
    layout_public: bool = False
    """Whether somebody has stated that the layout of the file is public knowledge."""
    rows_per_person: int = 1
    declared_by: str = ""
    """Who states that the facts are public, in their own words."""
    signed: Schema | None = None
    """The facts that this name came with in a file; None where it was typed here, by whoever edits them."""
    signature_lapsed: bool = False
    """Whether such a name was dropped because the facts were changed."""
    schema: Schema | None = None
    """The draft as a valid schema; None while something is wrong with it."""
    problems: list[DPSynthError] = field(default_factory=list)
    """What is wrong with the draft."""
    estimate_problem: DPSynthError | None = None
    """Why the last private estimate declared nothing."""
    estimate_note: tuple[str, ...] = ()
    """What the last private estimate found and what it may have missed. Releasable."""
    estimates: tuple[PaidEstimate, ...] = ()
    """Private estimates on this table: in release mode those that its account has paid for, as last read; in teaching
    mode those made here."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that the suggestion leaves out, each with the reason."""
    words: tuple[str, ...] = ()
    """Columns that are suggested as numbers although some of their cells hold words."""
    preview: Preview | None = None
    forecast: ForecastRecord | None = None
    forecasts: dict[Scenario, Forecast] = field(default_factory=dict)
    """Every forecast made for this table, so that none is made twice."""
    unforeseen: set[Scenario] = field(default_factory=set)
    """Releases that a mechanism refused to simulate."""
    plan_rows: tuple[tuple[Schema, int, Fraction], tuple[PlanRow, ...]] | None = None
    """The grid of plans, with the facts that it is about."""
    proposed_total: Budget = field(default_factory=lambda: Budget.of(1, "1e-6"))
    """What the form for the account begins with."""
    rivals: tuple[Mapping[str, Scenario], Mapping[str, Forecast]] | None = None
    """Forecasts of two mechanisms on the same simulated tables, by their keys."""
    skip_check: ForecastRecord | None = None
    """The forecast that was made before skipping ahead."""
    skipping: bool = False
    """Whether the visitor asked to skip ahead and waits for that forecast."""
    asked: Asked | None = None
    """What the visitor asked for and has not confirmed yet."""
    advice: ForecastRecord | None = None
    """What changes would do for a release that turned out to be far from the original."""
    compared_with_original: bool = False
    """Whether a synthetic table was shown beside the original."""
    runs: list[RunRecord] = field(default_factory=list)
    """Finished runs, oldest first."""
    compared: list[int] = field(default_factory=list)
    """Numbers of the runs that are being compared; a new run takes their place."""
    shown: int | None = None
    """Number of the run that is being looked at or reviewed; None: the newest."""
    columns: tuple[str, ...] = ()
    """Columns that are being compared with the original; none means all."""
    purposes: tuple[str, ...] = ()
    """What the table is for, by the names in ``dpsynth_core.diagnostics.purposes``; none means anything. Public."""
    target: str = ""
    """The column that a model is to explain; empty where nobody has said. Public."""
    label: str = ""
    """The column that classifiers are to predict; empty where nobody has said. Public."""
    unopened: dict[int, str] = field(default_factory=dict)
    """Stored releases of this data set that are not among the runs, by charge: why not, in words."""
    replay: FalseDiscoveryReplay | None = None
    """The last false discovery drawn from nothing."""
    comparing: ComparisonForm = field(default_factory=ComparisonForm)
    comparisons: tuple[PaidComparison, ...] = ()
    """Private tests of two groups in teaching mode; in release mode the account has them."""
    comparison_problem: DPSynthError | None = None
    """Why the last one gave no result."""
    powers: dict[object, ComparisonPower] = field(default_factory=dict)
    """What such tests would find, by what was asked."""
    publication: Publication = field(default_factory=Publication)
    """What the reviewer says about the table when publishing it."""
    sketch: RowSketch | None = None
    """Keyed hashes of some of its rows, by which tables that share most of them are recognised. Private."""
    near: tuple[RowOverlap, ...] = ()
    """Accounts of such tables, while nobody has said whether they are about the same people."""
    look_recorded: bool = False
    """Whether the data set's record says that private diagnostics of it were seen."""
    public_review: bool = False
    """Whether the review does without private evidence."""
    ticket: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Of the next decision: handed in twice, it is recorded once."""
    tasks: Tasks = field(default_factory=Tasks)
    _private: PrivateTable | None = None

    @property
    def n(self) -> int:
        """Rows of the table."""
        return self.data.n

    @property
    def private(self) -> PrivateTable | None:
        """The encoded rows at hand, made anew only when the schema has changed; None while there is no valid schema."""
        if self.schema is None:
            return None
        if self._private is None or self._private.schema != self.schema:
            self._private = self.data.encoded(self.schema)
        return self._private

    @property
    def has_runs(self) -> bool:
        """Whether a run on this table has finished or is under way."""
        return bool(self.runs) or any(task.active or task.uncollected for task in self.tasks)

    @property
    def paid(self) -> bool:
        """Whether epsilon was spent on something that only this session holds, or that is still being made."""
        return any(run.store_problem for run in self.runs) or any(
            task.paid and (task.active or task.uncollected) for task in self.tasks
        )

    @property
    def begun(self) -> bool:
        """Whether there is work on this table that somebody would miss: runs, or the facts of a private file."""
        run = self.tasks.get(RUN)
        at_work = run is not None and (run.active or run.uncollected)
        return bool(self.runs) or at_work or (not self.data.example and self.data.fingerprint is not None)

    @property
    def nbytes(self) -> int:
        """Memory that the table, its codes and its runs take, about."""
        codes = 0 if self._private is None else 8 * self._private.n * len(self._private.schema.names)
        return self.data.nbytes + codes + sum(run.nbytes for run in self.runs)

    @property
    def mode(self) -> Mode:
        """A table with an account is private; one without is public or simulated."""
        return "teaching" if self.data.fingerprint is None else "release"

    @property
    def declared_layout(self) -> FileLayout | None:
        """The layout of the file, where somebody has declared it: that of a text on this server always is."""
        layout = self.data.layout
        fixed = self.data.server is not None and layout is not None and layout.format == "text"
        return layout if self.layout_public or fixed else None

    def in_other_mode(self, fingerprint: str | None = None, version: str | None = None) -> TableWork:
        """The same table with the facts declared so far, and nothing that was made from it.

        Args:
            fingerprint: Of its account; None in teaching mode.
            version: Its own name, where the account is another table's.
        """
        return TableWork(
            data=replace(self.data, fingerprint=fingerprint, version=version),
            draft=self.draft,
            layout_public=self.layout_public,
            rows_per_person=self.rows_per_person,
            declared_by=self.declared_by,
            signed=self.signed,
            left_out=self.left_out,
        )

    def read_again(self, table: pd.DataFrame) -> None:
        """Go on with the same file, read in another way."""
        self.data, self.preview, self._private = replace(self.data, table=table), None, None

    def add_run(self, result: RunResult, charge: int | None = None, **more: Any) -> RunRecord:
        """Take a finished run into the history, once; it is what every page shows next."""
        for run in self.runs:
            if charge is not None and run.charge == charge:
                return run  # it came from the store before its worker had reported
        self.runs.append(RunRecord(number=len(self.runs) + 1, result=result, charge=charge, **more))
        self.shown, self.compared = None, [len(self.runs)]
        return self.runs[-1]

    def run(self, at: int) -> RunRecord:
        """A run by its number."""
        return self.runs[at - 1]

    @property
    def spent(self) -> Budget:
        """What all runs cost together, with the private estimates behind them: each of those is paid for once."""
        used: Counter[PaidEstimate] = Counter()
        for run in self.runs:
            used |= Counter(run.result.estimates)
        estimates = [each.guarantee.budget for each in used.elements() if each.guarantee.budget is not None]
        return sequential([*(run.config.total for run in self.runs), *estimates])

    @property
    def examined(self) -> bool:
        """Whether anybody has looked at private diagnostics of a run here."""
        looked = any(run.evaluations or run.evidence is not None for run in self.runs)
        return self.compared_with_original or looked

    def leave(self) -> None:
        """Cancel what was not paid for; a run that was paid for goes on, and its result is stored."""
        self.tasks.leave()
