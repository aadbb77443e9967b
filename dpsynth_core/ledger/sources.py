"""Tables on this server that people may use by name: a list that only whoever runs the server writes.

``DPSYNTH_SOURCES`` names a TOML file with one entry for each table::

    [[source]]
    name = "Visits"                               # what people choose
    engine = "duckdb"                             # or "spark"
    location = "/srv/tables/visits.parquet"       # a file, a folder of Parquet files, or a database
    table = "visits"                              # of a database
    schema = "/srv/tables/visits.json"            # declared facts; text files need it, and so does Spark
    spark_url = "sc://cluster:15002"              # of a cluster, for Spark
    who = ["analyst"]                             # roles or subjects that may use it; without it, everybody
    public = true                                 # free to use in teaching mode; without it, the rows are private

Nobody chooses a place: a name is looked up again in the list whenever the table is used, so an entry that was removed,
or that is for other people now, is gone at once, also for whoever has opened it.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dpsynth_core.errors import DPSynthError, EngineError, IntakeError, ParameterError, RoleError
from dpsynth_core.ledger.people import ROLES, Person
from dpsynth_core.table.engines.duckdb_table import DuckDBOptions, open_duckdb
from dpsynth_core.table.engines.open import open_table
from dpsynth_core.table.engines.snapshot import Snapshot, files_at
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.schema import Schema

VARIABLE = "DPSYNTH_SOURCES"
ENGINES = ("duckdb", "spark")
MAX_LIST_BYTES = 2**20
MAX_SCHEMA_BYTES = 2**24
MAX_NAME = 100
"""Characters."""
ASK = "Ask whoever runs this server."


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """One entry of the list."""

    name: str
    engine: str
    location: str
    """An absolute path; for Spark also an address that the cluster understands."""
    table: str | None = None
    schema: Path | None = None
    spark_url: str | None = None
    who: tuple[str, ...] | None = None
    """Roles and subjects, each of which is enough; None: everybody."""
    public: bool = False
    """Whether the rows are public or simulated, so that nothing need be charged for looking at them."""

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > MAX_NAME or any(map(_is_control, self.name)):
            raise _wrong("name", self.name[:MAX_NAME], f"text of up to {MAX_NAME} characters on one line")
        if self.engine not in ENGINES:
            raise _wrong("engine", self.engine, " or ".join(ENGINES))
        if not os.path.isabs(self.location) and not (self.engine == "spark" and "://" in self.location):
            raise _wrong("location", self.location, f"an absolute path, for {self.name!r}")
        if self.schema is not None and not self.schema.is_absolute():
            raise _wrong("schema", str(self.schema), f"an absolute path, for {self.name!r}")
        if self.schema is None and self.engine == "spark":
            raise _wrong("schema", None, f"the declared facts, for {self.name!r}")
        if self.spark_url is not None and self.engine != "spark":
            # It may hold a password.
            raise _wrong("spark_url", "given", f"nothing unless the engine is spark, for {self.name!r}")
        for each in self.who or ():
            if each not in ROLES and " " not in each:
                raise _wrong("who", each, f"{', '.join(ROLES)}, or an issuer and a subject with a blank between them")

    def admits(self, person: Person) -> bool:
        """Whether somebody may use it: by a role, or by the subject that the identity provider has given them."""
        if self.who is None:
            return True
        return (person.signed_in and person.subject in self.who) or any(role in self.who for role in person.roles)

    def declared(self) -> Schema | None:
        """The facts that whoever runs the server has declared; None where they have declared none."""
        if self.schema is None:
            return None
        try:
            return Schema.from_json(_content(self.schema, MAX_SCHEMA_BYTES))
        except OSError:
            raise EngineError(f"The declared facts of the table {self.name!r} cannot be read. {ASK}") from None
        except DPSynthError as error:
            raise EngineError(f"The declared facts of the table {self.name!r} cannot be used. {error} {ASK}") from None

    def open(self, schema: Schema | None) -> StreamedTable:
        """The rows where they are; without a schema, to be looked at only. Errors name the table, not its place."""
        with self.place_hidden():
            self._check_place()
            if schema is not None:
                more: dict[str, Any] = {} if self.spark_url is None else {"spark_url": self.spark_url}
                engine: Any = self.engine
                return open_table(self.location, schema, engine=engine, table=self.table, **more)
            if self.engine != "duckdb":
                raise EngineError(f"Nothing is declared about the table {self.name!r}. {ASK}")
            return open_duckdb(self.location, None, table=self.table, options=DuckDBOptions())

    def stamp(self) -> str | None:
        """Names the stored rows as they are now, without reading them; None where only opening the table tells."""
        if self.engine != "duckdb":
            return None
        with self.place_hidden():
            self._check_place()
            return Snapshot.of(files_at(self.location)).stamp

    def _check_place(self) -> None:
        if self.engine == "duckdb" and not os.path.exists(self.location):
            raise EngineError(f"The table {self.name!r} is not where the list of this server says it is. {ASK}")

    @contextlib.contextmanager
    def place_hidden(self) -> Iterator[None]:
        """Whatever is raised inside says nothing about where the server keeps its files."""
        try:
            yield
        except (EngineError, IntakeError) as error:
            place = re.compile(rf"(['\"]){re.escape(self.location)}.*?\1|{re.escape(self.location)}")
            raise type(error)(place.sub(lambda _: repr(self.name), str(error))) from None


def list_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where the list is; None where this server has none."""
    value = environ.get(VARIABLE, "")
    if value and not os.path.isabs(value):
        raise ParameterError(VARIABLE, value, allowed="the absolute path of a TOML file")
    return Path(value) if value else None


