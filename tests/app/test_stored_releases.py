"""What was paid for is never lost: not with a mode, a table, a browser or a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth_core.ledger.settings import Settings
from dpsynth_core.runs.jobs import Job
from dpsynth_core.runs.stored_run import StoreOrder, execute_and_store
from pages.shared.accounts import account_of, open_ledger, open_stored_releases
from pages.shared.data.actions import (
    choose_mode,
    declare_all_public,
    go_back,
    load_example,
    load_upload,
    open_account,
)
from pages.shared.release.actions import approved_archive, bundle_of, current_approval, history, record
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from tests.tables.stepping import Stepping
from tests.waiting.jobs import finish
from tests.waiting.pages import click, csv_of, data_page, elements, page, session_of, settled, texts


def released(*, epsilon: str = "1") -> Session:
    """A private table with an account, in release mode."""
    session = Session(mode="release")
    load_upload(session, "private.csv", csv_of("age", "weight"))
    declare_all_public(session, public=True)
    if account_of(session) is None:
        open_account(session, "3", "1e-6")
    session.settings.epsilon = epsilon
    return session


def paid(session: Session) -> Session:
    """What a worker does with a paid run, without the worker."""
    work = session.work
    assert session.schema is not None
    config = session.settings.config(session.schema, work.n, teaching=False)
    charge = open_ledger().reserve(work.data.fingerprint or "", config.total, purpose="Synthesize")
    order = StoreOrder(settings=Settings.from_environment(), charge=charge.id)
    made = execute_and_store(work.data.table, session.schema, config, (), order)
    charge.commit()
    work.add_run(made.result, charge.id, store_problem=made.problem)
    return session


def test_a_paid_release_comes_back_with_the_table_and_its_approval() -> None:
    first = paid(released())
    (run,) = first.runs
    assert (run.store_problem, first.paid) == ("", False), "the store holds it, so the session need not"
    first.work.public_review = True
    record(first, run, "approve", reviewer="Ada", note="fine")
    archive = bundle_of(first.work, run).archive

    other = released()
    assert not other.runs
    open_stored_releases(other)
    (again,) = other.runs
    assert (again.digest, again.charge) == (run.digest, run.charge)
    approval = current_approval(again, history(other))
    assert approval is not None
    assert approved_archive(other.work, again, approval) == archive
    open_stored_releases(other)
    assert len(other.runs) == 1


def test_every_page_takes_in_what_was_made_elsewhere() -> None:
    paid(released())
    app = page("pages/3_Synthesize.py", released())
    assert len(session_of(app).runs) == 1
    assert any("Guarantee: proven" in element.value for element in app.markdown)


def test_facts_that_are_not_declared_again_are_not_taken_for_those_of_the_release() -> None:
    paid(released())
    again = Session(mode="release")
    load_upload(again, "private.csv", csv_of("age", "weight"))
    shown = [element.value for element in settled(page("pages/6_Release.py", again)).markdown]
    assert ":red-badge[:material/block: Another release now: guarantee: void]" in shown
    assert ":green-badge[:material/verified: Guarantee: proven]" in shown


def test_a_stranger_with_another_table_finds_nothing() -> None:
    paid(released())
    other = Session(mode="release")
    rows = "".join(f"{40 + i % 7},{60 + i % 11}\n" for i in range(60))
    load_upload(other, "private.csv", f"age,weight\n{rows}".encode())
    open_account(other, "1", "0")
    open_stored_releases(other)
    assert not other.runs


@pytest.mark.parametrize("harm", ["removed", "damaged"])
def test_a_release_that_cannot_be_read_is_said_plainly_and_stops_no_page(home: Path, harm: str) -> None:
    paid(released())
    (file,) = (home / "releases").iterdir()
    file.unlink() if harm == "removed" else file.write_bytes(b"PK")
    app = page("pages/3_Synthesize.py", released())
    assert ("missing" if harm == "removed" else "damaged") in texts(app)
    assert not app.button(key="synthesize").disabled
    settled(app.switch_page("pages/6_Release.py").run())


def test_a_store_that_cannot_be_written_leaves_the_release_in_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_RELEASES_GB", "0")
    session = paid(released())
    assert "is full" in session.runs[0].store_problem
    assert session.paid
    app = page("pages/3_Synthesize.py", session)
    assert any("download it now" in error.value for error in app.error)
    app = click(app, "synthesize")
    assert any("store of releases is full" in warning.value for warning in app.warning)


def slow(session: Session) -> Job:
    """A paid run that is still at work when this returns."""
    assert session.schema is not None
    config = session.settings.config(session.schema, session.work.n, teaching=False)
    object.__setattr__(config, "mechanism", Stepping(steps=10))
    return start(session, config).job


def test_a_paid_run_goes_on_after_its_table_was_left_and_its_release_is_found() -> None:
    session = released()
    job, work = slow(session), session.work
    load_example(session, "wine")
    assert job.active
    finish(job)
    assert job.state == "finished"
    session.collect()
    assert [each is work for each in session.earlier] == [True]
    go_back(session, work)
    assert (session.mode, len(session.runs)) == ("release", 1)


def test_the_way_to_the_other_mode_and_back_loses_nothing() -> None:
    session = paid(released())
    work = session.work
    choose_mode(session, "teaching")
    assert session.current is None, "a private file is never free to look at"
    load_example(session, "wine")
    session.work.add_run(work.runs[0].result)
    teaching = session.work
    choose_mode(session, "release")
    assert session.work is work
    assert len(session.runs) == 1
    choose_mode(session, "teaching")
    assert session.work is teaching
    assert account_of(session) is None


def asked(app: object) -> list[str]:
    return [block.proto.dialog.title for block in elements(app._tree) if block.type == "dialog"]  # type: ignore[attr-defined]


def test_leaving_work_asks_first_and_staying_changes_nothing() -> None:
    app = data_page(paid(released()))
    settled(app.radio(key="mode_release_0").set_value("teaching").run())
    assert asked(app) == ["Switch to teaching mode?"]
    assert "stored beside the ledger" in texts(app)
    click(app, "stay_mode")
    assert (session_of(app).mode, len(session_of(app).runs)) == ("release", 1)
    assert app.radio(key="mode_release_1").value == "release"
    settled(app.radio(key="mode_release_1").set_value("teaching").run())
    click(app, "leave_mode")
    assert session_of(app).mode == "teaching"
    click(app, "go_back_1")
    assert (session_of(app).mode, len(session_of(app).runs)) == ("release", 1)
    settled(app.radio(key="source").set_value("example").run())
    click(app, "use_example")
    assert asked(app) == ["Use another table?"]
    assert session_of(app).work.data.title == "private.csv", "nothing happens before the answer"


def test_a_table_without_work_is_left_without_a_question() -> None:
    session = Session()
    load_example(session, "wine")
    app = data_page(session)
    settled(app.radio(key="mode_teaching_0").set_value("release").run())
    assert not asked(app)
    assert session_of(app).mode == "release"
