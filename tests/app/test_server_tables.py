"""A table on this server, chosen by its name: what visitors see, what is charged, and what cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsynth_core.table.estimate
import dpsynth_core.table.row_sample
from dpsynth_core.errors import DPSynthError, EngineError, RoleError
from dpsynth_core.inference import private_comparison
from dpsynth_core.inference.private_comparison import ComparisonRequest
from dpsynth_core.inference.source_groups import count_source_groups
from dpsynth_core.ledger.declarations import NearAccountError
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.progress import RunProgress
from dpsynth_core.review.evidence import EvidenceRequest, gather
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.runs.estimating import count_column
from dpsynth_core.runs.jobs import on_private_table
from dpsynth_core.runs.opening import inspect_source
from dpsynth_core.table.column import ESTIMATED
from dpsynth_core.table.estimate import discover_categories
from dpsynth_core.table.schema import Schema
from pages.shared.accounts import account_of
from pages.shared.comparison import actions as comparison_actions
from pages.shared.comparison.actions import GROUPS, results, run_private_test
from pages.shared.data.actions import choose_mode, declare_all_public, go_back, load_schema, open_account
from pages.shared.data.estimate_actions import COUNTING, estimate
from pages.shared.data.server_actions import OPENING, server_tables, start_opening, use_opened
from pages.shared.release.actions import report_of
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from tests.waiting.jobs import finish
from tests.waiting.pages import (
    HOSTILE,
    POSSIBLE,
    assert_only_in_plain_text,
    badges,
    click,
    data_page,
    page,
    settled,
    texts,
)

N, SAMPLE = 2_500, 2_000
SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "public": True},
            {"name": "smokes", "kind": "boolean", "public": True},
        ],
        "file": {"format": "parquet"},
    }
)
ADA = Person(subject="https://id.example.org 7", name="Ada", roles=frozenset({"analyst", "steward"}))
A_RUN = Guarantee(status="proven", parts=(Cost(label="a run", budget=Budget.of(1)),))
BASIS = f"computed on {SAMPLE:,} of {N:,} rows"


def listed(folder: Path, **more: object) -> None:
    """The list with one entry."""
    entry = {"name": "Visits", "engine": "duckdb", "location": str(folder / "visits.parquet"), **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    (folder / "list.toml").write_text("[[source]]\n" + "\n".join(lines), encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with one table, of which a sample is held that is quick to work with."""
    monkeypatch.setattr(dpsynth_core.table.row_sample, "SAMPLE_ROWS", SAMPLE)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 100, N), "smokes": rng.random(N) < 0.3})
    table.to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "facts.json").write_text(SCHEMA.to_json())
    listed(tmp_path, schema=str(tmp_path / "facts.json"))
    monkeypatch.setenv("DPSYNTH_SOURCES", str(tmp_path / "list.toml"))
    return tmp_path


def opened(place: Path, *, mode: str = "release", name: str = "Visits", session: Session | None = None) -> Session:
    """What the page and its worker do, without the worker."""
    session = session or Session(mode="teaching" if mode == "teaching" else "release")
    teaching = session.mode == "teaching"
    asked = SourceTable(name=name, by=session.person, file=place / "list.toml", teaching=teaching)
    settings = None if teaching else Settings.from_environment()
    session.opened = inspect_source(asked, settings, progress=lambda *_: None)
    assert use_opened(session)
    return session


def with_account(place: Path) -> Session:
    session = opened(place)
    open_account(session, "3", "1e-6")
    return session


def configured(session: Session, key: str = "perturbed_histogram") -> RunConfig:
    assert session.schema is not None
    return RunConfig(mechanism=MECHANISMS[key].suggest(session.schema, session.work.n, 1), epsilon="1")


def test_nothing_is_seen_of_it_where_no_list_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSYNTH_SOURCES", raising=False)
    assert data_page().radio(key="source").options == ["An example", "My own file"]


