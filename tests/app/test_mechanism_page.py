"""The Mechanism and Synthesize pages as a visitor finds them, without a browser."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.errors import BudgetError, DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.parameters import parameters
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.forecast import Forecast
from dpsynth_core.runs.jobs import Job
from pages.shared.accounts import account_of
from pages.shared.data.actions import choose_mode, load_example, load_upload, open_account
from pages.shared.mechanism.actions import rival_scenarios, start_preview
from pages.shared.mechanism.settings import MechanismSettings, plan_for
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from pages.shared.tasks import RUN, Task
from tests.tables.stepping import Stepping
from tests.waiting.jobs import finish
from tests.waiting.pages import csv_of, page, session_of, settled


def ready(example: str = "two_groups_signal", mode: str = "teaching") -> Session:
    session = Session(mode=mode)  # type: ignore[arg-type]
    load_example(session, example)
    return session


def mechanism_page(session: Session) -> AppTest:
    return page("pages/2_Mechanism.py", session)


def synthesize_page(session: Session) -> AppTest:
    return page("pages/3_Synthesize.py", session)


@pytest.mark.parametrize("path", ["pages/2_Mechanism.py", "pages/3_Synthesize.py"])
def test_without_a_table_the_page_says_what_is_missing(path: str) -> None:
    app = page(path, Session())
    assert "needs a table" in app.info[0].value
    assert any("Choose an example" in element.value for element in app.markdown)


def suggested(key: str) -> dict[str, Any]:
    """What a form begins with, by the choices that decide which settings apply."""
    return vars(MECHANISMS[key]())


@pytest.mark.parametrize("key", MECHANISMS)
def test_every_registered_mechanism_has_a_card_a_form_and_pictures(key: str) -> None:
    app = mechanism_page(ready())
    settled(app.button(key=f"choose_{key}").click().run())
    assert session_of(app).settings.key == key
    labels = {element.label for element in [*app.number_input, *app.selectbox, *app.text_input, *app.checkbox]}
    asked = [parameter for parameter in parameters(MECHANISMS[key]) if parameter.applies(suggested(key))]
    assert {parameter.title for parameter in asked} <= labels
    assert any(MECHANISMS[key].title in element.value for element in app.markdown)


def test_comparators_are_shown_apart() -> None:
    app = mechanism_page(ready())
    fold = next(fold for fold in app.expander if fold.label == "Comparators from the papers")
    assert not fold.proto.expanded
    inside = {element.key for element in fold.button}
    assert inside == {f"choose_{key}" for key, kind in MECHANISMS.items() if kind.comparator}
    settled(app.button(key="choose_dp_merf").click().run())
    fold = next(fold for fold in app.expander if fold.label == "Comparators from the papers")
    assert fold.proto.expanded, "what is chosen can be seen"


def test_a_mechanism_that_does_not_fit_says_so_on_its_card() -> None:
    session = ready("breast_cancer")
    session.settings.changed["perturbed_histogram"] = {"bins": 16}
    app = mechanism_page(session)
    (said,) = {element.value for element in app.text if "5,000,000" in element.value}
    assert said.startswith("It would need ")
    assert "Private-PGM, KD tree or Smoothed histogram" in said


def test_epsilon_is_read_out_in_plain_language() -> None:
    app = mechanism_page(ready())
    assert any("73.1%" in element.value for element in app.markdown)
    settled(app.select_slider[0].set_value("3").run())
    assert session_of(app).settings.epsilon == "3"
    assert any("95.3%" in element.value for element in app.markdown)
    ends = [element.value for element in app.markdown]
    assert any("more private" in text for text in ends)
    assert any("more accurate" in text for text in ends)


def test_epsilon_that_was_set_elsewhere_moves_the_slider() -> None:
    session = ready()
    app = mechanism_page(session)
    settled(app.select_slider[0].set_value("3").run())
    session_of(app).settings.epsilon = "0.37"
    assert settled(app.run()).select_slider[0].value == "0.37"
    settled(app.select_slider[0].set_value("1").run())
    assert session_of(app).settings.epsilon == "1"


def test_two_mechanisms_are_compared_by_the_same_forecast_and_one_is_the_recommended() -> None:
    session = ready("breast_cancer")
    session.settings.pick("kd_tree")
    app = mechanism_page(session)
    first, second = (element.value for element in app.selectbox if element.label in ("One mechanism", "Another"))
    assert (first, second) == ("kd_tree", recommended(session.work.schema))  # type: ignore[arg-type]
    assert session.work.schema is not None
    scenarios = rival_scenarios(session, session.work.schema, session.work.n, (first, second))
    errors = (
        ExpectedError(columns=(("age", 0.1),), pairs=(("age", "size", error),), repetitions=1) for error in (0.4, 0.2)
    )
    session.work.rivals = (
        scenarios,
        {key: Forecast(rows=10, errors=(error,)) for key, error in zip(scenarios, errors, strict=True)},
    )
    shown = mechanism_page(session)
    table = next(frame.value for frame in shown.dataframe if "pairs, on average" in frame.value.columns)
    assert list(table["pairs, on average"]) == ["40%", "20%"]


def test_a_changed_parameter_is_kept_and_can_be_reset() -> None:
    app = mechanism_page(ready())
    field = next(element for element in app.number_input if element.label == "Free halvings")
    settled(field.set_value(3).run())
    session = session_of(app)
    assert session.settings.changed["kd_tree"] == {"free_levels": 3}
    assert session.settings.mechanism(session.schema, 500).free_levels == 3  # type: ignore[arg-type, attr-defined]
    settled(app.button(key="reset").click().run())
    assert not session.settings.changed.get("kd_tree")


@pytest.mark.parametrize("key", [key for key, kind in MECHANISMS.items() if kind.presets])
def test_a_papers_settings_are_one_click_away_and_can_be_left(key: str) -> None:
    session = ready()
    session.settings.pick(key)
    session.settings.changed[key] = {"rows": 77}
    (preset,) = MECHANISMS[key].presets.values()
    app = settled(mechanism_page(session).button(key="preset_0").click().run())
    mechanism = session_of(app).settings.mechanism(session.schema, 500)  # type: ignore[arg-type]
    assert {name: getattr(mechanism, name) for name in preset} == dict(preset)
    assert mechanism.rows is None  # what was changed before does not stay behind
    app = settled(app.button(key="reset").click().run())
    assert not session_of(app).settings.changed.get(key)


def test_the_published_pmse_mechanism_says_that_its_guarantee_is_a_heuristic() -> None:
    session = ready("bivariate_normal")
    session.settings.pick("pmse")
    app = mechanism_page(session)
    assert not any("heuristic" in warning.value for warning in app.warning)
    proven = [body.value for body in app.markdown if "Guarantee: proven]" in body.value]
    app = settled(app.button(key="preset_0").click().run())
    still = [body.value for body in app.markdown if "Guarantee: proven]" in body.value]
    assert len(still) == len(proven) - 2, "its card and the comparison say what these settings can claim"
    (warning,) = [warning.value for warning in app.warning if "heuristic" in warning.value]
    assert "greedy trees, which one row can move further" in warning
    assert any("If the guarantee held in full" in element.value for element in app.markdown)
    assert not session_of(app).settings.missing(session.schema, 500)  # type: ignore[arg-type]


def test_no_limit_is_stated_for_a_mechanism_that_is_not_private() -> None:
    session = ready()
    session.settings.pick("bayes")
    said = [element.value for element in mechanism_page(session).markdown]
    assert any("not private: its rows may tell an attacker anything" in text for text in said)
    assert not any("become at most" in text for text in said)


def test_the_theorems_stand_beside_what_happens_for_a_grid_of_numbers_only() -> None:
    session = ready("bivariate_normal")
    session.settings.pick("kd_grid")
    app = settled(mechanism_page(session))
    app = settled(next(each for each in app.toggle if each.key == "show_theory").set_value(True).run())
    table = next(frame.value for frame in app.dataframe if "what the theory promises" in frame.value.columns)
    assert list(table["theorem"]) == ["3", "5", "6"]
    assert all(float(value) < 1 for value in table["what is expected"])
    silent = table["what the theory promises"].str.startswith("nothing: see below").sum()
    assert sum(element.value.count("does not apply") for element in app.text) == silent
    labelled = ready("two_groups_signal")
    labelled.settings.pick("kd_grid")
    assert not any(each.key == "show_theory" for each in settled(mechanism_page(labelled)).toggle)


def test_an_impossible_parameter_is_refused_at_once_by_name() -> None:
    session = ready()
    session.settings.changed["kd_tree"] = {"split_share": 2.0}
    for app in (mechanism_page(session), synthesize_page(session)):
        assert any("Share for finding boxes is 2.0; allowed" in element.value for element in app.text)


def test_the_preview_shows_simulated_data_and_only_in_teaching_mode() -> None:
    app = mechanism_page(ready())
    settled(app.button(key="preview").click().run())
    task = session_of(app).work.tasks["preview"]
    assert finish(task.job).state == "finished"
    settled(app.run())
    assert any("Nothing here is your data" in element.value for element in app.caption)
    app = mechanism_page(ready(mode="release"))
    assert not any("Preview" in button.label for button in app.button)


def test_a_saved_configuration_restores_the_choices() -> None:
    session = ready()
    settings, schema = session.settings, session.schema
    assert schema is not None
    settings.key, settings.epsilon, settings.copies = "kd_grid", "0.3", 2
    settings.set(schema, 500, "threshold", 7)
    saved = settings.config(schema, 500, teaching=True).to_json()
    fresh = MechanismSettings()
    fresh.load(RunConfig.from_json(saved))
    assert fresh.config(schema, 500, teaching=True) == settings.config(schema, 500, teaching=True)


def test_what_does_not_fit_is_refused_in_words() -> None:
    session = ready("breast_cancer")
    assert session.schema is not None
    with pytest.raises(DPSynthError, match="cells"):
        plan_for(MECHANISMS["perturbed_histogram"](), session.schema, 569, "1")


def test_next_says_what_is_missing_and_opens_once_it_is_mended() -> None:
    session = ready("breast_cancer")
    session.settings.key = "perturbed_histogram"
    session.settings.changed["perturbed_histogram"] = {"bins": 0}
    app = mechanism_page(session)
    assert app.button(key="next").disabled
    assert any("Correct the parameters" in element.value for element in app.markdown)
    session.settings.changed["perturbed_histogram"] = {"bins": 16}
    app = mechanism_page(session)
    assert app.button(key="next").disabled
    assert any("fit this table" in element.value for element in app.markdown)
    app = settled(app.button(key="reset").click().run())
    assert not app.button(key="next").disabled


def test_only_what_is_advanced_is_folded_away() -> None:
    for key, kind in MECHANISMS.items():
        session = ready()
        session.settings.key = key
        app = mechanism_page(session)
        folds = {fold.label: fold for fold in app.expander}
        advanced = [each for each in parameters(kind) if each.advanced and each.applies(suggested(key))]
        if not advanced:
            assert "Advanced settings" not in folds
            continue
        fold = folds["Advanced settings"]
        folded = {element.label for element in [*fold.number_input, *fold.selectbox, *fold.text_input, *fold.checkbox]}
        assert folded == {parameter.title for parameter in advanced}


def test_a_setting_that_has_no_effect_beside_the_others_is_not_asked_for() -> None:
    session = ready()
    session.settings.key = "pmse"
    app = mechanism_page(session)
    assert "Law of numbers" in {each.label for each in app.selectbox}
    settled(app.button(key="preset_0").click().run())
    assert "Law of numbers" not in {each.label for each in app.selectbox}
    assert "Depth of greedy trees" in {each.label for each in app.number_input}


def test_a_mechanism_that_needs_a_delta_is_asked_for_one_and_gets_it() -> None:
    class Approximate(Stepping):
        needs_delta = True

    with MECHANISMS.register("approximate", Approximate):
        session = ready()
        assert order_of(session).delta == "0"
        session.settings.key = "approximate"
        app = mechanism_page(session)
        (delta,) = (element for element in app.text_input if "Delta" in element.label)
        settled(delta.set_value("lots").run())
        assert session.settings.delta == "1e-6"
        settled(delta.set_value("1e-9").run())
        assert order_of(session).delta == "1e-9"


def test_a_mechanism_that_can_use_a_delta_gets_one_only_if_it_is_granted() -> None:
    session = ready()
    app = mechanism_page(session)
    assert not [toggle for toggle in app.toggle if "δ" in toggle.label]
    settled(app.button(key="choose_private_pgm").click().run())
    (grant,) = (toggle for toggle in app.toggle if "δ" in toggle.label)
    assert order_of(session_of(app)).delta == "0"
    assert not [element for element in app.text_input if "Delta" in element.label]
    settled(grant.set_value(True).run())
    assert [element.value for element in app.text_input if "Delta" in element.label] == ["1e-6"]
    assert order_of(session_of(app)).delta == "1e-6"
    saved = order_of(session_of(app)).to_json()
    settled(app.button(key="choose_kd_tree").click().run())
    assert order_of(session_of(app)).delta == "0"
    loaded = MechanismSettings()
    loaded.load(RunConfig.from_json(saved))
    assert loaded.delta_of() == "1e-6"


def test_a_table_begins_with_what_suits_it_until_the_visitor_chooses() -> None:
    session = ready("breast_cancer")
    assert session.settings.key == "private_pgm"
    assert sum("Begin with this" in badge.value for badge in mechanism_page(session).markdown) == 1
    load_example(session, "mixture")
    assert session.settings.key == "kd_tree"
    session.settings.pick("mwem")
    load_example(session, "breast_cancer")
    assert session.settings.key == "mwem"


def test_what_the_visitor_has_changed_is_not_exchanged_for_another() -> None:
    session = ready("mixture")
    assert session.schema is not None
    session.settings.set(session.schema, 1000, "free_levels", 3)
    load_example(session, "breast_cancer")
    assert session.settings.key == "kd_tree"


def test_several_tables_show_what_they_cost_together() -> None:
    session = ready()
    session.settings.epsilon, session.settings.copies = "0.5", 4
    app = synthesize_page(session)
    assert any("all tables together: **ε = 2**" in element.value for element in app.markdown)
    (rows,) = (element for element in app.number_input if element.label == "Rows in each")
    settled(rows.set_value(77).run())
    assert order_of(session).mechanism.rows == 77


def test_another_table_cancels_whatever_runs_on_the_old_one() -> None:
    session = ready()
    slow = RunConfig(mechanism=Stepping(steps=10_000, pause=0.1), epsilon="1")
    tasks = [start(session, slow), start_preview(session, slow)]
    load_example(session, "bivariate_normal")
    assert [finish(task.job).state for task in tasks] == ["cancelled", "cancelled"]
    session.collect()
    assert session.runs == []
    assert session.work.tasks.get(RUN) is None


def test_another_mode_cancels_a_run_too() -> None:
    session = ready()
    task = start(session, RunConfig(mechanism=Stepping(steps=10_000, pause=0.1), epsilon="1"))
    choose_mode(session, "release")
    assert finish(task.job).state == "cancelled"


@pytest.mark.parametrize(
    ("charged", "words"),
    [(None, "Nothing was charged."), (True, "was charged: ε 0.25, δ 0."), (False, "so nothing was charged")],
)
def test_the_end_of_a_run_says_what_was_charged(charged: bool | None, words: str) -> None:
    session = ready()
    job = Job(id="x", title="x", submitted=0.0, state="cancelled", charged=charged)
    session.work.tasks.put(RUN, Task(title="The run", about=None, job=job, store=print, cost="ε 0.25, δ 0"))
    app = synthesize_page(session)
    assert any("The run was cancelled." in element.value for element in app.info)
    assert any(words in element.value for element in app.text)


def test_when_nobody_is_connected_unpaid_work_is_cancelled_and_says_why() -> None:
    session = ready()
    task = start(session, RunConfig(mechanism=Stepping(steps=10_000, pause=0.1), epsilon="1"))
    session.abandon()
    assert finish(task.job).state == "cancelled"
    app = synthesize_page(session)
    assert any("lost its connection" in element.value for element in app.text)


def test_a_run_that_was_paid_for_goes_on_when_nobody_is_connected() -> None:
    session = released()
    task = start(session, RunConfig(mechanism=Stepping(steps=20, pause=0.1), epsilon="0.5"))
    session.abandon()
    assert finish(task.job).state == "finished"
    session.collect()
    assert len(session.runs) == 1
    account = account_of(session)
    assert account is not None
    assert [entry.state for entry in account.entries] == ["committed"]


def order_of(session: Session, epsilon: str = "1") -> RunConfig:
    assert session.schema is not None
    session.settings.epsilon = epsilon
    return session.settings.config(session.schema, session.work.n, teaching=session.mode == "teaching")


def released() -> Session:
    session = Session(mode="release")
    load_upload(session, "private.csv", csv_of("age", "weight"))
    open_account(session, "1", "0")
    return session


def test_a_run_in_release_mode_is_charged_once_and_its_outcome_collected_once() -> None:
    session = released()
    task = start(session, order_of(session, "0.25"))
    account = account_of(session)
    assert account is not None
    assert account.spent.epsilon == Budget.of("0.25").epsilon  # before anything is visible
    finish(task.job)
    for _ in range(2):
        session.collect()
    account = account_of(session)
    assert account is not None
    assert [entry.state for entry in account.entries] == ["committed"]
    assert len(session.runs) == 1
    assert session.runs[0].charge == account.entries[0].id
    assert session.runs[0].result.guarantee.status == "void"  # nothing was declared public


def test_more_than_what_is_left_is_refused_and_nothing_runs() -> None:
    session = released()
    with pytest.raises(BudgetError, match="left"):
        start(session, order_of(session, "2"))
    assert session.work.tasks.get(RUN) is None
    app = synthesize_page(session)
    assert app.button(key="synthesize").disabled
    assert any("only ε = 1 is left" in element.value for element in app.text)


def test_what_is_used_up_is_named_delta_or_epsilon() -> None:
    session = released()
    session.settings.pick("private_pgm")
    session.settings.epsilon, session.settings.grant_delta = "0.5", True
    said = [element.value for element in synthesize_page(session).text]
    assert any("only δ = 0 is left" in text for text in said)
    assert not any("ε = 1 is left" in text for text in said)


def test_a_second_run_waits_for_the_first_and_a_seed_is_no_release() -> None:
    session = released()
    session.settings.seed = 3
    assert order_of(session).seed is None
    seeded = RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="0.1", seed=3)
    with pytest.raises(DPSynthError, match="seed"):
        start(session, seeded)
    assert account_of(session).spent.epsilon == 0  # type: ignore[union-attr]


def test_without_an_account_nothing_can_be_released() -> None:
    session = Session(mode="release")
    load_upload(session, "private.csv", csv_of("age", "weight"))
    app = synthesize_page(session)
    assert app.button(key="synthesize").disabled
    assert any("Open the data set's account" in element.value for element in app.text)
    with pytest.raises(DPSynthError):
        start(session, order_of(session))


def test_a_finished_run_is_shown_with_its_badge_and_history() -> None:
    session = ready()
    for epsilon in ("1", "2"):
        finish(start(session, order_of(session, epsilon)).job)
        session.collect()
    app = synthesize_page(session)
    assert any("Guarantee: proven" in element.value for element in app.markdown)
    assert len(session.runs) == 2
    assert any(element.label == "Look at run" for element in app.selectbox)
    assert any("at most as much as a single run at ε 3, δ 0." in element.value for element in app.markdown)
