"""A table on this server that Spark reads, here or on a cluster: opened, made, diagnosed and cancelled by the app.

``make test-spark`` installs what this needs and runs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.inference.private_comparison import ComparisonRequest
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.configuration import RunConfig
from pages.shared.accounts import account_of
from pages.shared.comparison.actions import GROUPS, results, run_private_test
from pages.shared.data.actions import open_account
from pages.shared.data.server_actions import start_opening
from pages.shared.diagnostics.actions import EXAMINATION, examine
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from pages.shared.table_work import TableWork
from tests.waiting.jobs import alive, wait
from tests.waiting.pages import data_page, page, texts
from tests.waiting.server import free_port
from tests.waiting.spark import QUICK_START, connect_server, reported

pytest.importorskip("pyspark", reason="make test-spark installs it")
pytestmark = pytest.mark.slow  # a Java process has to start

N, COPIES = 2_500, 40
"""Rows of the table, and files of a table of which no pass is over before somebody can cancel it."""
PATIENCE = 300.0
SCHEMA = dp.Schema.from_dict(
    {
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "public": True},
            {"name": "smokes", "kind": "boolean", "public": True},
        ],
        "file": {"format": "parquet"},
    }
)


@dataclass(frozen=True, kw_only=True)
class Spark:
    url: str
    jobs: Callable[[], list[str]]
    """States of the cluster's jobs, the newest first; none where Spark ends with whoever started it."""


@pytest.fixture(scope="module", params=["here", "connect"])
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    if request.param == "here":
        yield Spark(url="local[2]", jobs=list)
        return
    port = free_port()
    shown = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}  # by which it says what it is doing
    with connect_server(tmp_path_factory.mktemp("server"), settings=shown) as server:

        def jobs() -> list[str]:
            found = sorted(reported(port, "jobs"), key=lambda job: -job["jobId"])
            return [str(job["status"]) for job in found]

        yield Spark(url=server.url, jobs=jobs)


def rows(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(0, 100, n), "smokes": rng.random(n) < 0.3})


@pytest.fixture
def place(tmp_path: Path, spark: Spark, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with two folders of files, one of them long."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK_START)
    monkeypatch.setenv("DPSYNTH_SOURCES", str(tmp_path / "list.toml"))
    for name, frame in {"Visits": rows(N), "Long": rows(2_000_000)}.items():
        (tmp_path / name).mkdir()
        frame.to_parquet(tmp_path / name / "000.parquet")
    for number in range(1, COPIES):
        os.link(tmp_path / "Long" / "000.parquet", tmp_path / "Long" / f"{number:03}.parquet")
    (tmp_path / "facts.json").write_text(SCHEMA.to_json())
    facts = f"engine = 'spark'\nspark_url = '{spark.url}'\nschema = '{tmp_path}/facts.json'\n"
    entries = (f"[[source]]\nname = '{name}'\nlocation = '{tmp_path}/{name}'\n{facts}" for name in ("Visits", "Long"))
    (tmp_path / "list.toml").write_text("\n".join(entries))
    return tmp_path


def ended(work: TableWork | Session, kind: str) -> None:
    tasks = work.tasks if isinstance(work, TableWork) else work.opening
    task = tasks[kind]
    wait(lambda: not task.active, PATIENCE)
    assert task.job.problem == ""


def test_from_the_list_to_the_diagnostics(place: Path) -> None:
    session = Session(mode="release", source="server")
    start_opening(session, "Visits")
    ended(session, "opening")
    app = data_page(session)
    assert f"Visits: {N:,} rows, 2 columns" in texts(app)
    assert (session.work.n, session.schema) == (N, SCHEMA)
    open_account(session, "3", "1e-6")
    start(session, RunConfig(mechanism=MECHANISMS["private_pgm"].suggest(SCHEMA, N, 1), epsilon="1", delta="0"))
    ended(session.work, "run")
    session.collect()
    (run,) = session.runs
    assert (len(run.result.tables[0]), run.result.guarantee.status) == (N, "proven")
    account = account_of(session)
    assert account is not None
    assert [(entry.state, entry.budget.epsilon) for entry in account.entries] == [("committed", 1)]
    examine(session.work, run, SCHEMA.names)
    ended(session.work, EXAMINATION)
    page("pages/4_Diagnostics.py", session)
    (found,) = run.evaluations.values()
    assert f"all {N:,} rows" in found["marginals"].notes[0]


def test_a_private_test_of_two_groups_is_counted_there(place: Path) -> None:
    session = Session(mode="release", source="server")
    start_opening(session, "Visits")
    ended(session, "opening")
    data_page(session)
    open_account(session, "3", "1e-6")
    run_private_test(session, SCHEMA, ComparisonRequest(value="age", group="smokes", epsilon="1"), run_id="a")
    if not session.work.data.complete:
        ended(session.work, GROUPS)
    session.collect()
    (found,) = results(session)
    assert (found.n, found.guarantee.status) == (N, "proven")


def test_cancel_ends_what_spark_is_doing_wherever_it_is(place: Path, spark: Spark) -> None:
    before = spark_processes()
    session = Session(mode="release", source="server")
    task = start_opening(session, "Long")
    wait(lambda: "rows are being read" in task.job.stage or "rows read" in task.job.stage, PATIENCE)
    here = spark.url.startswith("local")
    wait(lambda: here or "RUNNING" in spark.jobs(), PATIENCE)
    mine = spark_processes() - before
    task.cancel()
    wait(lambda: not task.active, PATIENCE)
    assert task.job.state == "cancelled"
    if here:
        assert mine
        wait(lambda: not any(map(alive, mine)), PATIENCE)
    else:
        wait(lambda: "RUNNING" not in spark.jobs(), PATIENCE)
        assert spark.jobs()[0] == "FAILED", "the pass was ended, and did not come to its own end"
    app = data_page(session)
    assert "Opening the table was cancelled." in [each.value for each in app.info]


def spark_processes() -> set[int]:
    """Java, and the Python processes that it has started."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # gone meanwhile
                continue
            if words[0].endswith(b"java") or b"pyspark.daemon" in words:
                found.add(int(entry.name))
    return found
