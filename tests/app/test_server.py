"""What the server answers to whom, as it runs by ``streamlit run app.py`` and nothing around it."""

from __future__ import annotations

import base64
import http.client
import logging
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from streamlit.runtime import app_session

import pages.shared.server  # noqa: F401  it sets up the log

Answer = tuple[int, dict[str, str]]


def asked(url: str, path: str, host: str | None = None) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def connected(url: str, host: str, origin: str) -> int:
    """The status of a handshake for the socket that pages talk through."""
    parts = urlsplit(url)
    lines = (
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host}",
        f"Origin: {origin}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
        "Sec-WebSocket-Protocol: streamlit",
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(connection.recv(100).split()[1])


@pytest.mark.parametrize("path", ["/", "/Data", "/_stcore/health", "/download/x/y", "/static/none"])
def test_every_answer_forbids_frames_sniffing_and_foreign_scripts(app_url: str, path: str) -> None:
    _, headers = asked(app_url, path)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert re.fullmatch(r"'self'( 'sha256-[\w+/=]+')+", policy["script-src"]), "no script but the app's own"
    assert "http" not in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/metrics",
        "/_stcore/metrics/",
        "/_stcore/metrics?families=session_events",
        "/_stcore/agent/openapi.json",
        "/_stcore/script-health-check",
        "/media/0.csv",
    ],
)
def test_what_nobody_needs_is_closed(app_url: str, path: str) -> None:
    assert asked(app_url, path)[0] == http.HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "localhost@evil"])
@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/_stcore/host-config", "/download/x/y"])
def test_a_foreign_name_for_this_machine_is_refused(app_url: str, path: str, host: str) -> None:
    status, headers = asked(app_url, path, host)
    assert status == http.HTTPStatus.BAD_REQUEST
    assert "set-cookie" not in headers


def test_the_socket_is_for_the_apps_own_pages(app_url: str) -> None:
    here = urlsplit(app_url).netloc
    assert connected(app_url, here, app_url) == http.HTTPStatus.SWITCHING_PROTOCOLS
    assert connected(app_url, "evil.example", "http://evil.example") == http.HTTPStatus.FORBIDDEN
    assert connected(app_url, here, "http://evil.example") == http.HTTPStatus.FORBIDDEN


def test_the_end_of_a_run_is_not_logged_as_a_lost_fragment_and_other_news_is() -> None:
    said = "The fragment with id %s does not exist anymore"
    assert said in Path(app_session.__file__).read_text(encoding="utf-8"), "Streamlit says it in other words"
    logger = logging.getLogger(app_session.__name__)
    assert not logger.filter(logging.makeLogRecord({"msg": said, "args": ("f",)}))
    assert logger.filter(logging.makeLogRecord({"msg": "Something else."}))


def test_the_server_listens_on_this_machine_only(app_url: str) -> None:
    port = urlsplit(app_url).port
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    listening = {row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
    assert listening == {"0100007F"}, "127.0.0.1"
