from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from multiprocessing import spawn
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import cast

import pytest

import dpsynth_core
import dpsynth_core.runs
from dpsynth_core.progress import no_progress
from dpsynth_core.runs.workers import BLAS_THREADS, NICENESS, quiet_context, run_all, yielding_context

POSIX_ONLY = {
    "curses",
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "syslog",
    "termios",
    "tty",
    "popen_fork",
    "popen_forkserver",
    "popen_spawn_posix",
    "resource_tracker",
    "forkserver",
}


def statements_on_windows(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that may run there: not those behind a look at the platform."""
    for node in body:
        condition = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        if condition == "sys.platform != 'win32'":
            continue
        yield node
        if condition == "sys.platform == 'win32'" and isinstance(cast("ast.If", node).body[-1], ast.Return):
            return
        for inner in (getattr(node, field, []) for field in ("body", "orelse", "finalbody", "handlers")):
            yield from statements_on_windows(inner)


def imported_names(source: str) -> set[str]:
    """Every part of every name that is imported on Windows."""
    names: set[str] = set()
    for node in statements_on_windows(ast.parse(source).body):
        if isinstance(node, ast.Import):
            names |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names} | set((node.module or "").split("."))
    return names


@pytest.mark.parametrize(
    "file", sorted(Path(dpsynth_core.runs.__file__).parent.glob("*.py")), ids=lambda file: file.name
)
def test_nothing_is_imported_that_windows_does_not_have(file: Path) -> None:
    assert not imported_names(file.read_text(encoding="utf-8")) & POSIX_ONLY


def test_a_process_is_started_in_the_platforms_own_way_and_without_the_main_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[dict[str, object]] = []

    def start(process: object) -> None:
        """What popen_spawn_win32 does first, too; what follows needs Windows."""
        prepared.append(spawn.get_preparation_data(process._name))  # type: ignore[attr-defined]

    monkeypatch.setattr(SpawnProcess, "_Popen", staticmethod(start))
    monkeypatch.setattr(sys, "platform", "win32")
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(main, "__file__", "page.py", raising=False)
    assert "init_main_from_path" in spawn.get_preparation_data("other")
    process = quiet_context().Process(target=print)
    process._Popen(process)  # type: ignore[attr-defined]
    (data,) = prepared
    assert not [key for key in data if key.startswith("init_main")]
    assert "sys_path" in data
    assert "init_main_from_path" in spawn.get_preparation_data("other")


def test_a_worker_does_not_run_the_callers_script_again(tmp_path: Path) -> None:
    # Without the usual guard: a worker that ran this script again would start workers without end.
    script = tmp_path / "page.py"
    script.write_text(
        textwrap.dedent(
            """
            from operator import neg
            from dpsynth_core.progress import no_progress
            from dpsynth_core.runs.workers import run_all

            print("the page ran")
            print(run_all(neg, [1, 2, 3], stage="Negating", progress=no_progress, workers=2))
            """
        )
    )
    package = Path(dpsynth_core.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["the page ran", "[-1, -2, -3]"], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("workers", [None, 2])
def test_results_come_in_the_order_of_the_tasks(workers: int | None) -> None:
    assert run_all(abs, [-3, 1, -2], stage="Measuring", progress=no_progress, workers=workers) == [3, 1, 2]


@pytest.mark.parametrize("chosen", [None, "3"])
def test_processes_side_by_side_use_one_thread_each_unless_told_otherwise(
    chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chosen is None:
        monkeypatch.delenv(BLAS_THREADS, raising=False)
    else:
        monkeypatch.setenv(BLAS_THREADS, chosen)
    seen = run_all(os.getenv, [BLAS_THREADS] * 2, stage="Asking", progress=no_progress, workers=2)
    assert seen == [chosen or "1"] * 2
    assert os.environ.get(BLAS_THREADS) == chosen, "this process keeps its own"


@pytest.mark.skipif(not hasattr(os, "setpriority"), reason="Windows has no such thing")
def test_a_worker_of_the_app_gives_way_before_it_has_loaded_anything() -> None:
    process = yielding_context().Process(target=time.sleep, args=(60,))
    process.start()
    try:
        mine, its = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, process.pid or 0))
        assert its == min(19, mine + NICENESS)
    finally:
        process.kill()
        process.join()
