"""However many files a visitor sends, the server holds no more of them than it may."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

import pytest
from starlette.exceptions import HTTPException

from benchmarks.visitor import Visitor
from pages.shared.upload_limits import MAX_UPLOAD, PER_TAB, TOGETHER, UploadLimits
from tests.waiting.server import serving

Found = TypeVar("Found")
PER_TAB_HERE = 10 * 1024 * 1024
"""Where a file may have one megabyte."""
FILES = 12
"""Of almost a megabyte."""
ROWS = 260_000
CONTENT = b"number\n" + b"".join(b"%d\n" % (each % 1000) for each in range(ROWS))


def apart(work: Coroutine[Any, Any, Found]) -> Found:
    with ThreadPoolExecutor() as thread:  # tests in a browser keep an event loop in this thread
        return thread.submit(asyncio.run, work).result()


async def sent(limits: UploadLimits, tab: str, pieces: list[bytes], pause: asyncio.Event | None = None) -> int:
    """What becomes of an upload in these pieces; after the last one it waits until it may end."""
    answer: list[int] = []

    async def receive() -> dict[str, Any]:
        if not pieces and pause is not None:
            await pause.wait()
        return {"type": "http.request", "body": pieces.pop(0) if pieces else b"", "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        answer.append(message["status"])

    scope = {"type": "http", "method": "PUT", "path": f"/_stcore/upload_file/{tab}/{uuid.uuid4()}"}
    try:
        await limits(scope, receive, send)
    except HTTPException as refusal:
        return refusal.status_code
    return answer[0]


async def store(_scope: Any, receive: Any, send: Any) -> None:
    """Takes everything in, and keeps nothing."""
    while (await receive())["body"]:
        pass
    await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT})


async def many() -> list[int]:
    limits, end = UploadLimits(store, per_tab=30, together=100), asyncio.Event()
    slow = [asyncio.create_task(sent(limits, f"tab {at}", [b"x" * 25], end)) for at in range(3)]
    await asyncio.sleep(0.01)
    answers = [
        await sent(limits, "tab 0", [b"x" * 4, b"x" * 4]),
        await sent(limits, "tab 3", [b"x" * 20]),
        await sent(limits, "tab 3", [b"x" * 20, b"x" * 10]),
    ]
    end.set()
    answers += await asyncio.gather(*slow)
    return [*answers, await sent(limits, "tab 3", [b"x" * 30])]


def test_uploads_that_arrive_count_for_their_tab_and_for_all() -> None:
    too_many, fine, too_many_together, *others = apart(many())
    assert too_many == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert fine == HTTPStatus.NO_CONTENT
    assert too_many_together == HTTPStatus.SERVICE_UNAVAILABLE
    assert others == [HTTPStatus.NO_CONTENT] * 4, "the others are not touched, and once they have ended there is room"


def test_a_file_can_be_replaced_by_another_of_the_largest_size() -> None:
    assert 2 * MAX_UPLOAD < PER_TAB < TOGETHER


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app with files of one megabyte at most."""
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.maxUploadSize", "1"]
    with serving([*command, "--server.port"], tmp_path_factory.mktemp("app")) as (address, _):
        yield address


async def at_the_uploader(visitor: Visitor) -> None:
    await visitor.go("Data")
    await visitor.choose("Source", "My own file")
    await visitor.tick("This file holds only public")


async def send_without_end(url: str) -> list[int]:
    """One file as a page would send it, and then others to the same tab."""
    async with Visitor(url=url, canaries=re.compile(b"canary")) as visitor:
        await at_the_uploader(visitor)
        await visitor.upload("table.csv", CONTENT)
        folder = visitor.uploaded_to.rsplit("/", 1)[0]
        return [await visitor.put(f"{folder}/{uuid.uuid4()}", "table.csv", CONTENT) for _ in range(FILES)]


def test_a_tab_cannot_send_files_without_end(url: str) -> None:
    assert FILES * len(CONTENT) > PER_TAB_HERE > len(CONTENT)
    answers = apart(send_without_end(url))
    assert answers[0] == HTTPStatus.NO_CONTENT
    assert answers[-1] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


async def use_one_after_the_other(url: str) -> int:
    async with Visitor(url=url, canaries=re.compile(b"canary")) as visitor:
        await at_the_uploader(visitor)
        for number in range(FILES):
            await visitor.upload(f"table{number}.csv", CONTENT)
            await visitor.press("Use this file")
            await visitor.until(lambda name=f"table{number}.csv: {ROWS:,} rows": name in visitor.text)
        return FILES


def test_files_that_are_in_use_take_no_room_of_the_next(url: str) -> None:
    assert apart(use_one_after_the_other(url)) == FILES
