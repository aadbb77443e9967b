from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pebble.common import CONSTS

from dpsynth_core.errors import LedgerError
from dpsynth_core.progress import MAX_POINTS, Point, Series, extend
from dpsynth_core.runs.jobs import JobRunner, on_private_table
from dpsynth_core.runs.reports import DrawnMessage, Message, StageMessage, WorkerProgress
from dpsynth_core.table.examples import EXAMPLES
from tests.runs import job_tasks
from tests.waiting.jobs import alive, finish, process_of, wait, workers_of

ROOT = Path(__file__).parents[2]


class Till:
    """A charge that writes down what became of it."""

    def __init__(self, error: str = "") -> None:
        self.settled: list[str] = []
        self._error = error

    def commit(self) -> None:
        if self._error:
            raise LedgerError(self._error)
        self.settled.append("committed")

    def refund(self, reason: str) -> None:
        self.settled.append("refunded")


@pytest.fixture(scope="module")
def runner() -> Iterator[JobRunner]:
    runner = JobRunner()
    yield runner
    runner.close()


def test_a_job_reports_and_its_charge_is_settled_before_its_result_is_visible(runner: JobRunner) -> None:
    seen: list[object] = []
    till = Till()
    till.commit = lambda: seen.append(job.result)  # type: ignore[method-assign]
    job = runner.submit("Add", job_tasks.add, 2, 3, charge=till)
    finish(job)
    assert (job.state, job.result, job.charged, job.stage) == ("finished", 5, True, "Adding")
    assert seen == [None]


def test_parts_are_there_in_order_but_no_part_of_what_is_charged_for(runner: JobRunner) -> None:
    assert finish(runner.submit("Add", job_tasks.add_in_parts, 2, 3)).parts == (2, 3)
    assert finish(runner.submit("Add", job_tasks.add_in_parts, 2, 3, charge=Till())).parts == ()


def test_teaching_charges_nothing(runner: JobRunner) -> None:
    assert finish(runner.submit("Add", job_tasks.add, 2, 3)).charged is None


@pytest.mark.parametrize(("drawing", "settled"), [(False, "refunded"), (True, "committed")])
def test_cancelling_ends_the_process_and_gives_back_what_was_not_used(
    runner: JobRunner, drawing: bool, settled: str
) -> None:
    till = Till()
    job = runner.submit("Sleep", job_tasks.sleep, 600, drawing, charge=till)
    pid = process_of(job)
    runner.cancel(job)
    finish(job)
    assert job.state == "cancelled"
    assert till.settled == [settled]
    assert job.charged is (settled == "committed")
    wait(lambda: not alive(pid), seconds=10)


def test_a_busy_process_is_killed_too(runner: JobRunner) -> None:
    job = runner.submit("Spin", job_tasks.spin)
    pid = process_of(job)
    runner.cancel(job)
    wait(lambda: not alive(pid), seconds=10)
    assert finish(job).state == "cancelled"


def test_a_process_in_one_long_call_into_c_ends_at_the_first_signal(
    runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONSTS, "term_timeout", 60)  # after which the second signal would come
    job = runner.submit("Add up", job_tasks.stay_in_c)
    pid = process_of(job)
    runner.cancel(job)
    wait(lambda: not alive(pid), seconds=20)
    assert finish(job).state == "cancelled"


def test_nothing_that_a_dying_worker_reports_is_taken_in_once_its_charge_is_given_back(runner: JobRunner) -> None:
    job = runner.submit("Sleep", job_tasks.sleep, 600, False, charge=(till := Till()))
    process_of(job)

    def late(reason: str) -> None:
        """The worker goes on for a moment while the ledger is written."""
        till.settled.append("refunded")
        point = Point(series="height", x=1, y=1)
        runner._messages.put(DrawnMessage(job_id=job.id))
        runner._messages.put(StageMessage(job_id=job.id, stage="Late", done=0.9, points=(point,)))
        assert runner._flushed()

    till.refund = late  # type: ignore[method-assign]
    runner.cancel(job)
    finish(job)
    assert (till.settled, job.charged, job.drawn, job.series) == (["refunded"], False, False, {})
    assert job.stage != "Late"


