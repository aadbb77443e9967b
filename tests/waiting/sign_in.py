"""An identity provider (OpenID Connect) in a process of its own, and the app that people sign in to with it."""

from __future__ import annotations

import http.client
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.waiting.browser import PATIENCE, quiet
from tests.waiting.server import free_port, serving

PEOPLE = {
    "sue": ("Sue Steward", ["stewards"]),
    "ana": ("Ana Analyst", ["lab", "board"]),
    "rob": ("Rob Reviewer", ["board"]),
    "rea": ("Rea Reader", ["everybody"]),
    "eve": ("Eve Stranger", ["elsewhere"]),
}
"""By subject: name and groups."""
ROLES = """
[roles]
claim = "groups"
steward = ["stewards"]
analyst = ["lab"]
reviewer = ["board"]
reader = "everybody"
"""


@contextmanager
def provider(*, seconds: int = 3600) -> Iterator[str]:
    """Its address. Identity tokens are valid for so many seconds."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--token-max-age", str(seconds)]
    for subject, (name, groups) in PEOPLE.items():
        command += ["--user-claims", json.dumps({"sub": subject, "name": name, "groups": groups})]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_answers(running, port)
        yield f"http://localhost:{port}"
    finally:
        running.terminate()
        running.wait(PATIENCE)


def _wait_until_it_answers(running: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and running.poll() is None:
        connection = http.client.HTTPConnection("localhost", port, timeout=1)
        try:
            connection.request("GET", "/.well-known/openid-configuration")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    pytest.fail("The identity provider did not start.")


@contextmanager
def serving_with_sign_in(
    issuer: str, home: Path, *, roles: str = ROLES, seen_as: str = "", options: tuple[str, ...] = ()
) -> Iterator[str]:
    """The address of an app that people sign in to.

    Args:
        issuer: The identity provider.
        home: Where its ledger, its secrets and its log live.
        roles: Which groups have which role.
        seen_as: How visitors address it, if a proxy stands before it.
        options: Of Streamlit.
    """
    port = free_port()
    file = home / "secrets.toml"
    file.write_text(
        f"""[auth]
redirect_uri = "{seen_as or f"http://localhost:{port}"}/oauth2callback"
cookie_secret = "{secrets.token_hex(32)}"
client_id = "dpsynth"
client_secret = "{secrets.token_hex(16)}"
server_metadata_url = "{issuer}/.well-known/openid-configuration"
{roles}""",
        encoding="utf-8",
    )
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--secrets.files", str(file), *options]
    host = urlsplit(seen_as).hostname or "localhost"
    with serving([*command, "--server.port"], home, port=port, host=host) as (url, _):
        yield url


def sign_in(page: Page, url: str, subject: str) -> Page:
    """From the app to the provider and back."""
    page.goto(url)
    quiet(page).get_by_role("button", name="Sign in", exact=True).press("Enter")
    page.get_by_role("button", name=subject, exact=True).first.click()
    expect(page.get_by_text(f"Signed in: {PEOPLE[subject][0]}")).to_be_visible()
    return quiet(page)
