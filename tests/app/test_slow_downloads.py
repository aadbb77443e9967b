"""Whoever fetches files and does not take them holds up nobody else, and fills no memory."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus

import pytest
import uvicorn
from starlette.applications import Starlette

from pages.shared.downloads import MAX_SENDING, PATH, Download
from pages.shared.memory import COOKIE, MEMORY, browser_of
from pages.shared.server import MIDDLEWARE, ROUTES
from pages.shared.session import Session
from tests.waiting.server import free_port

CONTENT = b"0123456789abcdef" * 2**20
"""More than the system takes in on its way."""
SECONDS = 20.0


@pytest.fixture
def port() -> Iterator[int]:
    """The app's own addresses, without its pages."""
    port = free_port()
    config = uvicorn.Config(Starlette(routes=ROUTES, middleware=MIDDLEWARE), port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    server.force_exit = True
    thread.join(SECONDS)


class Browser:
    """With a session of its own, which offers one file."""

    def __init__(self, port: int, number: int) -> None:
        self.port, self.cookie = port, f"2|00000000|{bytes([number]).hex() * 16}|1"
        self.session = Session()
        token = MEMORY.keep(self.session, browser_of(self.cookie))
        file = Download(name="file.bin", media_type="application/octet-stream", content=lambda: CONTENT)
        self.path = f"/{PATH}/{token}/{self.session.downloads.offer('tab', 'file', file)}"

    def ask(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=SECONDS)
        connection.request("GET", self.path, headers={"Cookie": f"{COOKIE}={self.cookie}"})
        return connection


def test_files_that_nobody_takes_are_few_and_those_of_others_arrive(port: int) -> None:
    slow, other = Browser(port, 1), Browser(port, 2)
    waiting = [slow.ask() for _ in range(MAX_SENDING)]
    answers = [connection.getresponse() for connection in waiting]
    assert [answer.status for answer in answers] == [HTTPStatus.OK] * MAX_SENDING
    assert slow.ask().getresponse().status == HTTPStatus.TOO_MANY_REQUESTS
    theirs = other.ask().getresponse()
    assert theirs.read() == CONTENT
    assert theirs.getheader("Content-Length") == str(len(CONTENT))
    assert answers[0].read() == CONTENT, "it comes as soon as it is taken"
    waiting[1].close()
    answers[1].close()
    end = time.monotonic() + SECONDS
    while (again := slow.ask().getresponse()).status != HTTPStatus.OK:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert again.read() == CONTENT
    for answer in answers:
        answer.close()
