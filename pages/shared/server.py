"""The web server around the pages: who may ask, what every answer says, and how files are handed over.

Streamlit serves the app in ``app.py`` through this. All of it holds without a proxy; docs/server.md says what a proxy
adds.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import streamlit
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.formparsers import MultiPartParser
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from dpsynth_core.errors import DPSynthError
from pages.shared.downloads import PATH, Download
from pages.shared.memory import COOKIE, MEMORY, browser_of
from pages.shared.readiness import PATH as READY
from pages.shared.readiness import readiness
from pages.shared.sign_in import sender
from pages.shared.upload_limits import MAX_UPLOAD, UploadLimits

if TYPE_CHECKING:
    from pages.shared.session import Session

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BASE = "/".join(("", *str(config.get_option("server.baseUrlPath")).strip("/").split("/"))).rstrip("/")
"""Under which the app is served: empty, or a slash and the path."""
CLOSED = re.compile(f"{re.escape(BASE)}/(_stcore/(metrics|agent|script-health-check)|media)(/|$)")
"""Nobody needs these: figures about the server, a way in for programs, and Streamlit's own downloads, whose addresses
open without a cookie."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # The address holds the session's token. It opens nothing by itself, but it is nobody else's business.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
# An upload of more than a megabyte would be written to a temporary file, unencrypted, while it arrives.
MultiPartParser.spool_max_size = 2 * MAX_UPLOAD
MAX_MAKING = 4
"""Files that are made at the same time: a million rows of ten columns take about 140 MB while they are written."""
PIECE = 256 * 1024
"""Bytes of a file that are handed on at a time."""
_making = asyncio.Semaphore(MAX_MAKING)
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_log = logging.getLogger(__name__)


@cache
def inline_script_hashes() -> str:
    """Streamlit's page has a script within itself. It is allowed by its hash; any other would not run."""
    page = Path(streamlit.__file__).parent / "static" / "index.html"
    scripts = _INLINE_SCRIPT.findall(page.read_text(encoding="utf-8"))
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def content_security_policy(host: str) -> str:
    """What a page of the app may load: its own scripts, and nothing from anywhere else.

    Styles are written into the page while it runs, so they cannot be forbidden. Old browsers do not count a socket to
    the same host as the same origin, so it is named.
    """
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {inline_script_hashes()}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host}",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-src 'none'",
            "frame-ancestors 'none'",
        )
    )


class Guard:
    """Refuses foreign hosts and closed addresses, and adds the security headers to every answer.

    A page of another site can point its own name at this machine and then ask as if it were the app. Streamlit's
    allow-list ``server.allowedHosts`` stops that for the socket; here it holds for every request.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host")
        if not is_host_allowed(host):
            await self._refuse(scope, receive, send, "This name is not in the server's list of allowed hosts.", 400)
            return
        if CLOSED.match(scope["path"]):
            await self._refuse(scope, receive, send, "Not found.", 404)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update({**HEADERS, "Content-Security-Policy": content_security_policy(host or "")})
            await send(message)

        await self._app(scope, receive, send_guarded)

    @staticmethod
    async def _refuse(scope: Scope, receive: Receive, send: Send, why: str, status: int) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse(why, status, headers=HEADERS)(scope, receive, send)


async def hand_over(request: Request) -> Response:
    """A file that a page of this browser's session offers."""
    browser = browser_of(request.cookies.get(COOKIE, ""))
    session: Session | None = MEMORY.find(request.path_params["token"], browser) if browser else None
    try:
        person = sender(request)
    except DPSynthError as error:
        return _sorry(str(error), 403)
    if session is not None and session.person.subject != person.subject:
        return _sorry("You are not signed in any more. Go back to the app, reload the page and sign in.", 403)
    download = None if session is None else session.downloads.find(request.path_params["offer"])
    if download is None:
        return _sorry("This file is not on offer any more. Go back to the app, reload the page and press again.", 404)
    if session is None or not session.downloads.begin_sending():
        return _sorry("Some files of yours are still on their way. Wait for one of them, then press again.", 429)
    try:
        made = await _made(download)
    except BaseException:
        session.downloads.end_sending()
        raise
    if isinstance(made, Response):
        session.downloads.end_sending()
        return made
    return _Sending(made, download, session.downloads.end_sending)


async def _made(download: Download) -> bytes | Response:
    """The file, or why there is none."""
    try:
        async with _making:
            return await run_in_threadpool(download.content)
    except DPSynthError as error:
        return _sorry(f"The file was not made. {error}", 409)
    except Exception as error:  # noqa: BLE001  only its type is logged: its text may hold values
        _log.error("A download failed with %s.", type(error).__name__)
        return _sorry("An unexpected error kept the file from being made. Please report it.", 500)


class _Sending(StreamingResponse):  # type: ignore[misc]
    """A file in pieces, each handed on when the one before has left, so that it is known when all of it has."""

    def __init__(self, content: bytes, download: Download, sent: Callable[[], None]) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(content), PIECE):
                yield content[start : start + PIECE]

        headers = {
            "Content-Disposition": f"attachment; filename*=utf-8''{quote(download.name, safe='')}",
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
        }
        super().__init__(pieces(), media_type=download.media_type, headers=headers)
        self._sent = sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._sent()


def _sorry(text: str, status: int) -> Response:
    return PlainTextResponse(text, status, headers={"Cache-Control": "no-store"})


def _is_news(record: logging.LogRecord) -> bool:
    """False for what Streamlit logs each time a run ends: that its page had one more look at it under way."""
    return "The fragment with id" not in record.getMessage()


logging.getLogger("streamlit.runtime.app_session").addFilter(_is_news)
ROUTES = (
    Route(f"{BASE}/{PATH}/{{token}}/{{offer}}", hand_over, methods=["GET"]),
    Route(f"{BASE}/{READY}", readiness, methods=["GET"]),
)
MIDDLEWARE = (Middleware(Guard), Middleware(UploadLimits))
