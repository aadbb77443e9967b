"""What the Data page does, without a widget in sight: each action takes the session and changes it."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.declarations import DeclarationStore, DeclaredFacts
from dpsynth_core.ledger.fingerprint import fingerprint
from dpsynth_core.ledger.row_sketch import RowSketch, sketch_rows
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.runs.reading import file_names, read_file, sketch_file
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.suggest import suggest
from pages.shared.accounts import account_of, open_ledger, paid_estimates
from pages.shared.data.schema_rows import (
    from_rows,
    mark_public,
    merge_rows,
    to_rows,
    withdraw_estimates,
)
from pages.shared.room import ROOM
from pages.shared.session import Session
from pages.shared.table_work import DataSet, Mode, TableWork


def choose_mode(session: Session, mode: Mode) -> None:
    """Switch between teaching and release; a file uploaded for release never becomes free to look at."""
    if mode == session.mode:
        return
    before = next((work for work in session.earlier if work.mode == mode), None)
    if before is not None:
        go_back(session, before)
        return
    work = session.current
    if work is None or work.data.server is not None or (session.mode == "release" and work.data.uploaded):
        session.use(None)
        session.mode = mode
        return
    # Before anything changes: this may fail, and release mode without an account number must not exist.
    names = (None, None) if mode == "teaching" else _account_names(work.data.table, work.data.content)
    session.use(work.in_other_mode(*names))
    session.mode = mode
    _remember_rows(session)
    suit_account(session)
    # In teaching mode nobody paid for them.
    paid_estimates(session.work)
    replace_draft(session, withdraw_estimates(work.draft) if mode == "release" else work.draft)
    adopt_account_terms(session)


def go_back(session: Session, work: TableWork) -> None:
    """Go on with a table that was in use before, in its own mode, with everything that belongs to it."""
    session.use(work)
    session.mode = work.mode
    session.source = "server" if work.data.server is not None else "file" if work.data.uploaded else "example"
    if work.schema is not None:
        session.settings.suit(work.schema)
    suit_account(session)


def load_example(session: Session, key: str, rows: int | None = None) -> None:
    """Use an example, with its public schema."""
    example = EXAMPLES[key]
    table = example.load(rows)
    data = DataSet(title=example.title, table=table, uploaded=False, example=key)
    if session.mode == "release":
        account, version = _account_names(table, None)
        data = replace(data, fingerprint=account, version=version)
    begin_table(session, data, example.schema)
    session.source, session.example = "example", key


def load_upload(session: Session, name: str, content: bytes, layout: FileLayout | None = None) -> None:
    """Use a person's file, with a suggested schema in which nothing is public yet; without a layout it is guessed."""
    release = session.mode == "release"
    read = read_file(content, layout, key=Settings.from_environment().installation_key() if release else None)
    data = DataSet(title=name, table=read.table, uploaded=True, content=content)
    if release:
        account, version = _located(read.names)
        data = replace(data, fingerprint=account, version=version)
    begin_table(session, data, replace(read.suggestion.schema, file=None))
    session.work.left_out, session.work.words = read.suggestion.dropped, read.suggestion.words
    session.source = "file"
    use_declared_facts(session)


def declared_facts(session: Session) -> DeclaredFacts | None:
    """What a steward has declared about the table in use; None where nobody has, or nobody signs in."""
    name = session.work.data.fingerprint
    if not session.person.signed_in or name is None or account_of(session) is None:
        return None
    return DeclarationStore(open_ledger()).facts(name)


def use_declared_facts(session: Session) -> None:
    """Take over what a steward has declared, if anybody has."""
    known = declared_facts(session)
    if known is not None:
        load_schema(session, replace(known.schema, declared_by=known.by.name).to_json().encode())


def declare_facts(session: Session) -> None:
    """Put the facts on record, under the name of whoever is signed in."""
    work = session.work
    if work.schema is None or work.data.fingerprint is None:
        raise DPSynthError("The public facts are not complete. Correct them first.")
    DeclarationStore(open_ledger()).declare_facts(work.data.fingerprint, work.schema)


