from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from dpsynth_core.errors import LedgerError
from dpsynth_core.jobs import Job, JobRunner
from tests import job_tasks


class Till:
    """A settlement that writes down what became of the charge."""

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


def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def finish(job: Job) -> Job:
    wait(lambda: not job.active)
    return job


def process_of(job: Job) -> int:
    wait(lambda: "process" in job.stage)
    return int(job.stage.rsplit(" ", 1)[1])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as status:
        return status.read().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_job_reports_and_its_charge_is_settled_before_its_result_is_visible(runner: JobRunner) -> None:
    seen: list[object] = []
    till = Till()
    till.commit = lambda: seen.append(job.result)  # type: ignore[method-assign]
    job = runner.submit("Add", job_tasks.add, 2, 3, settlement=till)
    finish(job)
    assert (job.state, job.result, job.charged, job.stage) == ("finished", 5, True, "Adding")
    assert seen == [None]


def test_teaching_charges_nothing(runner: JobRunner) -> None:
    assert finish(runner.submit("Add", job_tasks.add, 2, 3)).charged is None


@pytest.mark.parametrize(("drawing", "settled"), [(False, "refunded"), (True, "committed")])
def test_cancelling_ends_the_process_and_gives_back_what_was_not_used(
    runner: JobRunner, drawing: bool, settled: str
) -> None:
    till = Till()
    job = runner.submit("Sleep", job_tasks.sleep, 600, drawing, settlement=till)
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


@pytest.mark.parametrize(("drawing", "settled"), [(False, "refunded"), (True, "committed")])
def test_a_worker_that_dies_is_reported_and_settled(runner: JobRunner, drawing: bool, settled: str) -> None:
    till = Till()
    job = finish(runner.submit("Die", job_tasks.die, drawing, settlement=till))
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
    job = finish(runner.submit("Add", job_tasks.add, 2, 3, settlement=Till("The ledger is gone.")))
    assert (job.state, job.result) == ("failed", None)
    assert "ledger" in job.problem


def test_more_jobs_than_workers_wait_their_turn(runner: JobRunner) -> None:
    first, second = (runner.submit("Sleep", job_tasks.sleep, 600, False) for _ in range(2))
    process_of(first)
    process_of(second)
    third = runner.submit("Add", job_tasks.add, 1, 1)
    assert third.state == "waiting"
    runner.cancel(first)
    assert finish(third).result == 2
    runner.cancel(second)
    finish(second)
