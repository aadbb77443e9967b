"""The Trade-offs page as a visitor finds it, without a browser."""

from __future__ import annotations

from functools import lru_cache

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.charts.tradeoffs import true_positive_rate
from dpsynth_core.errors import DPSynthError
from dpsynth_core.intake.examples import EXAMPLES
from dpsynth_core.sweep import ASPECTS, Sweep, SweepOrder, sweep
from pages.shared.actions import load_example, load_upload
from pages.shared.lessons import FIRST_EPSILON, UNITS, begin, from_address, to_address
from pages.shared.session import Lesson, Session
from pages.shared.sweeps import collect_sweep, expected_seconds, offered, start_sweep
from tests.app.test_data_page import HOSTILE, ROOT, assert_only_in_plain_text, csv_of, session_of, settled, texts
from tests.app.test_mechanism_page import page
from tests.test_jobs import finish

ORDER = SweepOrder(mechanisms=("perturbed_histogram", "kd_grid"), epsilons=(0.1, 10.0), repetitions=1)


@lru_cache
def swept() -> Sweep:
    example = EXAMPLES["two_groups_signal"]
    return sweep(example.load(), example.schema, ORDER)


def ready(mode: str = "teaching") -> Session:
    session = Session(mode=mode)  # type: ignore[arg-type]
    load_example(session, "two_groups_signal")
    return session


def tradeoffs(session: Session) -> AppTest:
    return page("pages/5_Tradeoffs.py", session)


