from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.diagnostics.base import Measure, Result, Scale, TablePair
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.review import Publication, release_bundle, release_digest
from dpsynth_core.review.wording import literal, loss, meaning
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.column import Column
from dpsynth_core.table.schema import Schema
from tests.tables.releases import HOSTILE, hostile_outcome, mixed_outcome, outcome_of
from tests.tables.schemas import mixed_schema, mixed_table

ROOT = Path(__file__).parents[2]
SAID = Publication(
    title="Clinic",
    description="Visits.",
    publisher="A clinic",
    license="https://creativecommons.org/licenses/by/4.0/",
    original_rows=300,
    published=date(2026, 1, 2),
)


@cache
def outcome() -> RunResult:
    return mixed_outcome()


@cache
def clean_files() -> dict[str, bytes]:
    return dict(release_bundle(outcome(), SAID).files)


def unzipped(content: bytes, to: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(to)
    return to


# ------------------------------------------------------------------ what is in it


def test_the_bundle_has_its_files_and_their_hashes(tmp_path: Path) -> None:
    place = unzipped(release_bundle(outcome(), SAID).archive, tmp_path)
    names = {path.name for path in place.iterdir()}
    assert names == {
        "synthetic.csv",
        "synthetic.parquet",
        "schema.json",
        "configuration.json",
        "data_card.md",
        "reproduce.py",
        "croissant.json",
        "SHA256SUMS",
    }
    sums = dict(line.split("  ")[::-1] for line in (place / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == names - {"SHA256SUMS"}
    assert all(hashlib.sha256((place / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


def test_rows_facts_and_configuration_come_back_as_they_were(tmp_path: Path) -> None:
    made = outcome()
    place = unzipped(release_bundle(made, SAID).archive, tmp_path)
    pd.testing.assert_frame_equal(pd.read_parquet(place / "synthetic.parquet"), made.tables[0])
    again = dp.PrivateTable(dp.read_table(place / "synthetic.csv"), made.schema).rows()
    pd.testing.assert_frame_equal(again, made.tables[0])
    assert Schema.from_json((place / "schema.json").read_bytes()) == made.schema
    assert RunConfig.from_json((place / "configuration.json").read_bytes()) == made.config


def test_the_same_release_makes_the_same_bytes() -> None:
    assert release_bundle(outcome(), SAID).archive == release_bundle(outcome(), SAID).archive


def test_several_tables_state_their_sum() -> None:
    files = release_bundle(mixed_outcome(epsilon="0.1", copies=3)).files
    assert {f"synthetic_{i}.{kind}" for i in (1, 2, 3) for kind in ("csv", "parquet")} <= set(files)
    card = files["data_card.md"].decode()
    assert "epsilon 0.3" in card
    assert "epsilon 0.1 each" in card


def test_the_card_says_what_is_claimed_for_whom_and_where_facts_come_from() -> None:
    card = release_bundle(mixed_outcome_for(3), SAID).files["data_card.md"].decode()
    assert "at most 3 rows" in card
    assert "replace-one" in card
    assert "public knowledge" in card
    assert "A clinic" in card


# ------------------------------------------------------------------ one statement


@cache
def estimated_outcome() -> RunResult:
    """A run at epsilon 1 with two columns that were estimated at 0.1 each, one of them with a delta."""
    table = pd.DataFrame({"age": [20, 35, 61, 44] * 500, "town": ["north", "south"] * 1000})
    noise = SecureNoise(Budget.of("0.2", "1e-7"))
    age = dp.estimate_bounds(table["age"], epsilon="0.1", noise=noise)
    town = dp.discover_categories(table["town"], epsilon="0.1", delta="1e-7", noise=noise)
    suggested = dp.suggest_schema(table)
    columns = (each.declare(suggested[each.column], others_public=True) for each in (age, town))
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"](), epsilon="1")
    return execute(table, Schema(columns=tuple(columns)), config, (age, town))


COSTS = (
    "Synthetic rows: epsilon 1, delta 0 (pure)",
    "Range of column 'age': epsilon 0.1, delta 0 (pure)",
    "Categories of column 'town': epsilon 0.1, delta 1e-7",
)


def test_card_and_metadata_state_the_total_and_what_each_part_cost() -> None:
    files = release_bundle(estimated_outcome(), SAID).files
    card = files["data_card.md"].decode()
    assert "epsilon 1.2, delta 1e-7" in card
    assert "at most 76.9% sure" in card
    assert all(f"- {literal(line)}" in card for line in COSTS)
    values = {p["name"]: p["value"] for p in json.loads(files["croissant.json"])["additionalProperty"]}
    assert (values["epsilon"], values["epsilonExact"], values["delta"]) == (1.2, "6/5", 1e-7)
    assert "at most 76.9% sure" in values["meaning"]
    assert tuple(values[f"cost{number}"] for number in (1, 2, 3)) == COSTS


def test_copies_and_estimates_are_told_apart() -> None:
    made = estimated_outcome()
    table = pd.DataFrame({"age": [20, 35, 61, 44] * 500, "town": ["north", "south"] * 1000})
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"](), epsilon="0.5", copies=2)
    card = release_bundle(execute(table, made.schema, config, made.estimates)).files["data_card.md"].decode()
    assert "Synthetic rows, 2 tables at epsilon 0.5 each" in card
    assert "epsilon 1.2, delta 1e-7" in card


def unpaid(made: RunResult) -> RunResult:
    return replace(made, estimates=())


def understated(made: RunResult) -> RunResult:
    return replace(made, guarantee=made.guarantee.limited_to(made.config.cost))


@pytest.mark.parametrize("forge", [unpaid, understated])
def test_a_run_that_hides_what_its_estimates_cost_is_refused(forge: Callable[[RunResult], RunResult]) -> None:
    with pytest.raises(DPSynthError, match=r"no charge for this estimate|does not name the budgets"):
        release_bundle(forge(estimated_outcome()))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            ("private diagnostics", 3),
            "The choice among 3 releases rests on private diagnostics. The "
            "stated epsilon covers the rows, not that choice.",
        ),
        (("private diagnostics", 1), "The decision to publish this release rests on private "),
        (("public facts only", 2), "The choice among 2 releases rests on public facts and synthetic rows only."),
    ],
)
def test_the_card_says_what_the_release_was_chosen_by(said: tuple[Any, int], sentence: str) -> None:
    files = release_bundle(outcome(), replace(SAID, chosen_by=said[0], chosen_from=said[1])).files
    assert sentence in files["data_card.md"].decode()
    assert sentence in files["croissant.json"].decode()
    assert "chosenBy" not in release_bundle(outcome(), SAID).files["croissant.json"].decode()


def mixed_outcome_for(rows_per_person: int) -> RunResult:
    schema = replace(outcome().schema, rows_per_person=rows_per_person)
    return replace(outcome(), schema=schema, guarantee=replace(outcome().guarantee, rows_per_person=rows_per_person))


@pytest.mark.parametrize("status", ["asymptotic", "heuristic"])
def test_nothing_is_called_private_that_is_not_proven(status: Any) -> None:
    weak = replace(outcome(), guarantee=outcome().guarantee.weakened(status, "Because."))
    files = release_bundle(weak).files
    for name in ("data_card.md", "croissant.json"):
        text = files[name].decode()
        assert "Differentially private, proven" not in text
        assert weak.guarantee.meaning in text
        assert "Because." in text


# ------------------------------------------------------------------ metadata for machines


@pytest.mark.parametrize("said", [SAID, Publication()])
def test_the_maintained_validator_accepts_the_metadata(said: Publication, tmp_path: Path) -> None:
    import mlcroissant as mlc  # slow to import

    place = unzipped(release_bundle(outcome(), said).archive, tmp_path)
    dataset = mlc.Dataset(jsonld=place / "croissant.json")
    assert not dataset.metadata.issues.errors
    missing = {re.search(r'Property "(\S+)"', text).group(1) for text in dataset.metadata.issues.warnings}  # type: ignore[union-attr]
    assert missing <= {
        "http://mlcommons.org/croissant/citeAs",
        "https://schema.org/license",
        "https://schema.org/datePublished",
    }


def test_its_reader_finds_the_rows(tmp_path: Path) -> None:
    import mlcroissant as mlc  # slow to import

    place = unzipped(release_bundle(outcome()).archive, tmp_path)
    rows = list(mlc.Dataset(jsonld=place / "croissant.json").records("synthetic_rows"))
    table = outcome().tables[0]
    assert [row["synthetic_rows/1"] for row in rows] == table["age"].tolist()
    assert [row["synthetic_rows/4"].decode() for row in rows] == table["sex"].tolist()


def test_metadata_carry_the_guarantee() -> None:
    facts = json.loads(release_bundle(mixed_outcome(epsilon="1/3"), SAID).files["croissant.json"])
    values = {entry["propertyID"]: entry["value"] for entry in facts["additionalProperty"]}
    assert values["dp:epsilonExact"] == "1/3"
    assert values["dp:epsilon"] >= 1 / 3
    assert values["dp:delta"] == 0
    assert values["dp:status"] == "proven"
    assert values["dp:rowsPerPerson"] == 1
    assert values["dp:neighbouringRelation"] == "replace-one, number of rows public"
    assert values["dp:originalRows"] == 300


# ------------------------------------------------------------------ names are not markup


def test_names_from_a_file_are_never_markup(tmp_path: Path) -> None:
    import mlcroissant as mlc  # slow to import

    _, made = hostile_outcome()
    bundle = release_bundle(made, Publication(title=HOSTILE, description="- " + HOSTILE))
    card = bundle.files["data_card.md"].decode()
    bare = re.sub(r"\\.", "", card)
    assert "<script>" not in bare
    assert "[x]" not in bare
    assert "<b>" not in bare
    table = [line for line in card.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 6 for line in table)
    place = unzipped(bundle.archive, tmp_path)
    dataset = mlc.Dataset(jsonld=place / "croissant.json")
    assert not dataset.metadata.issues.errors
    assert len(list(dataset.records("synthetic_rows"))) == 100
    assert not place.joinpath("synthetic.csv").read_text().startswith("=")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a b"),
        ("a\n\n# b", r"a \# b"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("www.x.y", r"www\.x.y"),
        ("+1", r"\+1"),
    ],
)
def test_literal_text(text: str, shown: str) -> None:
    assert literal(text) == shown


def test_amounts_are_never_stated_too_low() -> None:
    assert loss(Budget.of("2/3", "1e-6")) == "epsilon 2/3 (about 0.6667), delta 1e-6"
    guarantee = Guarantee(status="proven", budget=Budget.of(1))
    assert "73.2%" in meaning(guarantee)  # e / (1 + e) = 0.73106
    assert meaning(guarantee.weakened("heuristic", "x")) == ""
    approximate = meaning(Guarantee(status="proven", budget=Budget.of("1.2", "1e-7")))
    assert "at most 76.9% sure" in approximate  # (exp(1.2) + 1e-7) / (1 + exp(1.2)) = 0.76852
    assert "on average" in approximate
    assert "100% sure" in meaning(Guarantee(status="proven", budget=Budget.of(1, "0.999")))


# ------------------------------------------------------------------ the pipeline again


def test_the_script_runs_the_pipeline_on_the_same_schema(tmp_path: Path) -> None:
    place = unzipped(release_bundle(outcome()).archive, tmp_path)
    run = subprocess.run(
        [sys.executable, "reproduce.py", "--rows", "200"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    again = dp.read_table(place / "again.csv")
    assert list(again.columns) == list(outcome().schema.names)
    assert len(again) == 200


def test_the_script_says_what_it_needs_where_the_package_is_not_installed(tmp_path: Path) -> None:
    place = unzipped(release_bundle(outcome()).archive, tmp_path)
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-I", "reproduce.py"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
        env=elsewhere,
        check=False,
    )
    assert run.returncode != 0
    assert run.stderr.startswith("Error: this script needs the package dpsynth_core.")
    assert "Traceback" not in run.stderr


# ------------------------------------------------------------------ what is not for release stays outside

MARK = "c0ffee-from-the-private-rows"
SECRET = Measure(name=MARK, columns=(MARK,), value=0.123456789, reading=MARK, verdict="poor")
RESULT = Result(
    key="pmse",
    title=MARK,
    scale=Scale(name=MARK, low=0, high=1, better="lower", good="0"),
    headline=SECRET,
    items=(SECRET,),
    notes=(MARK,),
    tables={MARK: pd.DataFrame({MARK: [MARK]})},
)
FOUND = Evaluation(results=(RESULT,))
TABLE = dp.PrivateTable(mixed_table(), mixed_schema())
PRIVATE: list[Any] = [SECRET, RESULT, FOUND, TABLE, TablePair(original=TABLE, synthetic=TABLE)]


class Sneaky(str):
    """Text that says of itself that it must not be released."""

    releasable = False


def attached(table: pd.DataFrame, thing: object) -> pd.DataFrame:
    copy = table.copy()
    copy.attrs["evaluation"] = str(thing)
    return copy


def test_a_frame_cannot_carry_notes_into_a_file() -> None:
    # Parquet keeps a frame's attrs, which no viewer shows.
    noted = replace(outcome(), tables=(attached(outcome().tables[0], MARK),))
    assert release_bundle(noted).archive == release_bundle(outcome()).archive


@pytest.mark.parametrize("thing", [*PRIVATE, Sneaky("x"), None, "text", 1], ids=lambda thing: type(thing).__name__)
def test_only_outcomes_and_publications_are_accepted(thing: Any) -> None:
    with pytest.raises(DPSynthError, match="not made for publication"):
        release_bundle(thing)
    if thing is not None:
        with pytest.raises(DPSynthError, match="not made for publication"):
            release_bundle(outcome(), thing)


nested = st.recursive(
    st.sampled_from([*PRIVATE, Sneaky(MARK)]),
    lambda inner: st.tuples(inner) | st.lists(inner, min_size=1, max_size=2) | st.builds(lambda x: {"a": x}, inner),
    max_leaves=3,
)
places = st.sampled_from(
    [("outcome", part.name) for part in fields(RunResult)]
    + [("config", part.name) for part in fields(RunConfig)]
    + [("mechanism", part.name) for part in fields(dp.MECHANISMS["kd_tree"])]
    + [("schema", part.name) for part in fields(Schema)]
    + [("column", part.name) for part in fields(Column)]
    + [("guarantee", part.name) for part in fields(Guarantee)]
    + [("publication", part.name) for part in fields(Publication)]
    + [("table", "attrs"), ("table", "column"), ("table", "cells"), ("table", "index")]
)


def forced(record: Any, name: str, value: Any) -> Any:
    """A copy with one field replaced, whatever its own checks say: an attacker would not ask them."""
    copy = object.__new__(type(record))
    for part in fields(record):
        object.__setattr__(copy, part.name, value if part.name == name else getattr(record, part.name))
    return copy


def smuggled(place: tuple[str, str], thing: Any) -> tuple[RunResult, Publication]:
    """An outcome and a publication with something private hidden in one place."""
    made, said = outcome(), SAID
    where, name = place
    if where == "publication":
        return made, forced(said, name, thing)
    if where == "outcome":
        return forced(made, name, thing), said
    if where == "table":
        table = made.tables[0].copy()
        if name == "attrs":
            table.attrs["x"] = thing
        elif name == "column":
            table["x"] = [str(thing)] * len(table)
        elif name == "index":
            table.index = pd.Index([str(thing)] * len(table), name=str(thing))
        else:
            table["sex"] = pd.Series([thing] * len(table), dtype=object)
        return replace(made, tables=(table,)), said
    if where == "mechanism":
        return replace(made, config=forced(made.config, "mechanism", forced(made.config.mechanism, name, thing))), said
    if where == "column":
        columns = (forced(made.schema.columns[0], name, thing), *made.schema.columns[1:])
        return replace(made, schema=forced(made.schema, "columns", columns)), said
    return replace(made, **{where: forced(getattr(made, where), name, thing)}), said


@given(place=places, thing=nested)
def test_nothing_private_enters_a_bundle(place: tuple[str, str], thing: Any) -> None:
    try:
        bundle = release_bundle(*smuggled(place, thing))
    except DPSynthError:
        return
    # Where it was not refused it was not read either: not a byte depends on it.
    for name, content in bundle.files.items():
        assert MARK.encode() not in content, name
    assert dict(bundle.files) == clean_files()


def test_who_declared_the_facts_is_not_published() -> None:
    signed = replace(outcome(), schema=replace(outcome().schema, declared_by=MARK))
    bundle = release_bundle(signed, SAID)
    assert all(MARK.encode() not in content for content in bundle.files.values())
    assert bundle.sha256 == release_bundle(outcome(), SAID).sha256
    assert release_digest(signed) == release_digest(outcome())


def test_what_nobody_paid_for_changes_no_byte() -> None:
    other = replace(outcome(), seconds=99.0, charges=(), leaves=pd.DataFrame({"x": [MARK]}))
    assert release_bundle(other).archive == release_bundle(outcome()).archive


@pytest.mark.parametrize(
    "change",
    [
        lambda made: replace(made, guarantee=made.guarantee.weakened("void", "Read from the data.")),
        lambda made: replace(made, guarantee=made.guarantee.weakened("none", "Seeded.")),
        lambda made: replace(
            made, schema=made.schema.with_column(replace(made.schema["age"], origin="read from the data"))
        ),
        lambda made: replace(made, config=replace(made.config, seed=1)),
        lambda made: replace(made, guarantee=made.guarantee.limited_to(Cost(label="Rows", budget=Budget.of("0.5")))),
        lambda made: replace(made, guarantee=replace(made.guarantee, rows_per_person=2)),
        lambda made: replace(made, tables=()),
    ],
    ids=["void", "none", "schema not public", "seeded", "smaller budget", "other unit", "no table"],
)
def test_what_is_not_private_is_refused(change: Any) -> None:
    with pytest.raises(DPSynthError):
        release_bundle(change(outcome()))


@pytest.mark.parametrize("key", ["kd_grid", "perturbed_histogram", "mwem"])
def test_every_private_mechanism_can_be_published(key: str) -> None:
    example = dp.EXAMPLES["two_groups_signal"]
    assert release_bundle(outcome_of(example.load(), example.schema, key)).files["croissant.json"]
