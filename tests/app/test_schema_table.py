from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.errors import DPSynthError
from dpsynth_core.table.column import KINDS, Column
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.schema import Schema
from pages.shared.data.schema_rows import (
    from_rows,
    labels_in,
    mark_public,
    numbers,
    settle_origins,
    split_labels,
    to_rows,
    with_column,
    withdraw_estimates,
)
from tests.tables.strategies import names, schemas

PEOPLE = Schema.from_dict(
    {
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True},
            {"name": "height", "kind": "continuous", "lower": 0.5, "upper": 2.5, "decimals": 2, "public": True},
            {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True, "origin": "codebook"},
            {"name": "smokes", "kind": "boolean"},
            {"name": "born", "kind": "date", "lower": "1900-01-01", "upper": "2024-12-31", "public": True},
        ]
    }
)
NOTHING = [None, math.nan, pd.NA, ""]


def rows_of(schema: Schema = PEOPLE, **cells: Any) -> pd.DataFrame:
    """The editor's rows with some cells of the first row changed; ``date_format`` stands for "date format"."""
    records = to_rows(schema, schema.names).to_dict("records")
    records[0] |= {name.replace("_", " "): value for name, value in cells.items()}
    return pd.DataFrame(records)


def read(rows: pd.DataFrame) -> Schema:
    schema, problems = from_rows(rows)
    assert not problems
    assert schema is not None
    return schema


def refused(rows: pd.DataFrame) -> list[str]:
    schema, problems = from_rows(rows)
    assert schema is None
    assert all(isinstance(problem, DPSynthError) for problem in problems)
    return [str(problem) for problem in problems]


# There and back


@given(schemas())
def test_a_schema_survives_the_editor(schema: Schema) -> None:
    rows = to_rows(schema, schema.names)
    back, problems = from_rows(rows, file=schema.file, rows_per_person=schema.rows_per_person)
    assert not problems
    assert back == schema
    for before, after in zip(schema, back or (), strict=True):
        assert [type(label) for label in after.labels] == [type(label) for label in before.labels]


def test_numeric_labels_stay_numbers_and_text_stays_text() -> None:
    facts = {"name": "grade", "kind": "categorical"}
    for declared, typed, expected in (([1, 2], ["1", "3"], (1, 3)), (["1", "2"], ["1", "3"], ("1", "3"))):
        schema = Schema.from_dict({"columns": [{**facts, "categories": declared}]})
        assert read(to_rows(schema, schema.names))["grade"].categories == tuple(declared)
        assert read(rows_of(schema, categories=typed))["grade"].categories == expected


def test_a_column_of_numbers_that_becomes_one_of_labels_has_numbers_as_labels() -> None:
    assert read(rows_of(kind="categorical", categories=["1", "2"]))["age"].categories == (1, 2)


@settings(max_examples=50)
@given(schemas(), st.lists(names, unique=True, max_size=3))
def test_dropped_columns_stay_dropped(schema: Schema, others: list[str]) -> None:
    rows = to_rows(schema, [*schema.names, *others])
    assert set(rows["name"]) == {*schema.names, *others}
    assert not rows.loc[~rows["name"].isin(schema.names), "keep"].any()
    assert read(rows).names == schema.names


@settings(max_examples=50)
@given(schemas())
def test_what_was_edited_once_can_be_edited_again(schema: Schema) -> None:
    rows = to_rows(schema, schema.names)
    again = to_rows(read(rows), schema.names)
    pd.testing.assert_frame_equal(rows, again)


def test_whole_numbers_keep_all_their_digits() -> None:
    assert numbers(["9007199254740993", "-1"]) == [9007199254740993, -1]
    assert read(rows_of(to="9007199254740991"))["age"].upper == 2**53 - 1


def test_labels_are_numbers_only_if_all_of_them_are() -> None:
    assert numbers(["1", "2.5", "3.0"]) == [1, 2.5, 3]
    assert numbers(["1", "two"]) == ["1", "two"]


@pytest.mark.parametrize("others", [[], ["dropped"]])
def test_an_empty_cell_can_be_written_in_whatever_the_others_hold(others: list[str]) -> None:
    for names_kept in (PEOPLE.names, ["smokes"], ["age"]):
        rows = to_rows(PEOPLE.select(names_kept), [*names_kept, *others])
        texts = rows[["from", "to", "other", "unit", "date format", "origin"]]
        assert {str(kind) for kind in texts.dtypes} == {"str"}
        assert {str(kind) for kind in rows[["keep", "missing", "public"]].dtypes} == {"bool"}