def read_sources(file: Path) -> tuple[TableSource, ...]:
    """Every entry of the list, in order.

    Raises:
        DPSynthError: The list is missing or says something that is not understood; then no entry is used.
    """
    try:
        content = _content(file, MAX_LIST_BYTES)
    except OSError:
        raise DPSynthError(
            f"The list of this server's tables cannot be read. {VARIABLE} names the file {file.name!r}: check that it "
            "is there and that the app's account may read it."
        ) from None
    try:
        listed = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise DPSynthError(f"The list of this server's tables, {file.name!r}, is not TOML text. Correct it.") from None
    _check_keys("the list", listed, {"source"})
    entries = listed.get("source", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _wrong("source", type(entries).__name__, "a section [[source]] for each table")
    sources = tuple(map(_source, entries))
    names = [source.name for source in sources]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise _wrong("name", twice, "a name that occurs once")
    return sources


def sources_for(person: Person, *, teaching: bool, file: Path | None = None) -> tuple[TableSource, ...]:
    """The tables that somebody may use in this mode; in teaching mode, where nothing is charged, public ones only."""
    file = file or list_file()
    listed = () if file is None else read_sources(file)
    return tuple(source for source in listed if source.admits(person) and (source.public or not teaching))


@dataclass(frozen=True, kw_only=True)
class SourceTable:
    """A table of the list as somebody uses it: plain values, from which a worker opens it again, by its name."""

    name: str
    by: Person
    file: Path
    """The list."""
    teaching: bool
    """Whether it is used without an account."""
    n: int = 0
    """Rows that it had when it was opened; 0 before that."""
    stamp: str = ""
    """Of the stored rows, as they were then."""

    def source(self) -> TableSource:
        """Its entry as it is now.

        Raises:
            RoleError: There is none, or it is not for this person; which of the two is nobody's business.
        """
        for source in sources_for(self.by, teaching=self.teaching, file=self.file):
            if source.name == self.name:
                return source
        raise RoleError(
            f"You may not use the table {self.name!r} in this mode, or this server does not offer it any more. {ASK}"
        )

    def check(self) -> None:
        """Raise if it is not offered any more or was changed after it was opened; reads no rows."""
        now = self.source().stamp()
        if now is not None and now != self.stamp:
            raise EngineError(self._changed)

    @contextlib.contextmanager
    def opened(self, schema: Schema) -> Iterator[StreamedTable]:
        """The rows where they are, as long as they are those that it was opened with."""
        source = self.source()
        with source.place_hidden(), contextlib.closing(source.open(schema)) as table:
            if table.n != self.n or table.stamp != self.stamp:
                raise EngineError(self._changed)
            yield table

    @property
    def _changed(self) -> str:
        return (
            f"The table {self.name!r} was changed after you opened it, so its account may be another one. Open it "
            "again on the Data page."
        )


def _source(entry: dict[str, Any]) -> TableSource:
    _check_keys("an entry", entry, {field.name for field in fields(TableSource)})
    for key in ("name", "engine", "location"):
        if key not in entry:
            raise _wrong(key, None, f"a text in every entry ({', '.join(sorted(entry))} is given)")
    for key in ("name", "engine", "location", "table", "schema", "spark_url"):
        if key in entry and (not isinstance(entry[key], str) or "\0" in entry[key]):
            raise _wrong(key, type(entry[key]).__name__, "text")
    if not isinstance(entry.get("public", False), bool):
        raise _wrong("public", type(entry["public"]).__name__, "true or false")
    who = entry.get("who")
    if who is not None and (not isinstance(who, list) or not all(isinstance(each, str) for each in who)):
        raise _wrong("who", type(who).__name__, "a list of roles and subjects")
    return TableSource(
        **{key: entry[key] for key in entry if key not in ("schema", "who")},
        schema=Path(entry["schema"]) if "schema" in entry else None,
        who=None if who is None else tuple(who),
    )


def _check_keys(where: str, entry: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise _wrong("key", unknown[0], f"{', '.join(sorted(known))} in {where}")


def _content(path: Path, max_bytes: int) -> bytes:
    """The whole of a small file."""
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DPSynthError(f"The file {path.name!r} is longer than {max_bytes:,} bytes.")
    return content


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign).startswith("C")


def _wrong(key: str, value: object, allowed: str) -> ParameterError:
    return ParameterError(key, value, allowed=allowed, remedy=f"Correct the file that {VARIABLE} names.")