def change_layout(session: Session, layout: FileLayout) -> None:
    """Read the file again by another layout; declared columns that it still has stay as they are.

    The account stays the same, because it belongs to the bytes. The new layout is a person's statement only if the old
    one was.
    """
    work = session.work
    if work.data.content is None:
        raise DPSynthError("This table was not read from a file, so it has no layout.")
    if work.has_runs:
        raise DPSynthError(
            "There are runs on this table as it is read now. To read the file in another way, upload it again."
        )
    read = read_file(work.data.content, layout)
    suggested_before = to_rows(suggest(work.data.table).schema, work.data.table.columns)
    suggested_now = to_rows(read.suggestion.schema, read.table.columns)
    work.read_again(read.table)
    work.left_out, work.words = read.suggestion.dropped, read.suggestion.words
    session.tradeoffs.forget_table()
    replace_draft(session, merge_rows(work.draft, suggested_before, suggested_now))


def declare_layout(session: Session, *, public: bool) -> None:
    """State that the layout of the file is public knowledge, or withdraw that."""
    session.work.layout_public = public
    edit_draft(session, session.work.draft)


def _account_names(table: pd.DataFrame, content: bytes | None) -> tuple[str, str | None]:
    """Under which the ledger finds the table, or would."""
    key = Settings.from_environment().installation_key()
    return _located((fingerprint(table, key),) if content is None else file_names(content, key))


def _located(names: tuple[str, ...]) -> tuple[str, str | None]:
    account, own = open_ledger().locate(names)
    return account, None if own == account else own


def begin_table(session: Session, data: DataSet, schema: Schema, sketch: RowSketch | None = None) -> None:
    """Use a table with these facts, and the account's terms if it has one.

    Args:
        session: The visitor's.
        data: The table.
        schema: What is known of its columns.
        sketch: By which other versions of it are recognised; None where it can be made from the rows at hand.
    """
    ROOM.check(data.nbytes)
    account = None if data.fingerprint is None else open_ledger().account(data.fingerprint)
    rows = to_rows(schema, data.table.columns)
    unit = (account or schema).rows_per_person
    session.use(TableWork(data=data, draft=rows, rows_per_person=unit, sketch=sketch))
    session.work.layout_public = _layout_declared(schema)
    _remember_rows(session)
    paid_estimates(session.work)
    suit_account(session)
    _adopt(session, schema)


def _adopt(session: Session, schema: Schema) -> None:
    """Use a schema, and the name under it for as long as its facts stay as they are."""
    work = session.work
    # Also where it names nobody: the earlier name declared other facts.
    work.declared_by, work.signed, work.signature_lapsed = schema.declared_by, None, False
    replace_draft(session, to_rows(schema, work.data.table.columns))
    work.signed = work.schema if schema.declared_by else None


def replace_draft(session: Session, rows: pd.DataFrame) -> None:
    """Change the draft other than by typing; the editor starts afresh from it."""
    session.draft_version += 1
    edit_draft(session, rows)


def edit_draft(session: Session, rows: pd.DataFrame) -> None:
    """Take over what was typed and see whether it makes a schema."""
    work = session.work
    work.draft = rows
    work.schema, work.problems = from_rows(
        rows,
        file=work.declared_layout,
        rows_per_person=work.rows_per_person,
        declared_by=work.declared_by,
    )
    if work.signed is not None and work.schema is not None and work.schema != work.signed:
        work.declared_by, work.signed, work.signature_lapsed = "", None, True
        work.schema = work.schema.unsigned()
    if work.schema is not None:
        session.settings.suit(work.schema)


def declare_all_public(session: Session, *, public: bool) -> None:
    """Declare the layout of the file and the facts of every column public knowledge, or none of them."""
    session.work.layout_public = public
    replace_draft(session, mark_public(session.work.draft, public=public))


def sign(session: Session, declared_by: str) -> None:
    """Say who states that the facts are public; nothing else changes."""
    work = session.work
    work.declared_by, work.signed, work.signature_lapsed = declared_by.strip(), None, False
    edit_draft(session, work.draft)


