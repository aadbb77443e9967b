"""The layout of an uploaded file: shown, declared, corrected, and never the reason for a second account."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.errors import DPSynthError, IntakeError
from dpsynth_core.ledger.fingerprint import fingerprint
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.review import Publication, release_bundle
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.table.file_layout import FileLayout
from pages.shared.accounts import account_of, open_ledger
from pages.shared.data.actions import (
    change_layout,
    declare_all_public,
    declare_layout,
    edit_draft,
    load_example,
    load_schema,
    load_upload,
    open_account,
)
from pages.shared.session import Session
from tests.waiting.pages import POSSIBLE, VOID, badges, click, data_page, session_of, settled, texts, upload

EUROPEAN = b"dose;town\n" + b"".join(b"%d,5;%s\n" % (i % 30, (b"north", b"south")[i % 2]) for i in range(60))
GRADES = b"grade,town\n" + b"".join(b"%d,%s\n" % (1 + i % 3, (b"north", b"south")[i % 2]) for i in range(60))


def uploaded(content: bytes = EUROPEAN, mode: Any = "teaching") -> Session:
    session = Session(mode=mode)
    load_upload(session, "mine.csv", content)
    return session


def layout_in(session: Session) -> FileLayout:
    layout = session.work.data.layout
    assert layout is not None
    return layout


def fill_in(app: AppTest, **values: Any) -> AppTest:
    """Enter values in the layout's form and submit it."""
    key = f"layout_{session_of(app).draft_version}"
    for name, value in values.items():
        kinds = (app.selectbox, app.number_input, app.checkbox, app.text_area, app.text_input)
        (field,) = [entry for kind in kinds for entry in kind if entry.key == f"{key}_{name}"]
        field.set_value(value)
    return click(app, f"{key}_submit")


# On the page


def test_the_layout_is_shown_in_one_line_and_covered_by_the_same_statement() -> None:
    app = upload(data_page(), "mine.csv", EUROPEAN)
    assert "Layout of the file: semicolon-separated, UTF-8, decimal comma, header in row 1." in texts(app)
    assert "How the file is laid out was read from the data, not declared public." in texts(app)
    click(app, "all_public")
    assert badges(app) == {POSSIBLE}
    schema = session_of(app).schema
    assert schema is not None
    assert schema.file == layout_in(session_of(app))
    click(app, "none_public")
    assert badges(app) == {VOID}


def test_columns_alone_are_not_enough() -> None:
    session = uploaded()
    declare_all_public(session, public=True)
    app = data_page(session)
    box = app.checkbox(key=f"layout_public_{session.draft_version}")
    assert box.value
    settled(box.uncheck().run())
    assert badges(app) == {VOID}
    assert "How the file is laid out was read from the data" in texts(app)


def test_an_example_has_no_layout() -> None:
    session = Session()
    load_example(session, "wine")
    assert "Layout of the file" not in texts(data_page(session))


def test_a_corrected_layout_reads_the_file_again_and_keeps_what_was_declared() -> None:
    session = uploaded(b"dose;town\n" + b"1.250;north\n3.500;south\n7.125;south\n" * 20)
    rows = session.work.draft.copy()
    rows.loc[rows["name"] == "town", "unit"] = "place"
    edit_draft(session, rows)
    app = fill_in(data_page(session), decimal=",", thousands=".")
    assert "decimal comma" in texts(app)
    schema = session_of(app).schema
    assert schema is not None
    assert schema["dose"].upper >= 3500
    assert schema["town"].unit == "place"


def test_a_file_that_is_broken_by_the_new_layout_stays_as_it_was() -> None:
    app = fill_in(data_page(uploaded()), header=False, fields=1)
    assert [error.value for error in app.error] == ["The layout was not changed."]
    assert "has more than 1 fields" in texts(app)
    assert layout_in(session_of(app)).header


def test_markers_of_missing_values_are_declared_one_per_line() -> None:
    app = fill_in(data_page(uploaded(b"dose,town\n" + b"-99,north\n3,?\n" * 30)), missing="-99\n?")
    session = session_of(app)
    assert layout_in(session).missing == ("", "-99", "?")
    assert session.work.private is not None
    assert session.work.data.table["town"].isna().sum() == 30


def test_a_file_that_no_guess_can_read_is_read_by_what_is_entered() -> None:
    app = upload(data_page(), "mine.csv", b"a report\nof two lines\n" + EUROPEAN)
    assert [error.value for error in app.error] == ["This file cannot be used."]
    assert session_of(app).current is None
    app.number_input(key="unread_layout_skip_rows").set_value(2)
    app.selectbox(key="unread_layout_delimiter").set_value(";")
    app.selectbox(key="unread_layout_decimal").set_value(",")
    app.checkbox(key="unread_layout_header").check()
    click(app, "unread_layout_submit")
    assert list(session_of(app).work.data.table.columns) == ["dose", "town"]
    assert "header in row 3" in texts(app)


def test_numbers_are_previewed_as_numbers() -> None:
    app = data_page(uploaded())
    preview = app.dataframe[0].value if "dose" in app.dataframe[0].value else app.dataframe[1].value
    assert preview["dose"].dtype.kind == "f"
    assert preview["dose"].iloc[3] == 3.5