def test_private_tables_are_offered_in_release_mode_only(place: Path) -> None:
    assert data_page(Session(mode="teaching")).radio(key="source").options == ["An example", "My own file"]
    app = data_page(Session(mode="release"))
    settled(app.radio(key="source").set_value("server").run())
    assert app.selectbox(key="server_table").options == ["Visits"]
    listed(place, public=True)
    assert [each.name for each in server_tables(Session(mode="teaching"))] == ["Visits"]


def test_a_worker_opens_the_table_and_the_page_goes_on_with_it(place: Path) -> None:
    session = Session(mode="release", source="server")
    assert finish(start_opening(session, "Visits").job).problem == ""
    app = data_page(session)
    assert (session.work.n, session.schema, account_of(session)) == (N, SCHEMA, None)
    assert badges(app) == {POSSIBLE}
    assert f"Visits: {N:,} rows, 2 columns" in texts(app)
    assert "Correct the layout" not in [each.label for each in app.expander]


def test_the_page_says_what_it_shows(place: Path) -> None:
    session = opened(place)
    assert (session.work.n, len(session.work.data.table)) == (N, SAMPLE)
    said = "\n".join(each.value for each in data_page(session).caption)
    assert BASIS in said


def test_a_list_with_a_mistake_is_told_in_words_and_offers_nothing(place: Path) -> None:
    (place / "list.toml").write_text("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = 'a.parquet'\n")
    app = data_page(Session(mode="release", source="server"))
    assert "location is 'a.parquet'; allowed: an absolute path" in texts(app)
    assert not app.selectbox
    settled(app.radio(key="source").set_value("example").run())
    click(app, "use_example")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text_wherever_it_is_shown(place: Path, name: str) -> None:
    listed(place, name=name, schema=str(place / "facts.json"))
    assert_only_in_plain_text(data_page(opened(place, name=name)), name)


@pytest.mark.parametrize("name", ["../visits", "visits.parquet", "/etc/passwd", ""])
def test_what_is_not_in_the_list_cannot_be_opened(place: Path, name: str) -> None:
    session = Session(mode="release")
    with pytest.raises(RoleError, match="You may not use the table"):
        start_opening(session, name)
    assert session.opening.get(OPENING) is None


def test_a_second_visitor_who_may_not_use_it_neither_sees_nor_opens_it(place: Path) -> None:
    listed(place, who=[ADA.subject])
    assert [each.name for each in server_tables(Session(mode="release", person=ADA))] == ["Visits"]
    stranger = Session(mode="release", person=replace(ADA, subject="https://id.example.org 8"))
    assert not server_tables(stranger)
    with pytest.raises(RoleError):
        start_opening(stranger, "Visits")
    # Not even with what somebody else has opened.
    mine = opened(place, session=Session(mode="release", person=ADA))
    stolen = mine.work.data.original(stranger.person)
    assert isinstance(stolen, SourceTable)
    with pytest.raises(RoleError):
        execute(stolen, SCHEMA, configured(mine))


def test_a_table_that_is_taken_off_the_list_is_gone_from_every_page(place: Path) -> None:
    session = with_account(place)
    assert data_page(session).text
    (place / "list.toml").write_text("")
    app = page("pages/2_Mechanism.py", session)
    assert "does not offer it any more" in texts(app)
    assert (session.current, session.earlier) == (None, [])


def test_while_the_list_is_being_changed_nothing_is_shown_and_nothing_is_lost(place: Path) -> None:
    session = with_account(place)
    listing = (place / "list.toml").read_text()
    (place / "list.toml").write_text(listing[:-3])
    app = page("pages/1_Data.py", session)
    assert "is not TOML text" in texts(app)
    assert not app.header
    (place / "list.toml").write_text(listing)
    assert page("pages/1_Data.py", session).header
    assert session.work.n == N