def load_schema(session: Session, text: bytes) -> None:
    """Use a saved schema for the table at hand; if it declares a layout, the file is read by it."""
    work, schema = session.work, Schema.from_json(text)
    table = _read_by(work, schema.file)
    known = {str(name) for name in table.columns}
    unknown = [name for name in schema.names if name not in known]
    if unknown:
        raise DPSynthError(
            f"The schema has a column {unknown[0]!r} that this table does not have. "
            "Check that the schema belongs to this table."
        )
    if session.mode == "teaching" or account_of(session) is None:
        work.rows_per_person = schema.rows_per_person
    if table is not work.data.table:
        work.read_again(table)
        session.tradeoffs.forget_table()
    work.layout_public = _layout_declared(schema)
    _adopt(session, schema)


def _layout_declared(schema: Schema) -> bool:
    """A layout beside columns that nobody calls public was only suggested."""
    return schema.file is not None and any(column.public for column in schema)


def _read_by(work: TableWork, layout: FileLayout | None) -> pd.DataFrame:
    """The table as read by a declared layout; as it is where that changes nothing."""
    data = work.data
    known = data.layout
    if data.server is not None and layout is not None and known is not None and layout.to_dict() != known.to_dict():
        raise DPSynthError(
            "The schema declares another layout than the one that whoever runs this server has declared for the table."
        )
    if data.content is None or layout is None or data.layout == layout:
        return data.table
    if work.has_runs:
        raise DPSynthError(
            "The schema declares another layout of the file, and there are runs on the table as it is read now. Upload "
            "the file again, then load the schema."
        )
    return read_file(data.content, layout).table


def adopt_account_terms(session: Session) -> Account | None:
    """The account; its unit of protection is fixed, so it replaces whatever the session says."""
    account = account_of(session)
    if account is not None and account.rows_per_person != session.work.rows_per_person:
        session.work.rows_per_person = account.rows_per_person
        edit_draft(session, session.work.draft)
    return account


def open_account(session: Session, epsilon: Amount, delta: Amount, *, apart: bool = False) -> Account:
    """Fix the total budget of the data set, once and for all.

    Args:
        session: Whose table it is.
        epsilon: Of the total.
        delta: Of the total.
        apart: Whether somebody states that these are other people than those in tables that share rows with it.

    Raises:
        NearAccountError: Most of its rows have an account already, and nobody states that.
    """
    work = session.work
    assert work.data.fingerprint is not None  # noqa: S101  only offered in release mode
    account = DeclarationStore(open_ledger()).open_account(
        work.data.fingerprint,
        lambda: row_sketch(work),
        total=Budget.of(epsilon, delta),
        label=work.data.title[:200],
        rows_per_person=work.rows_per_person,
        apart=apart,
    )
    suit_account(session)
    return account


def _remember_rows(session: Session) -> None:
    """An account from before sketches were kept gets that of its table when the table is seen again."""
    account, work = account_of(session), session.work
    if account is not None:
        own = work.data.version or account.fingerprint
        DeclarationStore(open_ledger()).remember_rows(account.fingerprint, own, lambda: row_sketch(work))


def row_sketch(work: TableWork) -> RowSketch:
    """By which other versions of the table are recognised; made once."""
    if work.sketch is None:
        assert work.data.complete  # noqa: S101  that of a longer table was made where it was opened
        key, data = Settings.from_environment().installation_key(), work.data
        work.sketch = sketch_rows(data.table, key) if data.content is None else sketch_file(data.content, key)
    return work.sketch


def suit_account(session: Session) -> None:
    """Propose an epsilon for a run that does not use up the account, or the total that is proposed for it."""
    account = account_of(session)
    if account is not None:
        session.settings.suit_account(account.left.epsilon)
    else:
        to_open = session.mode == "release" and session.current is not None
        session.settings.suit_account(session.work.proposed_total.epsilon if to_open else None)
