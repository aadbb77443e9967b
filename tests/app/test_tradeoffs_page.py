"""The Trade-offs page as a visitor finds it, without a browser."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.charts.tradeoffs import true_positive_rate
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.examples import FIRST as FIRST_EXAMPLE
from dpsynth_core.teaching.neighbours import NeighbourConfig, NeighbourDemonstration, demonstrate
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import MAX_ANALYSTS, SweepConfig
from dpsynth_core.teaching.sweep.results import SweepResult
from dpsynth_core.teaching.sweep.run import sweep
from dpsynth_core.teaching.sweep.sizes import SizeSweepConfig, SizeSweepResult, sweep_sizes
from pages.shared.data.actions import choose_mode, declare_all_public, load_example, load_upload
from pages.shared.session import Session
from pages.shared.tradeoffs.actions import PATIENCE, finding_on, first_sweep, sweep_seconds, sweepable, task_on
from pages.shared.tradeoffs.actions import begin as begin_simulation
from pages.shared.tradeoffs.lessons import FIRST_EPSILON, UNITS, begin, from_address, to_address
from pages.shared.tradeoffs.needs_view import FIRST, compared_mechanisms
from pages.shared.tradeoffs.state import Finding, Lesson, Tradeoffs
from pages.shared.tradeoffs.tables import MINE, SIMULATED, chosen, offered, public_table
from pages.shared.tradeoffs.view import FREE, SECTIONS
from tests.waiting.jobs import finish
from tests.waiting.pages import HOSTILE, ROOT, assert_only_in_plain_text, csv_of, page, session_of, settled, texts

EXAMPLE = EXAMPLES["two_groups_signal"]
ORDER = SweepConfig(mechanisms=("perturbed_histogram", "kd_grid"), epsilons=(0.1, 10.0), repetitions=1)
TWINS = {"sweep": 3, "needs": 1, "person": 2, "noise": 1, "groups": 1}
"""Pictures in each section, for a table with one column of numbers."""


@lru_cache
def swept() -> SweepResult:
    return sweep(EXAMPLE.load(), EXAMPLE.schema, ORDER)


@lru_cache
def sized() -> SizeSweepResult:
    order = SizeSweepConfig.around(len(EXAMPLE.load()), FIRST)
    quick = SweepConfig(mechanisms=FIRST, epsilons=(0.1, 10.0), repetitions=1, analysts=0)
    found = sweep_sizes(EXAMPLE.load(), EXAMPLE.schema, SizeSweepConfig(sweep=quick, rows=(100, 500)))
    return SizeSweepResult(config=order, sweeps=found.sweeps)


@lru_cache
def demonstrated() -> NeighbourDemonstration:
    kind = MECHANISMS["perturbed_histogram"]
    return demonstrate(EXAMPLE.load(), EXAMPLE.schema, kind.suggest(EXAMPLE.schema, 500, 1), epsilon=1, row=3, runs=50)


def ready(section: str = "lessons") -> Session:
    """A visitor with an example on the Data page, for which everything has been worked out."""
    session = Session(tradeoffs=Tradeoffs(section=section))
    load_example(session, "two_groups_signal")
    table_id = public_table(session).id
    orders: dict[str, tuple[Any, Any]] = {
        "sweep": (ORDER, swept()),
        "needs": (sized().config, sized()),
        "person": (NeighbourConfig(), demonstrated()),
    }
    for kind, (order, result) in orders.items():
        session.tradeoffs.findings[kind] = Finding(table_id=table_id, config=order, result=result)
    return session


def private_upload(*names: str) -> Session:
    session = Session(mode="release")
    load_upload(session, "private.csv", csv_of(*(names or ("age", "weight"))))
    return session


def tradeoffs(session: Session) -> AppTest:
    return page("pages/5_Tradeoffs.py", session)


def linked(**parameters: str) -> AppTest:
    """The page as somebody finds it who follows a link."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/5_Tradeoffs.py")
    for name, value in parameters.items():
        app.query_params[name] = value
    return settled(app.run())