def test_after_a_run_the_layout_is_fixed() -> None:
    session = uploaded()
    declare_all_public(session, public=True)
    assert session.schema is not None
    order = RunConfig(mechanism=MECHANISMS["perturbed_histogram"].suggest(session.schema, 60, 1), epsilon="1")
    session.work.add_run(execute(session.work.data.table, session.schema, order))
    with pytest.raises(DPSynthError, match="upload it again"):
        change_layout(session, FileLayout())
    assert "upload it again" in "".join(caption.value for caption in data_page(session).caption)


# The account


def test_the_account_does_not_depend_on_the_layout() -> None:
    session = uploaded(mode="release")
    open_account(session, 2, 0)
    before = session.work.data.fingerprint
    change_layout(session, FileLayout(delimiter="|"))
    assert list(session.work.data.table.columns) == ["dose;town"]
    assert session.work.data.fingerprint == before
    assert account_of(session) is not None
    again = Session(mode="release")
    load_upload(again, "other.csv", EUROPEAN, FileLayout(delimiter="|"))
    assert again.work.data.fingerprint == before


def test_an_account_opened_when_columns_were_typed_is_found() -> None:
    typed = pd.read_csv(io.BytesIO(EUROPEAN), sep=";", decimal=",")
    assert typed["dose"].dtype.kind == "f"
    name = fingerprint(typed, Settings.from_environment().installation_key())
    open_ledger().open_account(name, total=Budget.of(3))
    session = uploaded(EUROPEAN.replace(b"\n", b"\n\n"), mode="release")
    account = account_of(session)
    assert account is not None
    assert account.total == Budget.of(3)


# Saved schemas


def saved(session: Session, **changes: Any) -> bytes:
    assert session.schema is not None
    return json.dumps({**session.schema.to_dict(), **changes}).encode()


def test_a_saved_schema_brings_its_layout() -> None:
    session = uploaded()
    declare_all_public(session, public=True)
    change_layout(session, replace(layout_in(session), missing=("", "none")))
    again = uploaded()
    load_schema(again, saved(session))
    assert again.schema == session.schema
    assert layout_in(again).missing == ("", "none")
    assert again.guarantee is not None
    assert again.guarantee.status == "proven"


def test_a_schema_from_before_layouts_leaves_it_to_be_declared() -> None:
    session = uploaded()
    declare_all_public(session, public=True)
    again = uploaded()
    load_schema(again, saved(session, file=None))
    assert again.guarantee is not None
    assert again.guarantee.status == "void"
    declare_layout(again, public=True)
    assert again.guarantee.status == "proven"


def test_a_layout_that_was_only_suggested_is_not_declared() -> None:
    session = uploaded()
    load_schema(session, saved(session, file=layout_in(session).to_dict()))
    assert not session.work.layout_public


def test_a_schema_whose_layout_breaks_the_file_changes_nothing() -> None:
    session = uploaded()
    before = session.schema
    with pytest.raises(IntakeError, match="declared as excel"):
        load_schema(session, saved(session, file={"format": "excel"}))
    assert session.schema == before


# Labels are what was declared, whatever the rows hold

LABELS = {"name": "grade", "kind": "categorical", "public": True, "origin": "codebook", "nullable": True}
ODD = GRADES.replace(b"1,north", b"unknown,north", 1)


@pytest.mark.parametrize("content", [GRADES, ODD])
@pytest.mark.parametrize("labels", [[1, 2, 3], ["1", "2", "3"]])
def test_labels_are_published_as_they_were_declared(content: bytes, labels: list[Any]) -> None:
    session = uploaded(content)
    facts = {"columns": [{**LABELS, "categories": labels}], "file": FileLayout().to_dict()}
    load_schema(session, json.dumps(facts).encode())
    assert session.schema is not None
    assert session.schema["grade"].categories == tuple(labels)
    order = RunConfig(mechanism=MECHANISMS["perturbed_histogram"].suggest(session.schema, 60, 1), epsilon="1")
    files = release_bundle(execute(session.work.data.table, session.schema, order), Publication()).files
    assert json.loads(files["schema.json"])["columns"][0]["categories"] == labels
    column = pd.read_parquet(io.BytesIO(files["synthetic.parquet"]))["grade"]
    assert (column.dtype.kind == "i") == (labels == [1, 2, 3])
    fields = json.loads(files["croissant.json"])["recordSet"][0]["field"]
    kinds = {field["name"]: field["dataType"] for field in fields}
    assert ("Text" in str(kinds["grade"])) == (labels == ["1", "2", "3"])


def test_one_word_among_numbers_changes_no_other_fact_of_a_loaded_schema() -> None:
    facts = json.dumps({"columns": [{**LABELS, "categories": [1, 2, 3]}], "file": FileLayout().to_dict()}).encode()
    both = [uploaded(GRADES), uploaded(ODD)]
    for session in both:
        load_schema(session, facts)
    assert both[0].schema == both[1].schema