def test_the_account_is_found_again_by_whoever_opens_the_table(place: Path) -> None:
    first, second = with_account(place), opened(place)
    assert first.work.data.fingerprint == second.work.data.fingerprint
    account = account_of(second)
    assert account is not None
    assert account.label == "Visits"
    assert account.total == Budget.of(3, "1e-6")


def test_a_changed_version_of_the_table_gets_no_second_budget(place: Path) -> None:
    with_account(place)
    table = pd.read_parquet(place / "visits.parquet")
    table.loc[0, "age"] = 99 - table.loc[0, "age"]  # one person's answer was corrected
    table.to_parquet(place / "visits.parquet")
    session = opened(place)
    assert account_of(session) is None
    with pytest.raises(NearAccountError):
        open_account(session, "3", "1e-6")


def test_a_run_is_made_from_every_row_and_charged_once(place: Path) -> None:
    session = with_account(place)
    config = replace(configured(session), mechanism=replace(configured(session).mechanism, rows=1_000))
    job = finish(start(session, config).job)
    assert job.problem == ""
    session.collect()
    (run,) = session.runs
    assert (len(run.result.tables[0]), run.result.guarantee.status) == (1_000, "proven")
    account = account_of(session)
    assert account is not None
    assert (account.spent.epsilon, len(account.entries)) == (1, 1)


def touch(place: Path) -> None:
    path = place / "visits.parquet"
    path.write_bytes(path.read_bytes())


def remove(place: Path) -> None:
    (place / "visits.parquet").unlink()


def replace_by_folder(place: Path) -> None:
    remove(place)
    (place / "visits.parquet").mkdir()


def lose_list(place: Path) -> None:
    (place / "list.toml").unlink()


def close_to_me(place: Path) -> None:
    listed(place, who=["https://id.example.org 9"])


@pytest.mark.parametrize("change", [touch, remove, replace_by_folder, lose_list, close_to_me])
def test_whatever_has_changed_since_it_was_opened_is_refused_and_nothing_is_charged(
    place: Path, change: Callable[[Path], None]
) -> None:
    session = with_account(place)
    change(place)
    with pytest.raises(DPSynthError) as refused:
        start(session, configured(session))
    assert str(place) not in str(refused.value)
    account = account_of(session)
    assert account is not None
    assert not account.entries


def test_a_file_that_changes_while_the_run_waits_for_its_turn_costs_nothing(place: Path) -> None:
    session = with_account(place)
    original = session.work.data.original(session.person)
    touch(place)
    with pytest.raises(EngineError, match="'Visits' was changed after you opened it"):
        execute(original, SCHEMA, configured(session))


def test_facts_about_a_column_that_is_not_there_are_refused(place: Path) -> None:
    session = with_account(place)
    with pytest.raises(DPSynthError, match="'height'"):
        load_schema(session, SCHEMA.to_json().replace('"age"', '"height"').encode())
    (place / "facts.json").write_text(SCHEMA.to_json().replace('"age"', '"height"'))
    with pytest.raises(DPSynthError, match="'height'"):
        opened(place)


def test_a_table_of_a_database_is_used_like_any_other(place: Path) -> None:
    with duckdb.connect(str(place / "hospital.duckdb")) as database:
        database.sql(f"CREATE TABLE visits AS FROM read_parquet('{place / 'visits.parquet'}')")
    listed(place, location=str(place / "hospital.duckdb"), table="visits")
    session = opened(place)
    declare_all_public(session, public=True)
    assert session.schema is not None
    result = execute(session.work.data.original(session.person), session.schema, configured(session))
    assert (result.guarantee.status, len(result.tables[0])) == ("proven", N)


def test_one_that_was_opened_and_never_used_is_let_go(place: Path) -> None:
    session = Session(mode="release")
    asked = SourceTable(name="Visits", by=session.person, file=place / "list.toml", teaching=False)
    session.opened = inspect_source(asked, None, progress=lambda *_: None)
    assert session.nbytes > 0
    session.drop_table("minutes")
    assert (session.opened, session.nbytes) == (None, 0)