def address_of(app: AppTest) -> dict[str, str]:
    """The parameters of the page's address; those that a test sets itself come back as lists."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def pictures(app: AppTest) -> int:
    return sum(element.type == "plotly_chart" for element in app.main)


def test_every_section_says_that_nothing_private_is_used_and_nothing_spent() -> None:
    app = tradeoffs(ready())
    for section in SECTIONS:
        settled(app.button_group(key="tradeoff_section").set_value(section).run())
        assert FREE in [caption.value for caption in app.caption]
        assert session_of(app).tradeoffs.section == section
        assert address_of(app).get("section") == (section if section != "lessons" else None)


def test_a_private_upload_is_never_among_the_tables() -> None:
    session = private_upload()
    assert MINE not in offered(session)
    assert SIMULATED not in offered(session), "its bounds were read from the rows"
    declare_all_public(session, public=True)
    session.tradeoffs.table = SIMULATED
    simulated = public_table(session)
    assert chosen(session) == SIMULATED
    assert len(simulated.table) == len(session.work.data.table)
    assert not simulated.table.equals(session.work.data.table)
    session.tradeoffs.table = MINE  # as an old session, or a forged one, might say
    assert chosen(session) in EXAMPLES


def test_a_table_that_becomes_private_takes_its_trials_with_it() -> None:
    session = ready("sweep")
    assert chosen(session) == MINE
    choose_mode(session, "release")
    assert MINE not in offered(session)
    assert finding_on(session, "sweep", public_table(session)) is None
    assert "sweep" not in session.tradeoffs.findings


def test_without_a_table_there_is_an_example_and_a_choice() -> None:
    assert chosen(Session()) == "bivariate_normal"
    assert set(offered(Session())) == set(EXAMPLES)


def test_a_sweep_runs_in_a_worker_and_is_kept_over_pages() -> None:
    session = ready("sweep")
    begin_simulation(session, "sweep", public_table(session), ORDER, sweep, expected=1.0)
    finish(session.tradeoffs.tasks["sweep"].job)
    app = tradeoffs(session)
    found = session_of(app).tradeoffs.findings["sweep"].result
    assert found.points[0].bands == swept().points[0].bands, "the same seed gives the same numbers in any process"
    app.switch_page("pages/1_Data.py").run()
    settled(app.switch_page("pages/5_Tradeoffs.py").run())
    assert session_of(app).tradeoffs.findings["sweep"].result is found
    assert app.multiselect(key="sweep_mechanisms").value == list(ORDER.mechanisms)


def test_what_was_found_on_an_example_is_known_to_the_next_visitor() -> None:
    first, second = (Session(tradeoffs=Tradeoffs(table="wine")) for _ in range(2))
    order = SweepConfig(mechanisms=("kd_grid",), epsilons=(1.0,), repetitions=1, discoveries=False)
    for session in (first, second):
        begin_simulation(session, "sweep", public_table(session), order, sweep, expected=1.0)
        task = session.tradeoffs.tasks.get("sweep")
        assert (task is None) == (session is second), "the second one has nothing to wait for"
        if task is not None:
            finish(task.job)
        session.collect()
    found = first.tradeoffs.findings["sweep"].result
    assert isinstance(found, SweepResult)
    assert second.tradeoffs.findings["sweep"].result is found


def test_another_table_on_this_page_cancels_what_runs_on_the_old_one() -> None:
    session = ready("sweep")
    slow = replace(ORDER, repetitions=20, analysts=MAX_ANALYSTS)
    begin_simulation(session, "sweep", public_table(session), slow, sweep, expected=1.0)
    task = session.tradeoffs.tasks["sweep"]
    session.tradeoffs.table = "wine"
    assert task_on(session, "sweep", public_table(session)) is None
    assert finish(task.job).state == "cancelled"


def test_another_order_is_run_only_when_asked_for() -> None:
    app = tradeoffs(ready("sweep"))
    assert "start_sweep" not in [button.key for button in app.button]
    settled(app.multiselect(key="sweep_mechanisms").set_value(["kd_grid"]).run())
    assert app.button(key="start_sweep").label.startswith("Run: 2 synthetic tables (about")
    assert session_of(app).tradeoffs.findings["sweep"].result is swept(), "the last one stays on the page"
    settled(app.multiselect(key="sweep_mechanisms").set_value([]).run())
    assert any("cannot be run" in element.value for element in app.error)


def test_how_much_epsilon_and_how_many_rows_are_answered_for_every_aspect() -> None:
    app = tradeoffs(ready("needs"))
    for aspect in sized().aspects:
        settled(app.selectbox(key="needs_aspect").set_value(aspect).run())
        assert ASPECTS[aspect].question in [caption.value for caption in app.caption]
        assert "• Perturbed histogram: " in texts(app)
        silent = any(caption.value.startswith("Not simulated here: KD tree.") for caption in app.caption)
        assert silent == ASPECTS[aspect].simulated
    settled(app.selectbox(key="needs_aspect").set_value("column").run())
    settled(app.number_input(key="needs_target_column").set_value(0.0).run())
    assert "500 rows are too few at any ε up to 10" in texts(app)
    settled(app.number_input(key="needs_target_column").set_value(100.0).run())
    assert "500 rows need ε 0.1" in texts(app)


@pytest.mark.parametrize("section", TWINS)
def test_every_picture_has_a_table(section: str) -> None:
    app = tradeoffs(ready(section))
    assert pictures(app) == TWINS[section]
    tables = len(app.dataframe)
    for toggle in app.toggle:
        toggle.set_value(True)
    settled(app.run())
    assert pictures(app) == 0
    assert len(app.dataframe) == tables + TWINS[section]


def test_the_table_behind_a_mark_can_be_chosen_without_a_mouse() -> None:
    app = tradeoffs(ready("sweep"))
    settled(app.selectbox(key="sweep_shown").set_value("kd_grid").run())
    settled(app.select_slider(key="sweep_at").set_value(0.1).run())
    spot = next(point for point in swept().line("kd_grid", "column") if point.epsilon == 0.1)
    assert spot.table is not None
    shown = next(frame.value for frame in app.dataframe if list(frame.value.columns) == list(spot.table.columns))
    assert shown.equals(spot.table.head(len(shown)))


def test_playing_moves_from_the_smallest_epsilon_to_the_largest_and_stops() -> None:
    app = tradeoffs(ready("sweep"))
    settled(app.button(key="sweep_play").click().run())
    assert app.select_slider(key="sweep_at").value == 0.1
    assert app.button(key="sweep_play").label == "Stop"
    settled(app.run())
    assert app.select_slider(key="sweep_at").value == 10.0
    settled(app.run())
    assert app.button(key="sweep_play").label.startswith("Play")


def test_what_a_sweep_will_take_is_announced() -> None:
    short = sweep_seconds(ORDER, EXAMPLE.schema, 500)
    longer = sweep_seconds(SweepConfig(mechanisms=ORDER.mechanisms, repetitions=10), EXAMPLE.schema, 500)
    assert 1 <= short < longer
    assert "bayes" not in sweepable()


def test_more_analysts_take_longer_and_are_asked_for() -> None:
    order = SweepConfig(mechanisms=("kd_tree",))
    few, many = (sweep_seconds(replace(order, analysts=number), EXAMPLE.schema, 500) for number in (10, 100))
    assert few < many
    app = tradeoffs(ready("sweep"))
    settled(app.number_input(key="sweep_analysts").set_value(100).run())
    assert app.button(key="start_sweep").label.startswith("Run: 4 synthetic tables")


def test_how_many_analysts_there_are_and_where_there_are_none_is_said() -> None:
    session = ready("sweep")
    first, *others = swept().points
    silent = replace(first, analysts=20, no_analysts="It would take an hour.")
    finding = session.tradeoffs.findings["sweep"]
    session.tradeoffs.findings["sweep"] = replace(finding, result=replace(swept(), points=(silent, *others)))
    app = tradeoffs(session)
    captions = " ".join(caption.value for caption in app.caption)
    assert (
        "95% intervals over simulated studies of 500 people with your columns and groups as large as yours" in captions
    )
    assert "20 to 400 without a difference and as many with one" in captions
    assert "• Perturbed histogram at ε 0.1: It would take an hour." in texts(app)


def test_one_person_is_shown_with_what_epsilon_allows() -> None:
    app = tradeoffs(ready("person"))
    assert any("**2.72 times** as likely" in element.value for element in app.markdown)
    assert demonstrated().sentence in texts(app)


def test_noise_can_be_drawn_again() -> None:
    app = tradeoffs(ready("noise"))
    before = session_of(app).tradeoffs.noise_seed
    settled(app.button(key="noise_draw").click().run())
    assert session_of(app).tradeoffs.noise_seed == before + 1


@pytest.mark.parametrize("section", ["sweep", "noise", "groups", "person"])
def test_names_from_a_file_are_never_read_as_markup(section: str) -> None:
    session = Session(tradeoffs=Tradeoffs(section=section))
    load_upload(session, "x.csv", csv_of(*HOSTILE[:3]))
    own = public_table(session)
    person = demonstrate(
        own.table, own.schema, MECHANISMS["perturbed_histogram"].suggest(own.schema, 60, 1), epsilon=1, row=3, runs=20
    )
    for kind, order, found in (
        ("sweep", ORDER, sweep(own.table, own.schema, ORDER)),
        ("person", NeighbourConfig(), person),
    ):
        session.tradeoffs.findings[kind] = Finding(table_id=own.id, config=order, result=found)
    app = tradeoffs(session)
    assert pictures(app) > 0
    for hostile in HOSTILE[:3]:
        assert_only_in_plain_text(app, hostile, shown=False)


@pytest.mark.parametrize("number", range(1, len(UNITS) + 1))
def test_a_lesson_is_asked_answered_revealed_and_played_with(number: int) -> None:
    unit = UNITS[number - 1]
    app = linked(lesson=str(number))
    assert pictures(app) == 0, "nothing is shown before the question is answered"
    (question,) = app.radio
    assert question.label == unit.question
    assert app.button(key="reveal").disabled
    settled(question.set_value(unit.right).run())
    assert pictures(app) == 0, "nor before one asks for the answer"
    settled(app.button(key="reveal").click().run())
    assert "That is right." in [element.value for element in app.success]
    assert pictures(app) == 1
    assert session_of(app).tradeoffs.lesson.answer == unit.right
    settled(app.radio[0].set_value((unit.right + 1) % len(unit.options)).run())
    assert any(unit.options[unit.right] in element.value for element in app.info)
    settled(app.select_slider[0].set_value("3").run())
    assert session_of(app).tradeoffs.lesson.epsilon == "3"
    assert any("ε = 3" in element.value for element in app.markdown)


def test_lessons_lead_from_one_to_the_next() -> None:
    app = linked(lesson="1", answer="1")
    for number in range(2, len(UNITS) + 1):
        settled(app.button(key="lesson_next").click().run())
        assert session_of(app).tradeoffs.lesson == begin(number)
        settled(app.radio[0].set_value(0).run())
        settled(app.button(key="reveal").click().run())
    assert "lesson_next" not in [button.key for button in app.button]


def test_a_link_restores_lesson_answer_epsilon_and_draw() -> None:
    app = linked(lesson="2", epsilon="0.3", draw="7", answer="1")
    assert session_of(app).tradeoffs.lesson == Lesson(number=2, epsilon="0.3", seed=7, answer=0)
    settled(app.button(key="lesson_draw").click().run())
    address = address_of(app)
    assert address["draw"] == "8"
    assert from_address(address) == session_of(app).tradeoffs.lesson


@pytest.mark.parametrize("number", range(1, len(UNITS) + 1))
def test_an_address_leads_back_to_where_it_was_written(number: int) -> None:
    for lesson in (begin(number), Lesson(number=number, epsilon="0.05", seed=12, answer=1)):
        assert from_address(to_address(lesson)) == lesson


@pytest.mark.parametrize(
    "address",
    [
        {},
        {"lesson": "0"},
        {"lesson": str(len(UNITS) + 1)},
        {"lesson": "x"},
        {"lesson": "9" * 5000},
        {"lesson": "²"},
        {"lesson": "-1"},
    ],
)
def test_an_address_that_names_no_lesson_leads_nowhere(address: dict[str, str]) -> None:
    assert from_address(address) is None


def test_a_click_is_not_lost_to_an_address_that_the_browser_has_not_taken_over_yet() -> None:
    app = linked(section="noise", table="mixture", epsilon="2")
    before = address_of(app)
    slider = app.select_slider(key="noise_epsilon")
    settled(slider.set_value("5").run())
    assert address_of(app)["epsilon"] == "5"
    for name, value in before.items():
        app.query_params[name] = value
    settled(app.button_group(key="tradeoff_section").set_value("groups").run())
    assert session_of(app).tradeoffs.section == "groups"
    assert address_of(app)["section"] == "groups"
    # Whoever goes back in the browser's history is taken there.
    settled(app.run())
    for name, value in before.items():
        app.query_params[name] = value
    settled(app.run())
    assert session_of(app).tradeoffs.section == "noise"


def test_nonsense_in_an_address_is_left_out() -> None:
    found = from_address({"lesson": "3", "epsilon": "1e9", "draw": "-4", "answer": "77"})
    assert found == Lesson(number=3, epsilon=FIRST_EPSILON[2], seed=1, answer=None)


def test_the_right_answers_are_right() -> None:
    assert true_positive_rate(0.05, 1.0) == pytest.approx(0.136, abs=0.001)
    assert "about 14%" in UNITS[0].options[UNITS[0].right]
    told = UNITS[4].explain(begin(5))
    share = int(told.split("about **")[1].split(" of")[0])
    assert share > 30
    assert "More than 30" in UNITS[4].options[UNITS[4].right]
    many, few = (
        int(UNITS[3].explain(Lesson(number=4, epsilon=e)).split("**")[1].split(" ")[0].replace(",", ""))
        for e in ("10", "0.05")
    )
    assert few < many


def test_what_was_chosen_outlives_a_change_of_section_and_of_page() -> None:
    app = tradeoffs(ready("noise"))
    settled(app.select_slider(key="noise_epsilon").set_value("3").run())
    settled(app.selectbox(key="noise_column").set_value("value").run())
    settled(app.button_group(key="tradeoff_section").set_value("needs").run())
    settled(app.selectbox(key="needs_aspect").set_value("mmd").run())
    settled(app.number_input(key="needs_target_mmd").set_value(0.25).run())
    app.switch_page("pages/1_Data.py").run()
    settled(app.switch_page("pages/5_Tradeoffs.py").run())
    assert app.selectbox(key="needs_aspect").value == "mmd"
    assert app.number_input(key="needs_target_mmd").value == 0.25
    settled(app.button_group(key="tradeoff_section").set_value("noise").run())
    assert app.select_slider(key="noise_epsilon").value == "3"
    assert app.selectbox(key="noise_column").value == "value"


def test_how_much_is_needed_includes_the_recommended_mechanism() -> None:
    wide = EXAMPLES["breast_cancer"].schema
    assert compared_mechanisms(wide)[0] == recommended(wide) == "private_pgm"
    assert compared_mechanisms(EXAMPLE.schema) == FIRST


@pytest.mark.parametrize("own", ["kd_tree", "private_pgm"])
def test_the_first_sweep_is_of_the_mechanism_at_hand_and_the_recommended_one(own: str) -> None:
    example = EXAMPLES[FIRST_EXAMPLE]
    for rows in (example.default_rows, example.few_rows or 500):
        config = first_sweep(SweepConfig(repetitions=2), example.schema, rows, own)
        assert config.mechanisms[0] == own
        assert recommended(example.schema) in config.mechanisms
        assert sweep_seconds(config, example.schema, rows) < PATIENCE
    assert first_sweep(SweepConfig(), example.schema, 100, "bayes").mechanisms[0] == recommended(example.schema)
