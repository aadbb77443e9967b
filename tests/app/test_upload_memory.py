"""A file that is uploaded is held in memory from its first byte on: nothing of it is written to disk."""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.datastructures import UploadFile
from starlette.requests import Request

from pages.shared import server

CONTENT = b"age,income\n" + b"31,4711\n" * 700_000


def upload() -> Request:
    start = b'--x\r\nContent-Disposition: form-data; name="f"; filename="rows.csv"\r\n\r\n'
    body = start + CONTENT + b"\r\n--x--\r\n"
    pieces = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    return Request({"type": "http", "method": "PUT", "path": "/", "headers": headers}, receive)


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("a part of the upload was written to disk")


def test_no_upload_is_written_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)

    async def read() -> bytes:
        form = await upload().form()
        (file,) = [value for value in form.values() if isinstance(value, UploadFile)]
        return await file.read()

    assert len(CONTENT) > 5 * 1024 * 1024
    with ThreadPoolExecutor(1) as pool:  # a browser test may have left an event loop running in this thread
        assert pool.submit(lambda: asyncio.run(read())).result() == CONTENT
    assert server.MAX_UPLOAD == 200 * 1024 * 1024
