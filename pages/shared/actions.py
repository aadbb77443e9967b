"""What the Data page does, without a widget in sight: each action takes the session and changes it."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.budget import Amount, Budget
from dpsynth_core.column import Column
from dpsynth_core.errors import DPSynthError
from dpsynth_core.fingerprint import fingerprint
from dpsynth_core.intake.estimate import discover_categories, estimate_bounds
from dpsynth_core.intake.examples import EXAMPLES
from dpsynth_core.intake.readers import read_table
from dpsynth_core.intake.suggest import suggest
from dpsynth_core.ledger import Account, Ledger, spend
from dpsynth_core.noise import SecureNoise
from dpsynth_core.schema import Schema
from dpsynth_core.settings import Settings
from pages.shared.schema_table import from_rows, mark_public, to_rows
from pages.shared.session import DataSet, Mode, Session


def open_ledger() -> Ledger:
    """This installation's ledger."""
    settings = Settings.from_environment()
    return Ledger(settings.ledger_url, key=settings.installation_key())


def choose_mode(session: Session, mode: Mode) -> None:
    """Switch between teaching and release; a file uploaded for release never becomes free to look at."""
    if mode == session.mode:
        return
    if session.mode == "release" and session.data is not None and session.data.uploaded:
        session.forget_data()
    session.mode = mode
    if session.data is not None:
        session.data = _data_set(session, session.data.title, session.data.table, uploaded=session.data.uploaded)


def load_example(session: Session, key: str, rows: int | None = None) -> None:
    """Use an example, with its public schema."""
    example = EXAMPLES[key]
    table = example.load(rows)
    session.forget_data()
    session.data = _data_set(session, example.title, table, uploaded=False)
    _start_draft(session, example.schema)


def load_upload(session: Session, name: str, content: bytes) -> None:
    """Use a person's file, with a suggested schema in which nothing is public yet."""
    table = read_table(content)
    suggestion = suggest(table)
    session.forget_data()
    session.data = _data_set(session, name, table, uploaded=True)
    _start_draft(session, suggestion.schema)


def _data_set(session: Session, title: str, table: pd.DataFrame, *, uploaded: bool) -> DataSet:
    account = None
    if session.mode == "release":
        account = fingerprint(table, Settings.from_environment().installation_key())
    return DataSet(title=title, table=table, uploaded=uploaded, fingerprint=account)


def _start_draft(session: Session, schema: Schema) -> None:
    assert session.data is not None  # noqa: S101  called right after it is set
    session.rows_per_person = schema.rows_per_person
    replace_draft(session, to_rows(schema, session.data.table.columns))


def replace_draft(session: Session, rows: pd.DataFrame) -> None:
    """Change the draft other than by typing; the editor starts afresh from it."""
    session.draft_version += 1
    edit_draft(session, rows)


def edit_draft(session: Session, rows: pd.DataFrame) -> None:
    """Take over what was typed and see whether it makes a schema."""
    assert session.data is not None  # noqa: S101  there is no editor without a table
    table = session.data.table
    numeric = {str(name) for name in table.columns if table[name].dtype.kind in "iuf"}
    session.draft = rows
    session.schema, session.problems = from_rows(rows, numeric_labels=numeric, rows_per_person=session.rows_per_person)


def declare_all_public(session: Session, *, public: bool) -> None:
    """The bulk action."""
    if session.draft is not None:
        replace_draft(session, mark_public(session.draft, public=public))


def load_schema(session: Session, text: bytes) -> None:
    """Use a saved schema for the table at hand."""
    assert session.data is not None  # noqa: S101
    schema = Schema.from_json(text)
    known = {str(name) for name in session.data.table.columns}
    unknown = [name for name in schema.names if name not in known]
    if unknown:
        raise DPSynthError(
            f"The schema has a column {unknown[0]!r} that this table does not have. "
            "Check that the schema belongs to this table."
        )
    if session.mode == "teaching" or account_of(session) is None:
        session.rows_per_person = schema.rows_per_person
    replace_draft(session, to_rows(schema, session.data.table.columns))


def account_of(session: Session, ledger: Ledger | None = None) -> Account | None:
    """The data set's account; None in teaching mode or before one is opened."""
    if session.data is None or session.data.fingerprint is None:
        return None
    return (ledger or open_ledger()).account(session.data.fingerprint)


def open_account(session: Session, epsilon: Amount, delta: Amount) -> Account:
    """Fix the total budget of the data set, once and for all."""
    assert session.data is not None  # noqa: S101
    assert session.data.fingerprint is not None  # noqa: S101  only offered in release mode
    return open_ledger().open_account(
        session.data.fingerprint,
        total=Budget.of(epsilon, delta),
        label=session.data.title[:200],
        rows_per_person=session.rows_per_person,
    )


def estimate(session: Session, name: str, budget: Budget, *, run_id: str) -> str:
    """Estimate a column's range (pure epsilon) or its categories (with delta) privately, and declare the result.

    In release mode the account is charged before the result is visible; the same ``run_id`` is charged once.
    """
    assert session.data is not None  # noqa: S101
    assert session.schema is not None  # noqa: S101
    noise = SecureNoise(budget)
    values, unit = session.data.table[name], session.rows_per_person
    column = session.schema[name]

    def run() -> Column:
        if column.is_numeric:
            found = estimate_bounds(values, epsilon=budget.epsilon, noise=noise, rows_per_person=unit)
            return _with_range(column, found.lower, found.upper)
        labels = discover_categories(
            values, epsilon=budget.epsilon, delta=budget.delta, noise=noise, rows_per_person=unit
        )
        return Column.from_dict(
            {**column.to_dict(), "categories": list(labels.categories), "public": True, "origin": "estimated privately"}
        )

    if session.data.fingerprint is None:
        declared = run()
    else:
        declared = spend(
            open_ledger(), session.data.fingerprint, budget,
            purpose="Estimate a column's range" if column.is_numeric else "Discover a column's categories",
            run=run, drawn=lambda: bool(noise.charges), run_id=run_id,
        )  # fmt: skip
    replace_draft(session, to_rows(session.schema.with_column(declared), session.data.table.columns))
    return declared.name


def _with_range(column: Column, lower: float, upper: float) -> Column:
    facts = {**column.to_dict(), "lower": lower, "upper": upper, "public": True, "origin": "estimated privately"}
    if column.kind == "integer":
        facts |= {"lower": int(lower // 1), "upper": int(-(-upper // 1))}
    return Column.from_dict(facts)