def linked(**parameters: str) -> AppTest:
    """The page as somebody finds it who follows a link."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/5_Tradeoffs.py")
    for name, value in parameters.items():
        app.query_params[name] = value
    return settled(app.run())


def pictures(app: AppTest) -> int:
    return sum(element.type == "plotly_chart" for element in app.main)


def test_without_a_table_there_are_lessons_and_one_click_to_a_table() -> None:
    app = tradeoffs(Session())
    assert app.selectbox[0].label == "Lesson"
    settled(app.button(key="tradeoff_example").click().run())
    assert session_of(app).data is not None
    assert "Noise you can see" in [element.value for element in app.header]


def test_in_release_mode_private_data_is_kept_out_and_the_page_says_why() -> None:
    session = ready("release")
    app = tradeoffs(session)
    assert "Closed for private data" in app.warning[0].value
    assert "sweep" not in [button.key for button in app.button]
    assert "Noise you can see" not in [element.value for element in app.header]
    with pytest.raises(DPSynthError, match="public or simulated"):
        start_sweep(session, ORDER)
    assert session.sweep_job is None


def test_a_sweep_of_public_data_is_not_shown_once_the_mode_is_release() -> None:
    session = ready()
    start_sweep(session, ORDER)
    assert session.sweep_job is not None
    session.mode = "release"
    collect_sweep(session)
    assert session.sweep_job is None
    assert session.sweep is None


def test_a_sweep_runs_in_a_worker_and_is_kept_over_pages() -> None:
    session = ready()
    start_sweep(session, ORDER)
    assert session.sweep_job is not None
    finish(session.sweep_job)
    app = tradeoffs(session)
    found = session_of(app).sweep
    assert found is not None
    assert found.spots[0].bands == swept().spots[0].bands, "the same seed gives the same numbers in any process"
    app.switch_page("pages/1_Data.py").run()
    settled(app.switch_page("pages/5_Tradeoffs.py").run())
    assert session_of(app).sweep is found
    assert app.multiselect(key="sweep_mechanisms").value == list(ORDER.mechanisms)
    load_example(session_of(app), "breast_cancer")
    settled(app.run())
    assert session_of(app).sweep is None


def test_how_much_epsilon_is_needed_is_answered_for_every_aspect() -> None:
    session = ready()
    session.sweep, session.sweep_order = swept(), ORDER
    app = tradeoffs(session)
    for aspect in swept().aspects:
        settled(app.selectbox(key="sweep_aspect").set_value(aspect).run())
        assert ASPECTS[aspect].question in " ".join(element.value for element in app.markdown)
        assert "• Perturbed histogram: " in texts(app)
    settled(app.selectbox(key="sweep_aspect").set_value("column").run())
    settled(app.number_input(key="sweep_target_column").set_value(0.0).run())
    assert "no ε up to 10 is enough" in texts(app)
    settled(app.number_input(key="sweep_target_column").set_value(100.0).run())
    assert "ε 0.1 is enough" in texts(app)


def test_every_picture_has_a_table() -> None:
    session = ready()
    session.sweep, session.sweep_order = swept(), ORDER
    session.lesson = Lesson(number=2, answer=0)
    app = tradeoffs(session)
    shown = pictures(app)
    assert shown >= 5
    tables = len(app.dataframe)
    for key in ("table_lesson", "table_sweep", "table_noise"):
        app.toggle(key=key).set_value(True)
    settled(app.run())
    assert pictures(app) == 0
    assert len(app.dataframe) == tables + shown


def test_nothing_chosen_is_a_problem_in_words() -> None:
    app = tradeoffs(ready())
    settled(app.multiselect(key="sweep_mechanisms").set_value([]).run())
    assert any("cannot be swept" in element.value for element in app.error)
    assert "sweep" not in [button.key for button in app.button]


def test_what_a_sweep_will_take_is_announced() -> None:
    schema = EXAMPLES["two_groups_signal"].schema
    short = expected_seconds(ORDER, schema, 500)
    longer = expected_seconds(SweepOrder(mechanisms=ORDER.mechanisms, repetitions=10), schema, 500)
    assert 1 <= short < longer
    assert "bayes" not in offered()


def test_noise_can_be_drawn_again() -> None:
    app = tradeoffs(ready())
    before = app.session_state["dpsynth"].noise_seed
    settled(app.button(key="noise_draw").click().run())
    assert session_of(app).noise_seed == before + 1


def test_names_from_a_file_are_never_read_as_markup() -> None:
    session = Session()
    load_upload(session, "x.csv", csv_of(*HOSTILE[:3]))
    private = session.private()
    assert private is not None
    session.sweep_order = ORDER
    session.sweep = sweep(private.rows(), private.schema, ORDER)
    app = tradeoffs(session)
    for hostile in HOSTILE[:3]:
        assert_only_in_plain_text(app, hostile)


@pytest.mark.parametrize("number", range(1, len(UNITS) + 1))
def test_a_lesson_is_asked_answered_revealed_and_played_with(number: int) -> None:
    unit = UNITS[number - 1]
    app = linked(lesson=str(number))
    assert pictures(app) == 0, "nothing is shown before the question is answered"
    (question,) = app.radio
    assert question.label == unit.question
    settled(question.set_value(unit.right).run())
    assert "That is right." in [element.value for element in app.success]
    assert pictures(app) == 1
    assert session_of(app).lesson.answer == unit.right
    settled(app.radio[0].set_value((unit.right + 1) % len(unit.options)).run())
    assert any(unit.options[unit.right] in element.value for element in app.info)
    settled(app.select_slider[0].set_value("3").run())
    assert session_of(app).lesson.epsilon == "3"
    assert any("ε = 3" in element.value for element in app.markdown)


def test_lessons_lead_from_one_to_the_next() -> None:
    app = linked(lesson="1", answer="1")
    for number in range(2, len(UNITS) + 1):
        settled(app.button(key="lesson_next").click().run())
        assert session_of(app).lesson == begin(number)
        settled(app.radio[0].set_value(0).run())
    assert "lesson_next" not in [button.key for button in app.button]


def test_a_link_restores_lesson_answer_epsilon_and_draw() -> None:
    app = linked(lesson="2", epsilon="0.3", draw="7", answer="1")
    assert session_of(app).lesson == Lesson(number=2, epsilon="0.3", seed=7, answer=0)
    settled(app.button(key="lesson_draw").click().run())
    address = {name: values[0] for name, values in app.query_params.items()}
    assert address["draw"] == "8"
    assert from_address(address) == session_of(app).lesson


@pytest.mark.parametrize("number", range(1, len(UNITS) + 1))
def test_an_address_leads_back_to_where_it_was_written(number: int) -> None:
    for lesson in (begin(number), Lesson(number=number, epsilon="0.05", seed=12, answer=1)):
        assert from_address(to_address(lesson)) == lesson


@pytest.mark.parametrize(
    "address",
    [{}, {"lesson": "0"}, {"lesson": "6"}, {"lesson": "x"}, {"lesson": "9" * 5000}, {"lesson": "²"}, {"lesson": "-1"}],
)
def test_an_address_that_names_no_lesson_leads_nowhere(address: dict[str, str]) -> None:
    assert from_address(address) is None


def test_nonsense_in_an_address_is_left_out() -> None:
    found = from_address({"lesson": "3", "epsilon": "1e9", "draw": "-4", "answer": "77"})
    assert found == Lesson(number=3, epsilon=FIRST_EPSILON[2], seed=1, answer=None)


def test_the_right_answers_are_right() -> None:
    assert true_positive_rate(0.05, 1.0) == pytest.approx(0.136, abs=0.001)
    assert "about 14%" in UNITS[0].options[UNITS[0].right]
    told = UNITS[4].told(begin(5))
    share = int(told.split("about **")[1].split(" of")[0])
    assert share > 30
    assert "More than 30" in UNITS[4].options[UNITS[4].right]
    many, few = (
        int(UNITS[3].told(Lesson(number=4, epsilon=e)).split("**")[1].split(" ")[0].replace(",", ""))
        for e in ("10", "0.05")
    )
    assert few < many
