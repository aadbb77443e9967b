"""JSON that anybody may have written: refused before it costs anything, never with a text of its own length."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import MAX_MESSAGE, DPSynthError, shown
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.table.json_text import MAX_JSON_BYTES, read_json
from dpsynth_core.table.schema import Schema

AGE = {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True}
SEX = {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True}
SCHEMA = {"columns": [AGE, SEX], "rows_per_person": 1, "file": {"delimiter": ",", "skip_rows": 0}}
CONFIGURATION = json.loads(RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="1").to_json())
READERS: dict[str, tuple[Callable[[str], object], dict[str, Any]]] = {
    "schema": (Schema.from_json, SCHEMA),
    "configuration": (RunConfig.from_json, CONFIGURATION),
}
HOSTILE = [
    "1e-9999999",
    '"1e-9999999"',
    '"1e9999999"',
    "9" * 5_000,
    "-" + "9" * 90,
    "1e400",
    "NaN",
    "-Infinity",
    '"' + "x" * 2_000_000 + '"',
    "[" * 900 + "]" * 900,
    "[" * 100_000,
    "{}",
    "[]",
    "null",
    "true",
    '{"title": 1}',
    '"\\ud800"',
    '"\\u0000"',
]


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value, the whole included."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(path for key, inner in inside for path in paths(inner, (*before, key)))]


def replaced(value: Any, path: tuple[Any, ...], text: str) -> str:
    """The JSON with another text in one place."""
    if not path:
        return text
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = "HOSTILE"
    return json.dumps(copy).replace('"HOSTILE"', text)


def read_or_refuse(reader: Callable[[str], object], text: str) -> None:
    message = ""
    try:
        reader(text)
    except DPSynthError as refusal:
        message = str(refusal)
    assert len(message) <= MAX_MESSAGE


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: f"{text[:12]}, {len(text)} characters")
@pytest.mark.parametrize("name", READERS)
def test_no_field_of_a_file_can_do_more_than_be_refused(name: str, hostile: str) -> None:
    reader, value = READERS[name]
    for path in paths(value):
        read_or_refuse(reader, replaced(value, path, hostile))
    read_or_refuse(reader, json.dumps(value)[:-1] + f", {json.dumps('n' * 2_000_000)}: 1}}")


@pytest.mark.parametrize("key", MECHANISMS)
@pytest.mark.parametrize("hostile", [*HOSTILE, "0", "-1", '"a"', "1e308", "1e-308", "[1, 2]"])
def test_no_parameter_of_a_mechanism_can_do_more_than_be_refused(key: str, hostile: str) -> None:
    saved = json.loads(RunConfig(mechanism=MECHANISMS[key](), epsilon="1").to_json())
    for name in [*saved["parameters"], "title", "status", "fit", "__class__"]:
        text = replaced(saved | {"parameters": {**saved["parameters"], name: 1}}, ("parameters", name), hostile)
        read_or_refuse(RunConfig.from_json, text)


@pytest.mark.parametrize(
    "hostile", [*HOSTILE, "10" + "0" * 95, "-1e308", '"2024-12-31"', '"999999-01-01"', '"%' + "%" * 100 + '"']
)
@pytest.mark.parametrize("kind", ["continuous", "integer", "categorical", "ordinal", "boolean", "date", "none"])
def test_no_fact_of_a_column_can_do_more_than_be_refused(kind: str, hostile: str) -> None:
    column = {"name": "x", "kind": kind, "public": True}
    facts = ("name", "lower", "upper", "bins", "categories", "other", "decimals", "date_format", "unit", "nullable")
    for fact in (*facts, "origin", "public", "title"):
        whole = {"columns": [{"lower": 0, "upper": 1, **column, fact: 0}]}
        read_or_refuse(Schema.from_json, replaced(whole, ("columns", 0, fact), hostile))
        labelled = {"columns": [{"categories": ["a", "b"], **column, fact: 0}]}
        read_or_refuse(Schema.from_json, replaced(labelled, ("columns", 0, fact), hostile))


@pytest.mark.parametrize("bound", [10**400, -(10**400), 10**5000], ids=shown)
@pytest.mark.parametrize("kind", ["integer", "continuous", "categorical"])
def test_numbers_that_no_float_holds_are_refused_in_python_too(kind: str, bound: int) -> None:
    facts = {"categories": [bound, 1]} if kind == "categorical" else {"lower": bound, "upper": bound + 1}
    with pytest.raises(DPSynthError, match="finite number"):
        Schema.from_dict({"columns": [{"name": "x", "kind": kind, **facts}]})


def test_a_title_is_no_parameter() -> None:
    with pytest.raises(DPSynthError, match="parameter is 'title'; allowed: "):
        RunConfig.from_json('{"mechanism": "kd_tree", "parameters": {"title": 1}}')


@pytest.mark.parametrize("text", [" " * (MAX_JSON_BYTES + 1), "[" * 30 + "]" * 30, "9" * 101, "0." + "1" * 100, "NaN"])
def test_what_nobody_saved_here_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"longer|nested|characters|not JSON"):
        read_json(text)


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    )
)
def test_any_json_is_a_schema_a_configuration_or_a_refusal(value: Any) -> None:
    for reader, known in READERS.values():
        read_or_refuse(reader, json.dumps(value))
        for path in paths(known):
            if path:
                read_or_refuse(reader, replaced(known, path, json.dumps(value)))
