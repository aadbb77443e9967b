"""The pages as a visitor finds them, without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.examples import EXAMPLES, FIRST
from pages.shared.accounts import account_of
from pages.shared.data.actions import declare_all_public, load_example, load_schema, load_upload
from pages.shared.data.estimate_actions import estimate
from pages.shared.session import Session
from tests.waiting.pages import (
    HOSTILE,
    POSSIBLE,
    ROOT,
    VOID,
    assert_only_in_plain_text,
    badges,
    click,
    csv_of,
    data_page,
    elements,
    session_of,
    settled,
    texts,
    upload,
)


def home_page() -> AppTest:
    return settled(AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run())


def uploaded(*names: str, mode: Any = "teaching", title: str = "mine.csv") -> Session:
    session = Session(mode=mode)
    load_upload(session, title, csv_of(*(names or ("age", "weight"))))
    return session


def choose(app: AppTest, mode: str) -> AppTest:
    return settled(app.radio[0].set_value(mode).run())


def typed(app: AppTest, row: int, **cells: Any) -> AppTest:
    """What the editor reports after typing."""
    key = f"schema_editor_{session_of(app).draft_version}"
    app.session_state[key] = {"edited_rows": {row: cells}, "added_rows": [], "deleted_rows": []}
    return settled(app.run())


def headers(app: AppTest) -> list[str]:
    return [header.value for header in app.header]


# Home


def test_home_says_where_to_begin() -> None:
    app = home_page()
    assert [title.value for title in app.title] == ["DPSynth"]
    assert {button.label for button in app.button} == {"Try an example", "Use my own table"}
    assert any("You have not chosen a table yet" in body.value for body in app.markdown)


def test_trying_an_example_leads_to_the_data_page() -> None:
    app = home_page()
    settled(app.button[0].click().run())
    assert [title.value for title in app.title] == ["Data"]
    assert session_of(app).schema == EXAMPLES[FIRST].schema


def test_using_ones_own_table_leads_to_the_upload() -> None:
    app = home_page()
    settled(app.button[1].click().run())
    assert app.radio(key="source").value == "file"
    assert [uploader.label for uploader in app.file_uploader] == ["CSV, TSV, Parquet or Excel (.xlsx), at most 200 MB"]


def test_home_tells_what_is_still_to_be_done() -> None:
    app = data_page(uploaded())
    typed(app, 0, to="")
    settled(app.switch_page("app.py").run())
    assert "mine.csv: 60 rows, 2 columns" in texts(app)
    assert any("Correct the public facts" in body.value for body in app.markdown)


# The Data page


def test_before_a_table_is_chosen_only_the_choice_is_shown() -> None:
    app = data_page()
    assert headers(app) == ["What kind of data?", "Which table?"]
    assert badges(app) == {":gray-badge[:material/help: Guarantee: nothing declared yet]"}


@pytest.mark.parametrize("key", EXAMPLES)
def test_every_example_can_be_used(key: str) -> None:
    app = data_page()
    settled(app.selectbox(key="example_key").set_value(key).run())
    click(app, "use_example")
    assert session_of(app).schema == EXAMPLES[key].schema
    assert EXAMPLES[key].title in texts(app)
    assert badges(app) == {POSSIBLE}
    assert "Pictures" in headers(app)
    assert app.metric[0].value == str(len(EXAMPLES[key].schema.columns))


def test_a_simulated_example_asks_how_many_rows() -> None:
    app = data_page()
    settled(app.selectbox(key="example_key").set_value("mixture").run())
    app.number_input(key="rows_mixture_0").set_value(25)
    click(app, "use_example")
    assert "25 rows" in texts(app)


def test_in_teaching_mode_a_file_must_first_be_called_public() -> None:
    app = data_page()
    settled(app.radio(key="source").set_value("file").run())
    assert app.file_uploader(key="upload_teaching_0").proto.disabled
    settled(app.checkbox(key="upload_is_public").check().run())
    assert not app.file_uploader(key="upload_teaching_0").proto.disabled


def test_an_uploaded_file_is_void_until_its_facts_are_public() -> None:
    app = upload(data_page(), "mine.csv", csv_of("age", "weight"))
    assert badges(app) == {VOID}
    assert "columns were read from the data, not declared public: 'age', 'weight'." in texts(app), "one sentence"
    click(app, "all_public")
    assert badges(app) == {POSSIBLE}
    assert "read from the data" not in texts(app)
    click(app, "none_public")
    assert badges(app) == {VOID}


def test_a_file_that_is_no_table_is_refused_in_words() -> None:
    app = upload(data_page(), "data.csv", b"\x89PNG\r\n\x1a\n" + bytes(64))
    assert [error.value for error in app.error] == ["This file cannot be used."]
    assert "a PNG image" in texts(app)
    assert session_of(app).current is None


def test_columns_left_out_are_explained() -> None:
    content = b"patient id,age\n" + b"\n".join(b"%d,%d" % (1000 + i, 20 + i % 30) for i in range(60))
    app = upload(data_page(), "mine.csv", content)
    assert "• patient id: Its values are all different" in texts(app)
    typed(app, 1, keep=True, kind="integer", **{"from": "1", "to": "9,999"})
    assert session_of(app).work.problems == []
    assert "patient id: Its values" not in texts(app)


def test_every_problem_in_the_editor_is_listed_at_once() -> None:
    app = data_page(uploaded())
    key = f"schema_editor_{session_of(app).draft_version}"
    app.session_state[key] = {"edited_rows": {0: {"to": "old"}, 1: {"to": ""}}, "added_rows": [], "deleted_rows": []}
    settled(app.run())
    assert [error.value for error in app.error] == ["Please correct this:"]
    assert "Column 'age': To is 'old'" in texts(app)
    assert "Column 'weight': To is empty" in texts(app)
    assert {"What follows", "Pictures"} <= set(headers(app))
    assert not app.metric


def test_ticking_public_in_the_editor_changes_the_verdict() -> None:
    app = typed(data_page(uploaded()), 0, public=True)
    assert badges(app) == {VOID}
    assert "'age'" not in texts(app)
    assert "'weight'" in texts(app)


def test_what_was_typed_survives_leaving_the_page() -> None:
    app = typed(data_page(uploaded()), 0, to="120", unit="years", public=True)
    settled(app.switch_page("app.py").run())
    settled(app.switch_page("pages/1_Data.py").run())
    schema = session_of(app).schema
    assert schema is not None
    assert (schema["age"].upper, schema["age"].unit, schema["age"].public) == (120, "years", True)
    assert app.data_editor[0].value.iloc[0]["to"] == "120"


def test_the_chosen_example_is_still_chosen_after_leaving_the_page() -> None:
    app = data_page()
    settled(app.selectbox(key="example_key").set_value("wine").run())
    settled(app.switch_page("app.py").run())
    settled(app.switch_page("pages/1_Data.py").run())
    assert app.selectbox(key="example_key").value == "wine"


def test_a_saved_schema_for_many_rows_per_person_can_be_loaded() -> None:
    session = uploaded()
    assert session.schema is not None
    saved = session.schema.to_json().replace('"rows_per_person": 1', '"rows_per_person": 5000').encode()
    app = data_page(session)
    settled(app.file_uploader(key=f"schema_file_{session.draft_version}").upload("schema.json", saved).run())
    click(app, "use_schema")
    assert session_of(app).work.rows_per_person == 5000


def test_a_foreign_schema_is_refused_in_words() -> None:
    session = uploaded()
    app = data_page(session)
    foreign = EXAMPLES["wine"].schema.to_json().encode()
    settled(app.file_uploader(key=f"schema_file_{session.draft_version}").upload("schema.json", foreign).run())
    click(app, "use_schema")
    assert [error.value for error in app.error] == ["This schema cannot be used."]
    assert "that this table does not have" in texts(app)


def test_one_name_stands_for_all_facts_and_outlives_the_page() -> None:
    app = data_page(uploaded())

    def field() -> Any:
        return next(entry for entry in app.text_input if entry.label == "Who states that these facts are public?")

    name = "".join(HOSTILE)
    settled(field().set_value(name).run())
    click(app, "all_public")
    schema = session_of(app).schema
    assert schema is not None
    assert schema.declared_by == name
    settled(app.switch_page("app.py").run())
    settled(app.switch_page("pages/1_Data.py").run())
    assert field().value == name


def test_the_unit_of_protection_can_be_changed() -> None:
    app = data_page(uploaded())
    (unit,) = [entry for entry in app.number_input if "rows can one person own" in entry.label]
    settled(unit.set_value(3).run())
    schema = session_of(app).schema
    assert schema is not None
    assert schema.rows_per_person == 3


def test_values_that_do_not_fit_are_counted_in_teaching_mode_only() -> None:
    app = typed(data_page(uploaded()), 0, to="15")
    assert "• age: " in texts(app)
    assert " clamped" in texts(app)
    choose(app, "release")
    assert session_of(app).schema is not None
    assert "clamped" not in "\n".join(str(element.proto) for element in elements(app._tree))


# Modes, accounts and estimates


def test_switching_the_mode_is_shown_everywhere() -> None:
    app = data_page()
    choose(app, "release")
    assert session_of(app).mode == "release"
    assert any(":blue-badge[Release mode]" in body.value for body in app.markdown)
    assert [caption.value for caption in app.sidebar.caption] == ["You have not chosen a data set yet."]
    choose(app, "teaching")
    assert any(":blue-badge[Teaching mode]" in body.value for body in app.markdown)


def test_an_uploaded_file_disappears_when_release_mode_is_left() -> None:
    app = choose(data_page(uploaded(mode="release")), "teaching")
    assert session_of(app).current is not None, "the app asks first"
    click(app, "leave_mode")
    assert session_of(app).current is None
    assert headers(app) == ["What kind of data?", "Which table?"]


def test_in_release_mode_rows_are_hidden_until_asked_for() -> None:
    app = data_page(uploaded(mode="release"))
    assert len(app.dataframe) == len(app.data_editor) == 1
    assert "Pictures" not in headers(app)
    settled(app.toggle(key="show_private").set_value(True).run())
    assert len(app.dataframe) == 2
    assert "Pictures" in headers(app)


def test_an_account_is_opened_once_with_a_form() -> None:
    app = data_page(uploaded(mode="release"))
    assert app.button(key="estimate").disabled
    (total,) = [entry for entry in app.number_input if entry.label == "Total epsilon"]
    total.set_value(2.0)
    (submit,) = [button for button in app.button if button.label == "Open the account"]
    settled(submit.click().run())
    account = account_of(session_of(app))
    assert account is not None
    assert account.total == Budget.of(2, "1e-6")
    assert "ε 0 of 2 spent" in texts(app)
    assert "Open the account" not in {button.label for button in app.button}
    assert app.button(key="estimate").disabled
    assert not state_the_rest(app).button(key="estimate").disabled
    (unit,) = [entry for entry in app.number_input if "rows can one person own" in entry.label]
    assert unit.disabled


def state_the_rest(app: AppTest) -> AppTest:
    """State that the other facts of the column to be estimated are public knowledge."""
    (box,) = [box for box in app.checkbox if box.label.startswith("I state as public knowledge")]
    return settled(box.check().run())


def test_an_estimate_asks_for_a_statement_about_everything_else() -> None:
    app = data_page(uploaded())
    assert app.button(key="estimate").disabled
    (box,) = [box for box in app.checkbox if box.label.startswith("I state as public knowledge")]
    assert "this column is integer and that its values are never missing" in box.label


def test_a_teaching_estimate_that_is_saved_and_loaded_for_a_release_is_void() -> None:
    teaching = uploaded()
    declare_all_public(teaching, public=True)
    estimate(teaching, "age", Budget.of(5), run_id="free", others_public=True)
    assert teaching.schema is not None
    app = data_page(uploaded(mode="release"))
    load_schema(session_of(app), teaching.schema.to_json().encode())
    settled(app.run())
    assert "no charge for this estimate is on record for this table" in texts(app)
    guarantee = session_of(app).guarantee
    assert guarantee is not None
    assert guarantee.status == "void"


def test_a_total_that_is_no_number_is_refused_in_words() -> None:
    app = data_page(uploaded(mode="release"))
    (delta,) = [entry for entry in app.text_input if entry.label == "Total delta"]
    delta.set_value("**tiny**")
    (submit,) = [button for button in app.button if button.label == "Open the account"]
    settled(submit.click().run())
    assert [error.value for error in app.error] == ["The account was not opened."]
    assert "delta is '**tiny**'" in texts(app)
    assert account_of(session_of(app)) is None


def test_a_teaching_estimate_declares_the_column() -> None:
    app = data_page(uploaded())
    app.number_input(key="estimate_epsilon").set_value(10.0)
    click(state_the_rest(app), "estimate")
    schema = session_of(app).schema
    assert schema is not None
    assert schema["age"].origin == "estimated privately"


def test_dates_and_booleans_are_not_offered_for_estimates() -> None:
    content = b"day,ok,age\n" + b"\n".join(
        b"2024-01-%02d,%s,%d" % (1 + i % 28, (b"true", b"false")[i % 2], i % 30) for i in range(60)
    )
    app = upload(data_page(), "mine.csv", content)
    schema = session_of(app).schema
    assert schema is not None
    assert [column.kind for column in schema] == ["date", "boolean", "integer"]
    (offered,) = [box for box in app.selectbox if box.label == "Column"]
    assert offered.options == ["age"]


def test_an_unknown_range_need_not_be_known_to_be_estimated() -> None:
    app = typed(data_page(uploaded()), 0, to="")
    assert any("the estimate replaces it" in " ".join(caption.value.split()) for caption in app.caption)


def test_a_spoilt_key_is_told_in_words_and_the_mode_stays(home: Path) -> None:
    home.mkdir()
    (home / "installation.key").write_bytes(b"short")
    session = Session()
    load_example(session, "mixture", rows=20)
    app = choose(data_page(session), "release")
    assert "The mode was not changed." in [error.value for error in app.error]
    assert session_of(app).mode == "teaching"
    settled(choose(data_page(), "release"))


def test_an_unreadable_ledger_is_told_in_words(home: Path) -> None:
    app = data_page(uploaded(mode="release"))
    (home / "ledger.db").write_bytes(b"not a database, but long enough to be taken for one" * 100)
    settled(app.run())
    assert {error.value for error in app.error} == {"The ledger cannot be used."}


# Text from files


@pytest.mark.parametrize("mode", ["teaching", "release"])
def test_names_from_a_file_are_never_read_as_markup(mode: str) -> None:
    app = data_page(uploaded(*HOSTILE, mode=mode, title="".join(HOSTILE)))
    for hostile in HOSTILE:
        assert_only_in_plain_text(app, hostile)
    settled(app.switch_page("app.py").run())
    for hostile in HOSTILE:
        assert_only_in_plain_text(app, hostile)


def test_problems_about_a_hostile_column_are_never_read_as_markup() -> None:
    app = data_page(uploaded(*HOSTILE))
    key = f"schema_editor_{session_of(app).draft_version}"
    edits = {row: {"unit": hostile, "to": f"{hostile}!"} for row, hostile in enumerate(HOSTILE)}
    app.session_state[key] = {"edited_rows": edits, "added_rows": [], "deleted_rows": []}
    settled(app.run())
    assert [error.value for error in app.error] == ["Please correct this:"]
    for hostile in HOSTILE:
        assert_only_in_plain_text(app, hostile)
        assert_only_in_plain_text(app, f"{hostile}!")


def test_labels_and_moved_values_of_a_hostile_column_are_never_read_as_markup() -> None:
    session = Session()
    load_upload(
        session, "x.csv", ("town,<b>n</b>\n" + "\n".join(f"{HOSTILE[i % 6]},{i % 9}" for i in range(60))).encode()
    )
    app = typed(data_page(session), 1, to="3")
    assert " clamped" in texts(app)
    assert_only_in_plain_text(app, "<b>n</b>")


def test_a_hostile_column_can_be_estimated() -> None:
    session = uploaded(HOSTILE[0])
    estimate(session, HOSTILE[0], Budget.of(5), run_id="once", others_public=True)
    app = data_page(session)
    assert "Estimated privately" in texts(app)
    assert_only_in_plain_text(app, HOSTILE[0])


# Words among numbers, and labels that are pasted


def test_numbers_with_words_are_offered_as_numbers_and_the_page_says_so() -> None:
    cells = [*(f"{20 + i % 60},{2 + i % 40 / 10:.1f}" for i in range(120)), "31,<5", "?,3.1"]
    app = upload(data_page(), "mine.csv", ("age,creatinine\n" + "\n".join(cells)).encode())
    schema = session_of(app).schema
    assert schema is not None
    assert [(column.kind, column.nullable) for column in schema] == [("integer", True), ("continuous", True)]
    assert "• age, creatinine: Most of their cells are numbers and some are words" in texts(app)
    typed(app, 0, kind="categorical", categories=["young,old"])
    assert "• creatinine: Most of its cells are numbers and some are words" in texts(app)
    typed(app, 1, kind="categorical", categories=["low,high"])
    assert "creatinine: Most" not in texts(app)


def test_a_pasted_list_of_labels_is_taken_apart() -> None:
    app = upload(data_page(), "mine.csv", csv_of("age", "weight"))
    typed(app, 0, kind="ordinal", categories=["0,1,2"])
    schema = session_of(app).schema
    assert schema is not None
    assert schema["age"].labels == (0, 1, 2)