# Public and origin


def test_unticking_public_makes_the_facts_read_from_the_data() -> None:
    for origin in ("public knowledge", "codebook", "estimated privately"):
        column = read(rows_of(public=False, origin=origin))["age"]
        assert (column.public, column.origin) == (False, "read from the data")


@pytest.mark.parametrize("origin", ["read from the data", *NOTHING])
def test_ticking_public_is_a_statement_of_public_knowledge(origin: Any) -> None:
    column = read(rows_of(public=True, origin=origin))["age"]
    assert (column.public, column.origin) == (True, "public knowledge")


@pytest.mark.parametrize("origin", ["codebook", "estimated privately", "public knowledge"])
def test_a_stated_origin_stays(origin: str) -> None:
    assert read(rows_of(public=True, origin=origin))["age"].origin == origin


@pytest.mark.parametrize("empty", NOTHING)
def test_an_empty_checkbox_is_off(empty: Any) -> None:
    column = read(rows_of(public=empty, missing=empty))["age"]
    assert (column.public, column.nullable) == (False, False)
    assert "age" not in read(rows_of(keep=empty)).names


@pytest.mark.parametrize(
    ("before", "after", "settled"),
    [
        ((True, "codebook"), (False, "codebook"), (False, "read from the data")),
        ((False, "read from the data"), (True, "read from the data"), (True, "public knowledge")),
        ((True, "codebook"), (True, "read from the data"), (False, "read from the data")),
        ((False, "read from the data"), (False, "codebook"), (True, "codebook")),
        ((True, "codebook"), (True, "public knowledge"), (True, "public knowledge")),
        ((True, "codebook"), (True, "codebook"), (True, "codebook")),
        ((True, "codebook"), (True, None), (True, "public knowledge")),
        ((False, None), (False, None), (False, None)),
    ],
)
def test_checkbox_and_origin_agree_whichever_was_changed(before: Any, after: Any, settled: Any) -> None:
    old, new = (rows_of(public=pair[0], origin=pair[1]) for pair in (before, after))
    rows = settle_origins(new, old)
    public, origin = rows["public"][0], rows["origin"][0]
    assert (public, None if pd.isna(origin) else origin) == settled
    pd.testing.assert_frame_equal(rows[1:], new[1:])


def test_the_bulk_action_declares_every_kept_column() -> None:
    rows = to_rows(PEOPLE, [*PEOPLE.names, "dropped"])
    declared = mark_public(rows, public=True)
    assert read(declared).is_public
    assert list(declared["public"]) == [True] * 5 + [False]
    assert read(declared)["sex"].origin == "codebook"
    assert read(declared)["smokes"].origin == "public knowledge"


def test_the_bulk_action_withdraws_every_declaration() -> None:
    rows = to_rows(PEOPLE, PEOPLE.names)
    withdrawn = read(mark_public(rows, public=False))
    assert withdrawn.not_public == PEOPLE.names
    assert {column.origin for column in withdrawn} == {"read from the data"}
    assert rows["public"].sum() == 4, "the rows on screen are left alone"


@settings(max_examples=50)
@given(schemas(), st.booleans())
def test_the_bulk_action_always_leaves_a_valid_schema(schema: Schema, public: bool) -> None:
    rows = mark_public(to_rows(schema, [*schema.names, "x" * 20]), public=public)
    assert read(rows).is_public is public


def test_the_bulk_action_passes_over_empty_checkboxes() -> None:
    rows = rows_of(keep=None, origin=None)
    assert list(mark_public(rows, public=True)["public"]) == [False, True, True, True, True]


@settings(max_examples=50)
@given(schemas())
def test_withdrawing_estimates_touches_nothing_else(schema: Schema) -> None:
    back = read(
        withdraw_estimates(to_rows(schema, schema.names)),
    )
    for before, after in zip(schema, back, strict=True):
        if before.origin == "estimated privately":
            assert after.origin == "read from the data"
        else:
            assert after == before


# One column replaced


