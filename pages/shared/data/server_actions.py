"""What the Data page does with tables on this server: list them, open one in a worker, and use it."""

from __future__ import annotations

from dataclasses import replace

from dpsynth_core.errors import DPSynthError, RoleError
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.sources import SourceTable, TableSource, list_file, sources_for
from dpsynth_core.runs.opening import OpenedSource, inspect_source
from pages.shared.accounts import open_ledger
from pages.shared.data.actions import begin_table, use_declared_facts
from pages.shared.session import Session
from pages.shared.table_work import DataSet
from pages.shared.tasks import Task

OPENING = "opening"


def server_tables(session: Session) -> tuple[TableSource, ...]:
    """Those that the visitor may use in this mode, as the list is now; raises where it cannot be understood."""
    return sources_for(session.person, teaching=session.mode == "teaching")


def start_opening(session: Session, name: str) -> Task:
    """Count a table's rows, draw those that are shown and find its account, in a worker. Nothing is charged."""
    file = list_file()
    if file is None:
        raise DPSynthError("This server offers no tables of its own.")
    teaching = session.mode == "teaching"
    asked = SourceTable(name=name, by=session.person, file=file, teaching=teaching)
    asked.source()  # refused before a worker is taken
    session.opened = None

    def store(opened: OpenedSource) -> None:
        session.opened = opened

    settings = None if teaching else Settings.from_environment()
    return session.opening.start(
        OPENING, "Opening the table", inspect_source, asked, settings, about=asked, store=store
    )


def use_opened(session: Session) -> bool:
    """Go on with the table that a worker has opened, if there is one; with what is declared about it."""
    opened, session.opened = session.opened, None
    if opened is None or opened.table.teaching != (session.mode == "teaching"):
        return False
    table = replace(opened.table, by=session.person)
    table.check()
    data = DataSet(title=table.name, table=opened.sample, uploaded=False, server=table)
    if opened.names:
        account, own = open_ledger().locate(opened.names)
        data = replace(data, fingerprint=account, version=None if own == account else own)
    elif not table.teaching:
        raise DPSynthError("The table's account was not looked up. Open it again.")
    declared = opened.declared
    begin_table(session, data, declared or replace(opened.suggestion.schema, file=None), opened.sketch)
    session.work.left_out = opened.suggestion.dropped if declared is None else {}
    session.work.words = opened.suggestion.words if declared is None else ()
    session.source, session.server_table = "server", table.name
    use_declared_facts(session)
    return True


def check_offered(session: Session) -> None:
    """Raise if this server does not offer the visitor the table in use any more, and let go of it."""
    work = session.current
    if work is None or work.data.server is None:
        return
    try:
        replace(work.data.server, by=session.person).source()
    except RoleError:
        session.use(None)
        session.earlier = [each for each in session.earlier if each is not work]
        raise
