"""The proxy configuration that we ship, in a real nginx before the real app."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Playwright, expect

from tests.waiting.browser import PATIENCE, downloaded, press
from tests.waiting.server import CHROMIUM_OPTIONS, ROOT, free_port, serving

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


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed, so the proxy configuration cannot be started: install it to test it.")
    folder = tmp_path_factory.mktemp("proxy")
    key = ["-keyout", str(folder / "key"), "-out", str(folder / "cert"), "-days", "2", "-subj", f"/CN={NAME}"]
    make_key = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run([*make_key, *key], check=True, capture_output=True)
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.allowedHosts", NAME]
    with serving([*command, "--server.port"], folder, host=NAME) as (url, _):
        port = free_port()
        configuration = folder / "nginx.conf"
        configuration.write_text(around(shipped(url, port, folder), folder))
        server = subprocess.Popen([nginx, "-p", str(folder), "-c", str(configuration), "-g", "daemon off;"])
        try:
            wait_for(server, port)
            yield Proxy(port=port, folder=folder)
        finally:
            server.terminate()
            server.wait(PATIENCE)


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


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/download/x/y", "/_stcore/metrics"])
def test_every_answer_has_every_header_once(proxy: Proxy, path: str) -> None:
    answer = proxy.ask(path)
    for name, value in {
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "strict-transport-security": "max-age=31536000",
    }.items():
        assert answer.all(name) == [value]
    (policy,) = answer.all("content-security-policy")
    assert "frame-ancestors 'none'" in policy
    assert not any("/" in value for value in answer.all("server")), "its version is nobody's business"


def test_the_cookie_is_for_this_site_and_for_encrypted_connections_only(proxy: Proxy) -> None:
    (cookie,) = proxy.ask("/_stcore/health").all("set-cookie")
    assert cookie.startswith("_streamlit_xsrf=")
    assert "secure" in cookie.lower()
    assert "samesite=strict" in cookie.lower()


@pytest.mark.parametrize(
    "path", ["/_stcore/metrics", "/_stcore/metrics?families=x", "/_stcore/agent/mcp", "/media/a.csv"]
)
def test_what_nobody_needs_is_closed(proxy: Proxy, path: str) -> None:
    assert proxy.ask(path).status == http.HTTPStatus.NOT_FOUND


def test_other_names_are_refused_in_the_handshake_and_in_the_request(proxy: Proxy) -> None:
    with pytest.raises(ssl.SSLError):
        proxy.ask("/", name="evil.example")
    with pytest.raises(http.client.RemoteDisconnected):
        proxy.ask("/", host="evil.example")


def test_the_log_holds_no_address(proxy: Proxy) -> None:
    proxy.ask("/download/token-of-a-session/offer?s=token-of-a-session")
    log = (proxy.folder / "access.log").read_text(encoding="utf-8")
    assert "GET 404" in log
    assert "token-of-a-session" not in log


@pytest.mark.browser
def test_the_app_works_behind_it_and_nothing_touches_the_disk(
    proxy: Proxy, playwright: Playwright, browser_type_launch_args: dict[str, str]
) -> None:
    options = [*CHROMIUM_OPTIONS, f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
    browser = playwright.chromium.launch(executable_path=browser_type_launch_args["executable_path"], args=options)
    try:
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        refused: list[str] = []
        page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
        page.goto(f"https://{NAME}:{proxy.port}/")
        press(page, "Try an example")
        expect(page.get_by_role("heading", name="Pictures")).to_be_visible(timeout=2 * PATIENCE * 1000)
        assert b"blood pressure" in downloaded(page, "Save schema").read_bytes()
        assert not refused
    finally:
        browser.close()
    buffered = [
        path for kind in ("client_body", "proxy") for path in (proxy.folder / kind).rglob("*") if path.is_file()
    ]
    assert not buffered
