"""JSON text that anybody may have written: bounded in size, depth and length of numbers before it is used."""

from __future__ import annotations

import json
from typing import Any

MAX_JSON_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 20
MAX_NUMBER = 100
"""Characters of a number."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is no JSON, or is larger, more deeply nested or has longer numbers than anything saved here.

    Example:
        >>> read_json('{"bins": 32}')
        {'bins': 32}
    """
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"longer than {MAX_JSON_BYTES} bytes")
    try:
        value = json.loads(text, parse_int=_int, parse_float=_float, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_depth(value)
    return value


def _int(text: str) -> int:
    _check_length(text)
    return int(text)


def _float(text: str) -> float:
    _check_length(text)
    return float(text)


def _check_length(text: str) -> None:
    if len(text) > MAX_NUMBER:
        raise ValueError(f"a number of more than {MAX_NUMBER} characters")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            return
    raise ValueError("nested too deeply")


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
