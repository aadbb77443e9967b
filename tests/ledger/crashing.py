"""A process that is killed at a chosen moment of a charge: ``python -m tests.ledger.crashing POINT``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from dpsynth_core.ledger import head
from dpsynth_core.ledger.chain import Chain
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.privacy.budget import Budget


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after_linking() -> None:
    append = Chain.append

    def appended(*args: Any) -> Any:
        append(*args)
        die()

    Chain.append = appended  # type: ignore[method-assign]


def kill_before_head() -> None:
    head.Head.advance = die  # type: ignore[method-assign]


def kill_in_head() -> None:
    os.replace = die


def kill_after_head() -> None:
    head.sync_directory = die


POINTS: dict[str, Callable[[], None]] = {
    "before the commit": kill_after_linking,
    "after the commit": kill_before_head,
    "while the head is written": kill_in_head,
    "after the head": kill_after_head,
}


if __name__ == "__main__":
    ledger = installed_ledger()
    POINTS[sys.argv[1]]()
    ledger.reserve("table", Budget.of("0.1"), purpose="run", run_id="killed")
    print("returned")