def test_replacing_a_column_keeps_what_was_typed_elsewhere() -> None:
    rows = to_rows(PEOPLE, PEOPLE.names)
    rows.loc[rows["name"] == "height", ["keep", "to"]] = [False, "2.75"]
    age = Column(name="age", kind="integer", lower=10, upper=20)
    changed = with_column(rows, age)
    assert read(changed)["age"] == age
    assert changed.loc[changed["name"] == "height", "to"].item() == "2.75"
    assert not changed.loc[changed["name"] == "height", "keep"].item()
    assert list(changed.dtypes) == list(rows.dtypes)


# Problems


def test_every_bad_row_is_reported_with_its_column() -> None:
    records = to_rows(PEOPLE, PEOPLE.names).to_dict("records")
    records[0]["from"] = "young"
    records[1]["from"] = "3"
    records[2]["categories"] = []
    records[4]["to"] = "31.12.2024"
    problems = refused(pd.DataFrame(records))
    assert len(problems) == 4
    for problem, name in zip(problems, ["age", "height", "sex", "born"], strict=True):
        assert problem.startswith(f"Column '{name}': ")
    assert "'young'" in problems[0]


def test_problems_use_the_words_of_the_headings() -> None:
    assert refused(rows_of(to=None)) == [
        "Column 'age': To is empty; allowed: a finite number. Declare the possible range or estimate it privately."
    ]
    assert refused(rows_of(bins=0))[0].startswith("Column 'age': Bins is 0;")
    assert refused(rows_of(kind="date", **{"from": "1900-01-01", "to": None}))[0].startswith(
        "Column 'age': To is empty; allowed: a date"
    )


def test_a_name_that_looks_like_a_problem_is_left_as_it_is() -> None:
    odd = Schema.from_dict({"columns": [{"name": "x': upper is", "kind": "integer", "lower": 0, "upper": 1}]})
    assert refused(rows_of(odd, to="many"))[0].startswith("Column \"x': upper is\": To is 'many';")


@pytest.mark.parametrize("empty", NOTHING)
@pytest.mark.parametrize("cell", ["from", "to"])
def test_an_empty_bound_is_asked_for(cell: str, empty: Any) -> None:
    (problem,) = refused(rows_of(**{cell: empty}))
    assert "Column 'age'" in problem
    assert "estimate it privately" in problem


@pytest.mark.parametrize("empty", NOTHING)
@pytest.mark.parametrize("cell", ["bins", "decimals", "unit", "other", "date_format"])
def test_an_empty_optional_cell_means_the_default(cell: str, empty: Any) -> None:
    assert read(rows_of(**{cell: empty}))["age"] == PEOPLE["age"]


@pytest.mark.parametrize("empty", [None, math.nan, [], (), np.array([])])
def test_labels_are_asked_for_where_there_are_none(empty: Any) -> None:
    (problem,) = refused(rows_of(kind="categorical", categories=empty))
    assert problem == (
        "Column 'age': Categories is empty; allowed: a list of one or more labels. List every possible value."
    )
    assert read(rows_of(kind="boolean", categories=empty))["age"].labels == (False, True)


@pytest.mark.parametrize("empty", [None, math.nan, ""])
def test_a_kind_is_asked_for(empty: Any) -> None:
    assert refused(rows_of(kind=empty))[0].startswith("Column 'age': Kind is empty;")


def test_a_label_that_comes_twice_is_refused_by_column() -> None:
    (problem,) = refused(rows_of(kind="ordinal", categories=["low", "high", " low "]))
    assert problem.startswith("Column 'age': Categories is ")


def test_labels_of_a_numeric_column_cannot_mix_with_words() -> None:
    (problem,) = refused(rows_of(kind="categorical", categories=["1", "2"], other="rest"))
    assert problem.startswith("Column 'age': Other is 'rest';")
    assert read(rows_of(kind="categorical", categories=["1", "2"], other="9"))["age"].labels == (1, 2, 9)


def test_keeping_nothing_is_a_clear_problem() -> None:
    rows = to_rows(PEOPLE, PEOPLE.names).assign(keep=False)
    assert refused(rows) == ["Schema: columns is []; allowed: one or more columns. Keep a column."]


def test_a_column_that_is_not_kept_cannot_be_wrong() -> None:
    assert read(rows_of(keep=False, kind=None, to="much")).names == PEOPLE.names[1:]


