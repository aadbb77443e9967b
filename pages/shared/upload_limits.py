"""How many bytes of uploaded files the server holds at a time.

Streamlit limits the size of each file. It takes any number of them, though, under any names, from whoever has a page
open, and holds them until that page is closed: a visitor with a script could fill the machine's memory in a minute.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException
from streamlit import config
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.shared.room import UPLOADS_SHARE, machine_bytes

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_UPLOAD = int(config.get_option("server.maxUploadSize")) * 1024 * 1024
"""Of one file."""
PER_TAB = 2 * MAX_UPLOAD + 8 * 1024 * 1024
"""A file, the one that takes its place, and a schema or configuration beside them."""
TOGETHER = max(2 * PER_TAB, int(UPLOADS_SHARE * machine_bytes()))
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/")


class UploadLimits:
    """Refuses an upload as soon as it is more than its tab, or the whole server, may hold."""

    def __init__(self, app: Any, *, per_tab: int = PER_TAB, together: int = TOGETHER) -> None:
        self._app, self._per_tab, self._together = app, per_tab, together
        self._arriving: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one connection."""
        found = _UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        tab, mine = found[1], 0

        async def counted() -> Message:
            nonlocal mine
            message = await receive()
            size = len(message.get("body", b""))
            mine += size
            self._arriving[tab] += size
            self._check(tab)
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._arriving[tab] -= mine
            self._arriving += Counter()  # drops those at zero

    def _check(self, tab: str) -> None:
        held = held_bytes()
        if held[tab] + self._arriving[tab] > self._per_tab:
            raise HTTPException(413, "This page holds as many files as it may. Reload it and upload the file again.")
        if held.total() + self._arriving.total() > self._together:
            raise HTTPException(503, "The server is receiving too many files at the moment. Try again in a minute.")


def held_bytes() -> Counter[str]:
    """What Streamlit holds of the files that each tab has uploaded."""
    files = Runtime.instance().uploaded_file_mgr if Runtime.exists() else None
    if not isinstance(files, MemoryUploadedFileManager):
        return Counter()
    # Each list is made in one step; other threads add and remove files meanwhile.
    tabs = list(files.file_storage.items())
    return Counter({tab: sum(len(file.data) for file in list(stored.values())) for tab, stored in tabs})


def let_go(file: UploadedFile) -> None:
    """Remove a file that the session has taken over; Streamlit would hold it until the tab is closed."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