@pytest.mark.parametrize(("drawing", "settled"), [(False, "refunded"), (True, "committed")])
def test_a_worker_that_dies_is_reported_and_settled(runner: JobRunner, drawing: bool, settled: str) -> None:
    till = Till()
    job = finish(runner.submit("Die", job_tasks.die, drawing, charge=till))
    assert job.state == "failed"
    assert "unexpectedly" in job.problem
    assert till.settled == [settled]


def test_errors_are_told_in_words_and_unexpected_ones_only_by_their_kind(runner: JobRunner) -> None:
    assert finish(runner.submit("Fail", job_tasks.fail)).problem == "This cannot be done; do that."
    job = finish(runner.submit("Leak", job_tasks.leak))
    assert job.state == "failed"
    assert "RuntimeError" in job.problem
    assert "4711" not in job.problem


def test_a_result_whose_charge_cannot_be_recorded_is_not_shown(runner: JobRunner) -> None:
    job = finish(runner.submit("Add", job_tasks.add, 2, 3, charge=Till("The ledger is gone.")))
    assert (job.state, job.result) == ("failed", None)
    assert "ledger" in job.problem


def test_more_jobs_than_workers_wait_their_turn_and_know_their_place(runner: JobRunner) -> None:
    first, second = (runner.submit("Sleep", job_tasks.sleep, 600, False) for _ in range(2))
    process_of(first)
    process_of(second)
    till = Till()
    third = runner.submit("Add", job_tasks.add, 1, 1)
    fourth = runner.submit("Add", job_tasks.add, 2, 2, charge=till)
    fifth = runner.submit("Add", job_tasks.add, 3, 3)
    assert [job.state for job in (third, fourth, fifth)] == ["waiting"] * 3
    assert [runner.ahead(job) for job in (first, second, third, fourth, fifth)] == [0, 0, 2, 3, 4]
    runner.cancel(fourth)
    assert (fourth.state, fourth.charged, fourth.started, till.settled) == ("cancelled", False, None, ["refunded"])
    assert [runner.ahead(job) for job in (third, fifth)] == [2, 3]
    runner.cancel(first)
    assert finish(third).result == 2
    assert finish(fifth).result == 6
    assert runner.ahead(fifth) == 0
    runner.cancel(second)
    finish(second)


def test_background_work_gives_way_and_never_takes_the_last_worker(runner: JobRunner) -> None:
    refining = [runner.submit("Sleep", job_tasks.sleep, 600, False, background=True) for _ in range(2)]
    niceness = os.getpriority(os.PRIO_PROCESS, process_of(refining[0]))
    assert refining[1].state == "waiting"
    asked = runner.submit("Sleep", job_tasks.sleep, 600, False)
    assert os.getpriority(os.PRIO_PROCESS, process_of(asked)) < niceness
    later = runner.submit("Add", job_tasks.add, 1, 1)
    assert [runner.ahead(job) for job in (later, refining[1])] == [2, 3], "although it came first"
    runner.cancel(asked)
    assert finish(later).result == 2
    assert refining[1].state == "waiting"
    runner.cancel(refining[0])
    process_of(refining[1])
    runner.cancel(refining[1])


@pytest.mark.slow
def test_a_large_table_that_waits_does_not_hold_up_a_cancel(runner: JobRunner) -> None:
    first, second = (runner.submit("Spin", job_tasks.spin) for _ in range(2))
    pid = process_of(first)
    process_of(second)
    third = runner.submit("Size", job_tasks.size, b"x" * 50_000_000)
    runner.cancel(first)
    wait(lambda: not alive(pid), seconds=10)
    assert finish(third).result == 50_000_000
    runner.cancel(second)
    finish(second)


def test_a_cancelled_job_cannot_be_cancelled_twice(runner: JobRunner) -> None:
    till = Till()
    job = runner.submit("Sleep", job_tasks.sleep, 600, True, charge=till)
    process_of(job)
    for _ in range(3):
        runner.cancel(job)
    finish(job)
    assert till.settled == ["committed"]


def test_where_nobody_can_tell_whether_noise_was_drawn_the_charge_is_spent() -> None:
    runner, till = JobRunner(max_running=1), Till()
    try:
        job = runner.submit("Sleep", job_tasks.sleep, 600, False, charge=till)
        process_of(job)
        runner._manager.shutdown()  # what the worker has said last can no longer be read
        runner.cancel(job)
        assert finish(job).state == "cancelled"
        assert till.settled == ["committed"]
    finally:
        runner.close()