# Kinds


@pytest.mark.parametrize("kind", KINDS)
def test_facts_of_other_kinds_are_left_alone_when_the_kind_changes(kind: str) -> None:
    bounds = ("1900-01-01", "2000-12-31") if kind == "date" else ("1", "8")
    rows = rows_of(
        kind=kind,
        bins=4,
        categories=["a", "b"],
        other=None,
        decimals=1,
        date_format="%d/%m/%Y",
        **{"from": bounds[0], "to": bounds[1]},
    )
    column = read(rows)["age"]
    assert column.kind == kind
    assert (column.decimals is not None) == (kind == "continuous")
    assert (column.date_format is not None) == (kind == "date")
    assert (column.categories is None) == column.is_numeric
    assert (column.lower is not None) == column.is_numeric


# Numbers as people write them


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000", 1000),
        ("1,234,567", 1_234_567),
        ("1 000 000", 1_000_000),
        ("1\u202f000", 1000),
        ("1'000", 1000),
        ("1_000", 1000),
        (" 1000 ", 1000),
        ("1e3", 1000),
        ("+1,000", 1000),
        ("1000.0", 1000),
    ],
)
def test_thousands_may_be_separated(text: str, value: int) -> None:
    bound = read(rows_of(to=text))["age"].upper
    assert bound == value
    assert type(bound) is int


def test_negative_and_broken_numbers_are_read() -> None:
    column = read(rows_of(kind="continuous", **{"from": "-1,000.25", "to": "0.5"}))["age"]
    assert (column.lower, column.upper) == (-1000.25, 0.5)


@pytest.mark.parametrize("text", ["1,5", "0,25", "1,00", "12,34,567", "1.000,5", "ten", "1 2", "--1", "1,000,"])
def test_a_comma_that_separates_no_thousands_is_not_guessed_at(text: str) -> None:
    (problem,) = refused(rows_of(to=text))
    assert problem.startswith("Column 'age': To is ")
    assert "a number such as 1234.5" in problem


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_a_bound_is_finite(text: str) -> None:
    assert refused(rows_of(to=text))[0].startswith("Column 'age': To is ")


cells = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(pd.NA)


@given(st.dictionaries(st.sampled_from(["keep", "from", "to", "other", "missing", "unit", "public", "origin"]), cells))
def test_whatever_is_typed_ends_in_a_schema_or_in_words(typed: dict[str, Any]) -> None:
    schema, problems = from_rows(rows_of(**typed))
    assert (schema is None) == bool(problems)


# Labels that are pasted


def pasted(labels: list[str], before: tuple[str, ...] = ("f", "m"), layout: FileLayout | None = None) -> list[str]:
    """The labels after somebody has typed in the cell of a column."""
    schema = Schema(columns=(Column(name="x", kind="categorical", categories=before),))
    draft = to_rows(schema, schema.names)
    edited = draft.assign(categories=pd.Series([labels], dtype=object))
    return list(split_labels(edited, draft, layout)["categories"][0])


@pytest.mark.parametrize("text", ["0,1,2", "0;1;2", "0\n1\n2", "0, 1,2,", "0\t1\t2", "0,1,2,2.0"])
def test_a_pasted_list_is_as_many_labels(text: str) -> None:
    assert pasted([text]) == ["0", "1", "2"]


def test_labels_that_were_there_keep_their_commas() -> None:
    assert pasted(["Paris, France", "Rome,Oslo"], before=("Paris, France",)) == ["Paris, France", "Rome", "Oslo"]
    assert pasted(['"Bern, Switzerland"']) == ["Bern, Switzerland"]


def test_a_decimal_comma_separates_nothing() -> None:
    comma = FileLayout(decimal=",", delimiter=";")
    assert pasted(["0,5", "1,5;2,50", "2,5"], layout=comma) == ["0,5", "1,5", "2,50"]


def test_a_new_label_that_is_an_old_number_is_not_added() -> None:
    assert pasted(["3", "3.0", "4"], before=("3",)) == ["3", "4"]
    assert pasted(["3", "3.0"], before=("3", "3.0")) == ["3", "3.0"], "declared as two"


@given(st.text())
def test_any_text_can_be_typed_as_a_label(text: str) -> None:
    assert all(label.strip() == label and label for label in labels_in(text))