def test_without_declared_facts_nothing_is_public_until_somebody_says_so(place: Path) -> None:
    listed(place)
    session = opened(place)
    assert session.schema is not None
    assert not session.schema.is_public
    assert session.schema.file is None
    declare_all_public(session, public=True)
    assert session.schema.is_public
    assert session.schema.file == SCHEMA.file


def test_the_declared_layout_of_a_text_cannot_be_taken_back_or_replaced_here(place: Path) -> None:
    (place / "visits.csv").write_text("age,smokes\n" + "31,True\n45,False\n" * 40)
    layout = {"format": "text", "delimiter": ",", "fields": 2}
    declared = json.loads(SCHEMA.to_json()) | {"file": layout}
    (place / "facts.json").write_text(json.dumps(declared))
    listed(place, location=str(place / "visits.csv"), schema=str(place / "facts.json"))
    session = opened(place)
    declare_all_public(session, public=False)
    assert session.schema is not None
    assert session.schema.file is not None
    assert session.schema.file.delimiter == ","
    with pytest.raises(DPSynthError, match="another layout"):
        load_schema(session, json.dumps(declared | {"file": layout | {"delimiter": ";"}}).encode())
    assert session.work.data.complete


def test_scoring_several_runs_is_not_offered(place: Path) -> None:
    app = page("pages/3_Synthesize.py", with_account(place))
    assert "Scoring the runs needs all rows in memory" in "\n".join(each.value for each in app.caption)


QUESTION = ComparisonRequest(value="age", group="smokes", epsilon="1")


def test_two_groups_are_counted_by_a_worker_and_paid_for_once_they_are(place: Path) -> None:
    session = with_account(place)
    run_private_test(session, SCHEMA, QUESTION, run_id="a")
    task = session.work.tasks[GROUPS]
    assert finish(task.job).problem == ""
    account = account_of(session)
    assert account is not None
    assert not account.entries  # counted, and nothing charged or shown yet
    assert not results(session)
    page("pages/3_Synthesize.py", session)  # collects
    (found,) = results(session)
    assert (found.n, found.rows_in_all, found.guarantee.status) == (N, N, "proven")
    account = account_of(session)
    assert account is not None
    assert [(entry.state, entry.budget) for entry in account.entries] == [("committed", QUESTION.budget)]


def test_a_longer_table_is_tested_on_rows_drawn_by_position_and_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (private_comparison, comparison_actions):
        monkeypatch.setattr(module, "MAX_TEST_ROWS", 700)
    session = with_account(place)
    asked = session.work.data.original(session.person)
    assert isinstance(asked, SourceTable)
    # What the worker does, without the worker.
    counted = count_source_groups(asked, SCHEMA, QUESTION, progress=lambda *_: None)
    assert (counted.n, sum(counted.sizes)) == (700, 700)
    comparison_actions._pay(session.work, SCHEMA, QUESTION, run_id="a", counted=counted)
    (found,) = results(session)
    assert f"on 700 of {N:,} original rows, drawn at random by position" in found.finding
    said = "\n".join(each.value for each in page("pages/3_Synthesize.py", session).caption)
    assert f"The test is made on 700 of {N:,} rows" in said


def test_a_test_that_is_cancelled_while_rows_are_counted_costs_nothing(place: Path) -> None:
    session = with_account(place)
    run_private_test(session, SCHEMA, QUESTION, run_id="a")
    task = session.work.tasks[GROUPS]
    task.cancel()
    assert finish(task.job).state == "cancelled"
    assert not page("pages/3_Synthesize.py", session).exception
    account = account_of(session)
    assert account is not None
    assert not account.entries
    assert not results(session)


