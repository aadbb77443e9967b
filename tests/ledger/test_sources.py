"""The list of this server's tables: what it may say, who may use what, and that nothing else can be reached."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dpsynth_core.errors import DPSynthError, EngineError, ParameterError, RoleError
from dpsynth_core.ledger.people import ONE_PERSON, Person
from dpsynth_core.ledger.sources import SourceTable, list_file, read_sources, sources_for
from dpsynth_core.table.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": [{"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True}],
        "file": {"format": "parquet"},
    }
)
ADA = Person(subject="https://id.example.org 7", name="Ada", roles=frozenset({"analyst"}))
BOB = Person(subject="https://id.example.org 8", name="Bob", roles=frozenset({"reader"}))
CANARY = "canary-4711"


def written(folder: Path, text: str) -> Path:
    file = folder / "sources.toml"
    file.write_text(text, encoding="utf-8")
    return file


def listed(folder: Path, **more: object) -> Path:
    """A list with one Parquet file in it."""
    table = folder / "people.parquet"
    pd.DataFrame({"age": [30, 40, 50], "note": [CANARY] * 3}).to_parquet(table)
    entry = {"name": "People", "engine": "duckdb", "location": str(table), **more}
    return written(folder, "[[source]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items()))


def used(file: Path, by: Person = ONE_PERSON, name: str = "People", *, teaching: bool = False) -> SourceTable:
    """The table as somebody uses it who has opened it just now."""
    asked = SourceTable(name=name, by=by, file=file, teaching=teaching)
    return replace(asked, n=3, stamp=asked.source().stamp() or "")


def test_a_server_without_a_list_offers_nothing(tmp_path: Path) -> None:
    assert list_file({}) is None
    assert list_file({"DPSYNTH_SOURCES": str(tmp_path / "list.toml")}) == tmp_path / "list.toml"
    with pytest.raises(ParameterError, match=r"DPSYNTH_SOURCES is 'list.toml'; allowed: the absolute path"):
        list_file({"DPSYNTH_SOURCES": "list.toml"})


def test_a_list_says_what_there_is_and_for_whom(tmp_path: Path) -> None:
    file = listed(tmp_path, who=["steward", ADA.subject], schema=str(tmp_path / "facts.json"))
    (source,) = read_sources(file)
    assert (source.name, source.engine, source.who) == ("People", "duckdb", ("steward", ADA.subject))
    assert source.admits(ADA)
    assert not source.admits(BOB)
    assert not source.admits(replace(ADA, subject="https://id.example.org 70"))
    assert source.admits(ONE_PERSON)


def test_where_nobody_is_named_everybody_may_and_an_empty_list_is_for_nobody(tmp_path: Path) -> None:
    assert read_sources(listed(tmp_path))[0].admits(BOB)
    assert not read_sources(listed(tmp_path, who=[]))[0].admits(ONE_PERSON)


def test_an_empty_subject_opens_nothing(tmp_path: Path) -> None:
    (source,) = read_sources(listed(tmp_path, who=[" "]))
    assert not source.admits(Person())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = 'people.parquet'", "location is 'people.parquet'"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '../people.parquet'", "an absolute path"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = 's3://people'", "an absolute path"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '/a'\nschema = 'facts.json'", "schema is 'facts.json'"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '/a'\nspill = '/b'", "key is 'spill'"),
        ("[settings]\nall = true", "key is 'settings'"),
        ("[[source]]\nname = 'A'\nengine = 'sqlite'\nlocation = '/a'", "engine is 'sqlite'; allowed: duckdb or spark"),
        ("[[source]]\nname = 'A'\nengine = 'spark'\nlocation = '/a'", "schema is None"),
        ("[[source]]\nname = 'A'\nlocation = '/a'", "engine is None"),
        ("[[source]]\nname = 3\nengine = 'duckdb'\nlocation = '/a'", "name is 'int'; allowed: text"),
        ('[[source]]\nname = "A\\nB"\nengine = "duckdb"\nlocation = "/a"', "on one line"),
        ("[[source]]\nname = ''\nengine = 'duckdb'\nlocation = '/a'", "name is ''"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '/a'\nwho = 'analyst'", "a list of roles"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '/a'\nwho = ['analysts']", "who is 'analysts'"),
        ("[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '/a'\npublic = 'yes'", "true or false"),
        (
            "[[source]]\nname = 'A'\nengine = 'duckdb'\nlocation = '/a'\n" * 2,
            "name is 'A'; allowed: a name that occurs",
        ),
        ("source = 3", "a section"),
        ("[[source]", "is not TOML"),
    ],
)
def test_a_list_that_is_not_understood_is_refused_as_a_whole(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DPSynthError, match=said.replace("[", r"\[")):
        read_sources(written(tmp_path, text))


def test_a_list_that_is_not_there_is_an_error_and_not_an_empty_list(tmp_path: Path) -> None:
    with pytest.raises(DPSynthError, match=r"cannot be read. DPSYNTH_SOURCES names the file 'none.toml'"):
        read_sources(tmp_path / "none.toml")


def test_a_table_is_opened_by_its_name_and_its_rows_stay(tmp_path: Path) -> None:
    with used(listed(tmp_path)).opened(SCHEMA) as table:
        assert (table.n, table.file_columns) == (3, ("age", "note"))
        assert table.counts(["age"]).counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["people.parquet", "../People", "/etc/passwd", "people", "People ", "", "*"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(RoleError, match="You may not use the table"):
        used(listed(tmp_path), name=name)


def test_whoever_may_not_use_it_cannot_tell_that_it_is_there(tmp_path: Path) -> None:
    file = listed(tmp_path, who=["steward"])
    with pytest.raises(RoleError) as refused:
        SourceTable(name="People", by=ADA, file=file, teaching=False).source()
    with pytest.raises(RoleError) as absent:
        SourceTable(name="Animals", by=ADA, file=file, teaching=False).source()
    assert str(refused.value).replace("People", "Animals") == str(absent.value)
    assert not sources_for(ADA, teaching=False, file=file)


def test_without_an_account_only_public_rows_are_used(tmp_path: Path) -> None:
    with pytest.raises(RoleError):
        used(listed(tmp_path), teaching=True)
    assert used(listed(tmp_path, public=True), teaching=True).n == 3


def test_it_is_looked_up_again_whenever_it_is_used(tmp_path: Path) -> None:
    table = used(listed(tmp_path), ADA)
    listed(tmp_path, who=["steward"])
    with pytest.raises(RoleError), table.opened(SCHEMA):
        pass
    written(tmp_path, "")
    with pytest.raises(RoleError):
        table.check()


def test_a_file_that_was_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    file = listed(tmp_path)
    table, path = used(file), tmp_path / "people.parquet"
    table.check()
    os.utime(path, ns=(1, 1))
    for use in (table.check, lambda: table.opened(SCHEMA).__enter__()):
        with pytest.raises(EngineError, match="'People' was changed after you opened it"):
            use()
    path.unlink()
    with pytest.raises(EngineError, match="'People' is not where the list of this server says it is"):
        table.check()


def test_a_link_that_points_elsewhere_now_is_a_changed_file(tmp_path: Path) -> None:
    listed(tmp_path)
    other = tmp_path / "other.parquet"
    pd.DataFrame({"age": [1, 2, 3], "note": ["x"] * 3}).to_parquet(other)
    link = tmp_path / "link.parquet"
    link.symlink_to(tmp_path / "people.parquet")
    table = used(listed(tmp_path, location=str(link)))
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(EngineError, match="was changed"), table.opened(SCHEMA):
        pass


def test_a_folder_of_parquet_files_is_one_table_and_any_other_folder_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    listed(folder)
    table = used(listed(tmp_path, location=str(folder)))
    with table.opened(SCHEMA) as rows:
        assert rows.n == 3
    (folder / "more.parquet").write_bytes((folder / "people.parquet").read_bytes())
    with pytest.raises(EngineError, match="was changed"):
        table.check()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(EngineError, match="The folder 'People' holds no Parquet files"):
        used(listed(tmp_path, location=str(empty)))


def test_errors_name_the_table_and_neither_its_place_nor_a_cell(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes((b"PAR1" + CANARY.encode()) * 3)
    (source,) = read_sources(listed(tmp_path, location=str(broken)))
    with pytest.raises(DPSynthError) as damaged:
        source.open(SCHEMA)
    text = tmp_path / "people.csv"
    text.write_text(f"age,note\n1,{CANARY}\n")
    (source,) = read_sources(listed(tmp_path, location=str(text)))
    with pytest.raises(DPSynthError, match="declared layout") as undeclared:
        source.open(None)
    (source,) = read_sources(listed(tmp_path, schema=str(tmp_path / "none.json")))
    with pytest.raises(DPSynthError, match="declared facts of the table 'People' cannot be read") as no_facts:
        source.declared()
    missing = Schema.from_dict({"columns": [{"name": "height", "kind": "boolean"}], "file": {"format": "parquet"}})
    with pytest.raises(DPSynthError, match="height") as no_column:
        source.open(missing)
    for error in (damaged, undeclared, no_facts, no_column):
        assert str(tmp_path) not in str(error.value)
        assert CANARY not in str(error.value)


def test_without_facts_a_table_can_be_looked_at_and_nothing_made_of_it_is_private(tmp_path: Path) -> None:
    (source,) = read_sources(listed(tmp_path))
    table = source.open(None)
    assert table.schema.not_public == ("age", "note")
    assert source.declared() is None