@pytest.mark.slow
def test_an_idle_worker_that_is_killed_does_no_harm() -> None:
    runner = JobRunner(max_running=1)
    try:
        used = process_of(runner.submit("Sleep", job_tasks.sleep, 0, False))
        wait(lambda: any(pid != used for pid in worker_pids(runner)))
        (idle,) = (pid for pid in worker_pids(runner) if pid != used)
        os.kill(idle, signal.SIGKILL)
        wait(lambda: not runner._pool.active)
        assert finish(runner.submit("Add", job_tasks.add, 2, 2)).result == 4
    finally:
        runner.close()


def worker_pids(runner: JobRunner) -> list[int]:
    return list(runner._pool._pool_manager.worker_manager.workers)


def test_points_reach_the_owner_while_the_job_runs(runner: JobRunner) -> None:
    job = runner.submit("Walk", job_tasks.walk, 600)
    wait(lambda: bool(job.series) and len(job.series["height"].points) >= 3)
    assert job.active
    line = job.series["height"]
    assert line.points[:3] == [(0, 0), (1, 1), (2, 4)]
    assert (line.along, line.releasable) == ("step", True)
    runner.cancel(job)
    finish(job)


def test_lines_begin_again_when_the_task_says_so(runner: JobRunner) -> None:
    job = finish(runner.submit("Restart", job_tasks.restart))
    assert list(job.series) == ["depth"]


def test_a_private_table_is_encoded_by_the_worker(runner: JobRunner) -> None:
    example = EXAMPLES["two_groups_signal"]
    job = finish(runner.submit("Rows", on_private_table, job_tasks.rows, example.load(), example.schema, 2))
    assert (job.result, job.stage) == (1_000, "Reading the table")


def test_a_quick_loop_loses_no_point_and_sends_few_messages() -> None:
    class Listener:
        def __init__(self) -> None:
            self.messages: list[StageMessage] = []

        def put(self, message: Message) -> None:
            assert isinstance(message, StageMessage)
            self.messages.append(message)

    listener = Listener()
    report = WorkerProgress("id", listener)
    for i in range(10_000):
        report("Sampling", i / 10_000, Point(series="height", x=i, y=i))
    report("Drawing rows", 1.0)
    assert len(listener.messages) < 1_000
    assert [point.x for message in listener.messages for point in message.points] == list(range(10_000))


def test_a_long_line_is_thinned_and_one_private_point_makes_it_private() -> None:
    lines: dict[str, Series] = {}
    for i in range(5_000):
        extend(lines, (Point(series="height", x=i, y=2 * i, releasable=i != 4_000),))
    line = lines["height"]
    assert len(line.points) <= MAX_POINTS
    assert line.points[-1] == (4_999, 9_998)
    assert line.points == sorted(line.points)
    assert not line.releasable


def test_a_server_that_stops_charges_nothing_for_jobs_that_drew_nothing() -> None:
    runner = JobRunner(max_running=2)
    tills = [Till() for _ in range(4)]
    jobs = [
        runner.submit("Sleep", job_tasks.sleep, 600, drawing, charge=till)
        for till, drawing in zip(tills, (True, False, True, True), strict=True)
    ]
    wait(lambda: all("Sleeping" in job.stage for job in jobs[:2]))
    assert runner.problem == "", "busy is no problem"
    runner.close()
    assert "were stopped" in runner.problem
    late = Till()
    jobs.append(runner.submit("Sleep", job_tasks.sleep, 600, True, charge=late))
    wait(lambda: not any(job.active for job in jobs))
    assert [till.settled for till in (*tills, late)] == [["committed"], *[["refunded"]] * 4]
    assert [job.charged for job in jobs] == [True, False, False, False, False]


SERVER = """
import time
from dpsynth_core.runs.jobs import JobRunner
from tests.runs.job_tasks import spin
runner = JobRunner(compile_ahead=True)
jobs = [runner.submit("Spin", spin) for _ in range(3)]
while sum("Spinning" in job.stage for job in jobs) < 2:
    time.sleep(0.05)
print("spinning", flush=True)
time.sleep(600)
"""


def test_nothing_survives_a_server_that_is_killed() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "spinning\n"
        started = workers_of(server.pid)
        assert len(started) >= 3, "two workers and the manager of their messages"
    finally:
        server.kill()
        server.wait()
    wait(lambda: not any(alive(pid) for pid in started))
