"""Whether the server can do its work: for a proxy, a supervisor or a container that asks from time to time.

Streamlit's own ``/_stcore/health`` only says that the server answers. This looks at what visitors need: the ledger with
its key and head, room for releases and evidence, the settings of sign-in, and the worker processes. The answer names
what is wrong, but never why: the reason may hold paths or names, so it goes to the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings
from pages.shared.sign_in import is_set_up, role_map
from pages.shared.tasks import runner

PATH = "ready"
KEPT_SECONDS = 5.0
"""How long an answer is kept: whoever asks all the time does not keep the database busy."""
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_known: list[tuple[float, tuple[str, ...]]] = []


def _ledger() -> None:
    installed_ledger()


def _stores() -> None:
    settings = Settings.from_environment()
    for store in (settings.release_store, settings.evidence_store):
        if store.full:
            raise DPSynthError(f"The store at {str(store.folder)!r} is full. Set DPSYNTH_RELEASES_GB to more.")


def _sign_in() -> None:
    if is_set_up():
        role_map()


def _workers() -> None:
    if problem := runner().problem:
        raise DPSynthError(problem)


CHECKS: dict[str, Callable[[], None]] = {
    "ledger": _ledger,
    "stores": _stores,
    "sign-in": _sign_in,
    "workers": _workers,
}


def failing() -> tuple[str, ...]:
    """Names of the checks that fail now, or did a moment ago."""
    with _lock:
        if _known and time.monotonic() - _known[0][0] < KEPT_SECONDS:
            return _known[0][1]
        found = tuple(name for name, check in CHECKS.items() if not _passes(name, check))
        _known[:] = [(time.monotonic(), found)]
        return found


def _passes(name: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except DPSynthError as error:
        _log.error("Not ready: %s. %s", name, error)
        return False
    except Exception as error:  # noqa: BLE001  only its type is logged: its text may hold values
        _log.error("Not ready: %s. %s", name, type(error).__name__)
        return False
    return True


async def readiness(_request: Request) -> Response:
    """200 and "ready", or 503 and what is not."""
    found = await run_in_threadpool(failing)
    text = "ready\n" if not found else f"not ready: {', '.join(found)}\n"
    return PlainTextResponse(text, 503 if found else 200, headers={"Cache-Control": "no-store"})
