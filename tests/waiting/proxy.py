"""The proxy configuration that we ship, in a real nginx."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright

from tests.waiting.browser import PATIENCE
from tests.waiting.server import CHROMIUM_OPTIONS, ROOT, free_port

NAME = "dpsynth.example.org"


@dataclass(frozen=True, kw_only=True)
class Proxy:
    port: int
    folder: Path

    def ask(self, path: str, *, host: str | None = None, name: str = NAME, **headers: str) -> Answer:
        """One request; the name in the handshake and the name in the request can differ."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        with unchecked.wrap_socket(plain, server_hostname=name) as connection:
            lines = {"Host": host or f"{NAME}:{self.port}", "Connection": "close", **headers}
            text = "".join(f"{key}: {value}\r\n" for key, value in lines.items())
            connection.sendall(f"GET {path} HTTP/1.1\r\n{text}\r\n".encode())
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return Answer(status=answer.status, headers=[(key.lower(), value) for key, value in answer.getheaders()])


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@contextmanager
def proxy_before(url: str, folder: Path, *, port: int | None = None) -> Iterator[Proxy]:
    """An nginx with the shipped configuration, before the app at this address.

    Args:
        url: Of the app.
        folder: For its certificate, its log and what it buffers.
        port: Where it listens; None: anywhere.
    """
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed, so the proxy configuration cannot be started: install it to test it.")
    key = ["-keyout", str(folder / "key"), "-out", str(folder / "cert"), "-days", "2", "-subj", f"/CN={NAME}"]
    make_key = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run([*make_key, *key], check=True, capture_output=True)
    port = port or free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(around(shipped(url, port, folder), folder))
    server = subprocess.Popen([nginx, "-p", str(folder), "-c", str(configuration), "-g", "daemon off;"])
    try:
        wait_for(server, port)
        yield Proxy(port=port, folder=folder)
    finally:
        server.terminate()
        server.wait(PATIENCE)


@contextmanager
def browser_that_knows_it(playwright: Playwright, executable: str) -> Iterator[Browser]:
    """A browser for which the server's name is this machine."""
    options = [*CHROMIUM_OPTIONS, f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
    browser = playwright.chromium.launch(executable_path=executable, args=options)
    try:
        yield browser
    finally:
        browser.close()


def shipped(url: str, port: int, folder: Path) -> str:
    """The file that we ship; only ports and paths are this test's own."""
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "127.0.0.1:8501": url.removeprefix("http://").replace("localhost", "127.0.0.1"),
        "/etc/ssl/certs/dpsynth.pem": str(folder / "cert"),
        "/etc/ssl/private/dpsynth.key": str(folder / "key"),
        "/var/log/nginx/dpsynth.log": str(folder / "access.log"),
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def around(text: str, folder: Path) -> str:
    """What Debian's own configuration has around it, in a folder of this test's own."""
    bodies = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ {bodies}\n{text}\n}}"


def wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None, "nginx does not accept the configuration"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end
        time.sleep(0.05)
