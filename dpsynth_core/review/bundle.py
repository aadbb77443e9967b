"""The release bundle: one archive with everything that may be published, and nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from types import MappingProxyType
from typing import IO

import pandas as pd

from dpsynth_core.review.card import data_card
from dpsynth_core.review.croissant import croissant
from dpsynth_core.review.export import FileFacts, HashedStream, parquet, safe_csv, write_parquet
from dpsynth_core.review.gate import PublishableRelease, admit, admit_rows
from dpsynth_core.review.publication import Publication
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.long_run import LongRun

SUMS = "SHA256SUMS"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every member, so that the same release makes the same bytes and no clock is published."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Files that may be published together; made by :func:`release_bundle`."""

    files: Mapping[str, bytes]
    """Content by name; ``SHA256SUMS`` lists the others."""

    @cached_property
    def archive(self) -> bytes:
        """As a zip file; equal releases make equal bytes."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.files.items():
                archive.writestr(_member(name), content)
        return buffer.getvalue()

    @property
    def sha256(self) -> str:
        """Of the archive: what an approval is about."""
        return hashlib.sha256(self.archive).hexdigest()

    def contents(self) -> tuple[tuple[str, int, str], ...]:
        """Name, size and SHA-256 of every file."""
        return tuple((name, len(content), hashlib.sha256(content).hexdigest()) for name, content in self.files.items())


def release_digest(outcome: RunResult) -> str:
    """SHA-256 of what a run has made, whatever is said about it: rows, public facts, configuration, guarantee."""
    digest = hashlib.sha256()
    texts: tuple[str, ...] = (outcome.schema.unsigned().to_json(), outcome.config.to_json(), repr(outcome.guarantee))
    if outcome.comparisons:
        texts = (*texts, json.dumps([test.to_dict() for test in outcome.comparisons]))
    for part in (*map(safe_csv, outcome.tables), *map(str.encode, texts)):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def release_bundle(outcome: RunResult, publication: Publication | None = None) -> Bundle:
    """What may be published of a run: rows, public facts, configuration, and words about them.

    Only an :class:`RunResult` and a :class:`Publication` pass the gate, and of the outcome only what was paid for.
    What diagnostics found has no way in.

    Args:
        outcome: What a run has made.
        publication: What a person says about it.

    Raises:
        DPSynthError: The outcome is not private, or holds something that is not for release.
    """
    release = admit(outcome, Publication() if publication is None else publication)
    files: dict[str, bytes] = {}
    for name, table in zip(_names(release), release.tables, strict=True):
        files[f"{name}.csv"] = safe_csv(table)
        files[f"{name}.parquet"] = parquet(table)
    facts = {name: FileFacts.of(content) for name, content in files.items()}
    return Bundle(files=MappingProxyType(files | _described(release, facts)))


def write_long_bundle(run: LongRun, publication: Publication, file: IO[bytes]) -> None:
    """The same archive for a table that is too long to be held: its rows go from the model into the file.

    Raises:
        DPSynthError: The outcome is not private, or holds something that is not for release.
    """
    release = replace(admit(run.result, publication), rows_in_all=run.rows)
    name = "synthetic.parquet"
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        # Parquet is packed already.
        with archive.open(_member(name, zipfile.ZIP_STORED), "w", force_zip64=True) as member:
            rows = HashedStream(member)
            write_parquet(_admitted(release, run), rows)  # type: ignore[arg-type]
        for other, content in _described(release, {name: rows.facts}).items():
            archive.writestr(_member(other), content)


def _admitted(release: PublishableRelease, run: LongRun) -> Iterator[pd.DataFrame]:
    """All rows, each batch read anew through the schema."""
    yield from release.tables
    for batch in run.rest:
        yield admit_rows(batch, release.schema)


def _member(name: str, packing: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, date_time=_EPOCH)
    member.compress_type, member.external_attr = packing, 0o644 << 16
    return member


def _described(release: PublishableRelease, rows: Mapping[str, FileFacts]) -> dict[str, bytes]:
    """What is in a bundle beside the rows, whose files are known by their sums."""
    files: dict[str, bytes] = {}
    files["schema.json"] = _text(release.schema.to_json())
    files["configuration.json"] = _text(release.config.to_json())
    if release.comparisons:
        files["private_tests.json"] = _text(json.dumps([test.published for test in release.comparisons], indent=2))
    files["data_card.md"] = _text(data_card(release))
    files["reproduce.py"] = resources.files("dpsynth_core.review").joinpath("reproduce.py").read_bytes()
    facts = {**rows, **{name: FileFacts.of(content) for name, content in files.items()}}
    files["croissant.json"] = _text(croissant(release, facts))
    facts["croissant.json"] = FileFacts.of(files["croissant.json"])
    files[SUMS] = _text("\n".join(f"{each.sha256}  {name}" for name, each in facts.items()))
    return files


def _names(release: PublishableRelease) -> list[str]:
    if len(release.tables) == 1:
        return ["synthetic"]
    return [f"synthetic_{number}" for number in range(1, len(release.tables) + 1)]


def _text(text: str) -> bytes:
    return (text if text.endswith("\n") else f"{text}\n").encode()
