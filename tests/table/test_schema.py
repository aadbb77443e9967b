from __future__ import annotations

import json
import pickle
from datetime import date

import pytest
from hypothesis import given

from dpsynth_core.errors import DPSynthError, SchemaError
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.table.column import ORIGINS, Column, Origin
from dpsynth_core.table.paid_estimate import PaidEstimate, paid
from dpsynth_core.table.schema import Schema
from tests.tables.strategies import columns, schemas

PROVEN = Guarantee(status="proven", budget=Budget.of(1))


def age(**changes: object) -> dict[str, object]:
    return {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True, **changes}


@given(schemas())
def test_a_schema_survives_json(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize("name", ["", "A. Muster, data steward; codebook of 2024", "<b>A</b>\n**B**"])
def test_who_declared_the_facts_survives_json_and_is_no_fact(name: str) -> None:
    plain = Schema.from_dict({"columns": [age()]})
    signed = Schema.from_dict({"columns": [age()], "declared_by": name})
    assert Schema.from_json(signed.to_json()).declared_by == signed.select(["age"]).declared_by == name
    assert signed == plain
    assert hash(signed) == hash(plain)
    assert signed.unsigned().to_json() == plain.to_json()
    assert "declared_by" not in plain.to_json()


@pytest.mark.parametrize("wrong", [3, None, ["Ada"], "x" * 501])
def test_who_declared_the_facts_is_a_short_text(wrong: object) -> None:
    with pytest.raises(SchemaError, match=r"declared_by is .*text of up to 500 characters"):
        Schema.from_dict({"columns": [age()], "declared_by": wrong})


@given(columns())
def test_a_column_is_plain_json(column: Column) -> None:
    assert Column.from_dict(json.loads(json.dumps(column.to_dict()))) == column


def test_the_documented_example() -> None:
    schema = Schema.from_dict(
        {
            "columns": [
                age(),
                {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
                {"name": "income", "kind": "continuous", "lower": 0, "upper": 1e6, "bins": 32, "public": True},
                {"name": "since", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "nullable": True},
                {"name": "smokes", "kind": "boolean", "public": True},
                {"name": "pain", "kind": "ordinal", "categories": ["none", "some", "much"], "public": True},
            ]
        }
    )
    assert [column.size for column in schema] == [121, 2, 32, 367, 2, 3]
    assert schema.domain_size() == 121 * 2 * 32 * 367 * 2 * 3
    assert schema.domain_size(["age", "sex"]) == 242
    assert schema["since"].lower == date(2020, 1, 1)
    assert schema.not_public == ("since",)


@pytest.mark.parametrize(
    ("facts", "field", "hint"),
    [
        (age(kind="number"), "kind", "continuous"),
        (age(lower=None), "lower", "finite number"),
        (age(lower=float("nan")), "lower", "finite number"),
        (age(upper=float("inf")), "upper", "finite number"),
        (age(lower=200), "upper", "at least lower"),
        (age(lower=0.5), "lower", "whole number"),
        (age(upper=2**60), "upper", "whole number"),
        (age(lower=True), "lower", "finite number"),
        (age(bins=0), "bins", "from 1"),
        (age(bins=1.5), "bins", "whole number"),
        (age(categories=["a"]), "categories", "nothing for kind"),
        (age(decimals=1), "decimals", "nothing for kind"),
        (age(nullable="yes"), "nullable", "true or false"),
        (age(origin="hearsay"), "origin", "codebook"),
        (age(origin="read from the data"), "origin", "public knowledge"),
        (age(public=False, origin="codebook"), "public", "true"),
        (age(public="yes"), "public", "true or false"),
        (age(colour="red"), "field", "lower"),
        ({"name": "x", "kind": "categorical", "public": True}, "categories", "one or more"),
        ({"name": "x", "kind": "categorical", "categories": [], "public": True}, "categories", "1 to"),
        ({"name": "x", "kind": "categorical", "categories": ["a", "a "], "public": True}, "categories", "differ"),
        ({"name": "x", "kind": "categorical", "categories": ["a", ""], "public": True}, "categories", "not empty"),
        ({"name": "x", "kind": "categorical", "categories": ["a"], "other": 3}, "other", "same type"),
        ({"name": "x", "kind": "boolean", "categories": ["a"], "public": True}, "categories", "two labels"),
        ({"name": "x", "kind": "continuous", "lower": 1, "upper": 1}, "upper", "greater than"),
        ({"name": "x", "kind": "continuous", "lower": 1e16, "upper": 1e16 + 4}, "bins", "wider"),
        ({"name": "x", "kind": "continuous", "lower": -1e308, "upper": 1e308}, "upper", "finite"),
        ({"name": "x", "kind": "continuous", "lower": 0.1, "upper": 0.4, "decimals": 0}, "decimals", "enough"),
        ({"name": "x", "kind": "continuous", "lower": 0, "upper": 1e9, "decimals": 12}, "decimals", "few enough"),
        ({"name": "x", "kind": "date", "lower": "yesterday", "upper": "2020-01-01"}, "lower", "2024-12-31"),
        ({"name": "x", "kind": "date", "lower": "2020-01-01"}, "upper", "2024-12-31"),
        ({"name": " ", "kind": "boolean"}, "name", "characters"),
    ],
)
def test_an_impossible_fact_is_named(facts: dict[str, object], field: str, hint: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Column.from_dict(facts)
    assert caught.value.field == field
    assert hint in str(caught.value)
    if field not in ("name",):
        assert repr(facts["name"]) in str(caught.value)


@pytest.mark.parametrize("origin", ORIGINS)
def test_whether_a_column_is_public_follows_from_its_origin_and_is_written_beside_it(origin: Origin) -> None:
    column = Column(name="smokes", kind="boolean", origin=origin)
    assert column.public == (origin != "read from the data")
    assert column.to_dict()["public"] == column.public
    assert Column.from_dict({"name": "smokes", "kind": "boolean", "origin": origin}) == column


def test_a_file_that_only_says_public_means_public_knowledge() -> None:
    facts = {"name": "smokes", "kind": "boolean"}
    assert Column.from_dict({**facts, "public": True}).origin == "public knowledge"
    assert Column.from_dict({**facts, "public": False}).origin == Column.from_dict(facts).origin == "read from the data"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"columns": 3}',
        '{"columns": []}',
        '{"columns": [3]}',
        '{"columns": [{}]}',
        "[" * 10_000,
        '{"columns": [{"name": "a", "kind": "boolean"}], "extra": 1}',
        '{"columns": [{"name": "a", "kind": "boolean"}], "rows_per_person": 0}',
        '{"columns": [{"name": "a", "kind": "boolean"}, {"name": "a", "kind": "boolean"}]}',
        '{"columns": [{"name": "a", "kind": ["boolean"]}]}',
        '{"columns": [{"name": "a"}]}',
        '{"columns": [{"name": "a", "kind": "categorical", "categories": "abc"}]}',
        '{"columns": [{"name": "a", "kind": "categorical", "categories": [["a"]]}]}',
        '{"columns": [{"name": "a", "kind": "integer", "lower": [], "upper": {}}]}',
        '{"columns": [{"name": "a", "kind": "date", "lower": "2020-01-01", "upper": "2020-01-02", "date_format": 3}]}',
        '{"columns": [{"name": "a", "kind": "boolean", "unit": 3}]}',
    ],
)
def test_a_broken_schema_file_is_refused_in_words(text: str) -> None:
    with pytest.raises(DPSynthError) as caught:
        Schema.from_json(text)
    assert "allowed" in str(caught.value)


