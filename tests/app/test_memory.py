from __future__ import annotations

import pytest

from pages.shared.memory import Memory, browser_of


def masked(token: bytes, mask: bytes) -> str:
    hidden = bytes(byte ^ mask[i % 4] for i, byte in enumerate(token))
    return f"2|{mask.hex()}|{hidden.hex()}|1794800512"


TOKEN, OTHER = bytes(range(16)), bytes(range(1, 17))


def test_a_browser_is_recognised_however_its_cookie_is_masked() -> None:
    first, second = (browser_of(masked(TOKEN, mask)) for mask in (b"\x01\x02\x03\x04", b"\xaa\xbb\xcc\xdd"))
    assert first == second
    assert first != browser_of(masked(OTHER, b"\x01\x02\x03\x04"))
    assert TOKEN.hex() not in first


@pytest.mark.parametrize("cookie", ["", "2", "2|||", "2|zz|zz|1", "2|01020304|0102|1", "nonsense"])
def test_no_cookie_no_browser(cookie: str) -> None:
    assert browser_of(cookie) == ""


def test_a_session_is_found_by_its_own_browser_only() -> None:
    memory = Memory()
    token = memory.keep("mine", "browser")
    assert memory.find(token, "browser") == "mine"
    assert memory.find(token, "another browser") is None
    assert memory.find("guess", "browser") is None
    assert len(token) >= 32


def test_what_is_not_used_is_forgotten() -> None:
    memory = Memory(idle_seconds=0)
    assert memory.find(memory.keep("mine", "browser"), "browser") is None


def test_only_so_many_are_kept() -> None:
    memory = Memory(most=2)
    tokens = [memory.keep(i, "browser") for i in range(5)]
    assert sum(memory.find(token, "browser") is not None for token in tokens) == 2
    assert memory.find(tokens[-1], "browser") == 4