def test_a_range_is_estimated_from_every_row_by_a_worker_and_paid_for_once_it_is_counted(place: Path) -> None:
    session = with_account(place)
    estimate(session, "age", Budget.of("1"), run_id="a", others_public=True)
    task = session.work.tasks[COUNTING]
    assert finish(task.job).problem == ""
    account = account_of(session)
    assert account is not None
    assert not account.entries  # counted, and nothing charged or shown yet
    data_page(session)  # collects
    account = account_of(session)
    assert account is not None
    assert [entry.budget.epsilon for entry in account.entries] == [1]
    assert session.schema is not None
    age = session.schema["age"]
    assert (age.lower, age.upper, age.origin) == (0, 100, ESTIMATED)
    assert "the range is estimated as 0 to 100" in "\n".join(session.work.estimate_note)
    assert session.work.private is not None
    assert session.work.private.judge(A_RUN, session.work.estimates).status == "proven"


def test_labels_are_looked_for_among_rows_drawn_at_random(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpsynth_core.table.estimate, "MAX_LABEL_ROWS", 2_200)
    towns = np.random.default_rng(1).choice(["Bonn", "Köln", "Aachen"], N, p=[0.6, 0.3, 0.1])
    pd.DataFrame({"town": [*towns[:-1], "a village of one"]}).to_parquet(place / "visits.parquet")
    listed(place)
    session = opened(place)
    declare_all_public(session, public=True)
    open_account(session, "3", "1e-6")
    assert session.schema is not None
    asked = session.work.data.original(session.person)
    assert isinstance(asked, SourceTable)
    budget = Budget.of(1, "1e-7")
    counted = count_column(asked, session.schema, "town", budget, progress=lambda *_: None)
    assert int(counted.counts.sum()) == 2_200
    found = discover_categories(counted, epsilon=1, delta="1e-7", noise=SecureNoise(budget))
    assert found.categories == ("Aachen", "Bonn", "Köln")
    app = data_page(session)
    assert "Labels are looked for among 2,200 rows drawn at random." in [each.value for each in app.caption]


def test_the_kind_of_a_column_that_changes_while_it_is_counted_costs_nothing(place: Path) -> None:
    session = with_account(place)
    estimate(session, "age", Budget.of("1"), run_id="a", others_public=True)
    task = session.work.tasks[COUNTING]
    assert finish(task.job).problem == ""
    declared = json.loads(SCHEMA.to_json())
    declared["columns"][0] = {"name": "age", "kind": "categorical", "categories": ["1", "2"], "public": True}
    load_schema(session, json.dumps(declared).encode())
    task.collect()
    assert "was changed while it was counted" in str(session.work.estimate_problem)
    account = account_of(session)
    assert account is not None
    assert not account.entries


def test_another_mode_lets_go_of_the_table_and_the_way_back_leads_to_it(place: Path) -> None:
    session = with_account(place)
    work = session.work
    choose_mode(session, "teaching")
    assert session.current is None
    go_back(session, work)
    assert (session.mode, session.source, session.work.n) == ("release", "server", N)


def test_diagnostics_and_the_report_say_on_how_many_rows_they_rest(place: Path) -> None:
    session = with_account(place)
    config = replace(configured(session), mechanism=replace(configured(session).mechanism, rows=1_000))
    work = session.work
    run = work.add_run(execute(work.data.original(session.person), SCHEMA, config))
    request = EvidenceRequest(outcome=run.result, diagnostics=("marginals",))
    # What the worker does, without the worker.
    found = on_private_table(gather, work.data.sampled(session.person), SCHEMA, request, progress=RunProgress())
    run.evidence, run.evaluations[SCHEMA.names] = found, found.evaluation
    assert f"all {N:,} rows" in found.evaluation["marginals"].notes[0]
    assert (found.basis, found.own_discoveries) == (BASIS, None)
    for path in ("pages/4_Diagnostics.py", "pages/6_Release.py"):
        assert BASIS in "\n".join(each.value for each in page(path, session).caption)
    report = report_of(session, run)().decode()
    assert f"{N:,} rows, 2 columns" in report
    assert BASIS in report