def test_a_fact_read_from_the_data_voids_the_guarantee_and_names_the_column() -> None:
    schema = Schema.from_dict({"columns": [age(), {"name": "town", "kind": "categorical", "categories": ["a"]}]})
    judged = schema.judge(PROVEN)
    assert judged.status == "void"
    assert any("'town'" in caveat for caveat in judged.caveats)
    assert not any("'age'" in caveat for caveat in judged.caveats)


def test_declared_facts_keep_the_guarantee() -> None:
    assert Schema.from_dict({"columns": [age()]}).judge(PROVEN) == PROVEN


def test_privately_estimated_facts_keep_the_guarantee_with_the_record_of_what_they_cost() -> None:
    schema = Schema.from_dict({"columns": [age(origin="estimated privately")]})
    cost = paid("age", Budget.of("0.1"))
    judged = schema.judge(PROVEN, [PaidEstimate(column="age", lower=0, upper=120, guarantee=cost)])
    assert (judged.status, judged.epsilon, judged.caveats) == ("proven", 1.1, ())
    assert judged.parts[-1].label == "Range of column 'age'"
    without = schema.judge(PROVEN)
    assert without.status == "void"
    assert "'age'" in without.caveats[0]


def test_public_is_false_unless_said() -> None:
    assert not Column.from_dict({"name": "a", "kind": "boolean"}).public


def test_numbers_as_labels_stay_numbers_and_mixed_labels_become_text() -> None:
    def labels(given: list[object]) -> tuple[object, ...]:
        return Column.from_dict({"name": "a", "kind": "categorical", "categories": given}).labels

    assert labels([1, 2.0]) == (1, 2)
    assert labels([1, "N"]) == ("1", "N")
    assert labels([0.5, 1]) == (0.5, 1)


def test_the_other_label_is_added_once() -> None:
    facts = {"name": "a", "kind": "categorical", "categories": ["x", "y"]}
    assert Column.from_dict({**facts, "other": "rest"}).labels == ("x", "y", "rest")
    assert Column.from_dict({**facts, "other": "y"}).labels == ("x", "y")


def test_selecting_and_replacing_columns() -> None:
    schema = Schema.from_dict({"columns": [age(), {"name": "b", "kind": "boolean", "public": True}]})
    assert schema.select(["b"]).names == ("b",)
    assert schema.with_column(Column.from_dict(age(upper=90)))["age"].upper == 90
    with pytest.raises(SchemaError, match="'c'"):
        schema["c"]


def test_errors_survive_the_way_home_from_another_process() -> None:
    with pytest.raises(SchemaError) as caught:
        Column.from_dict(age(lower=200))
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert str(copy) == str(caught.value)
    assert (copy.column, copy.field) == ("age", "upper")
