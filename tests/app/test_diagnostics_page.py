"""The Diagnostics page as a visitor finds it, without a browser."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.charts.scores import dot_chart
from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.diagnostics.base import INTERNAL
from dpsynth_core.diagnostics.causes import concerned
from dpsynth_core.diagnostics.classification import ClassificationDiagnostic
from dpsynth_core.diagnostics.classifiers import CLASSIFIERS, QUICK
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.mann_whitney import group_columns
from dpsynth_core.diagnostics.purposes import fitness_lines, overall
from dpsynth_core.diagnostics.regression import RegressionDiagnostic
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.review.export import marked_csv, marked_html
from dpsynth_core.runs.configuration import RunConfig, RunResult
from dpsynth_core.runs.jobs import Job
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.private_table import PrivateTable
from pages.shared.data.actions import load_example, load_upload
from pages.shared.diagnostics import advice_view, pvalues
from pages.shared.diagnostics.actions import (
    CLASSIFYING,
    EXAMINATION,
    classify,
    configured,
    examine,
    label_of,
    next_missing,
    start_advice,
    target_of,
)
from pages.shared.diagnostics.pvalues import RISK, ask, value_columns
from pages.shared.session import Session
from pages.shared.tasks import Task
from tests.waiting.jobs import finish
from tests.waiting.pages import HOSTILE, assert_only_in_plain_text, page, session_of, texts


def made(private: PrivateTable, epsilon: float) -> tuple[RunResult, Evaluation]:
    """A release and what it was found to be worth."""
    mechanism = MECHANISMS["kd_tree"].suggest(private.schema, private.n, epsilon)
    release = synthesize(private, mechanism, epsilon=epsilon, seed=1)
    table = release.sample()
    outcome = RunResult(
        config=RunConfig(mechanism=mechanism, epsilon=str(epsilon), seed=1),
        schema=private.schema,
        tables=(table,),
        guarantee=release.guarantee,
        charges=release.charges,
        leaves=None,
        seconds=0.1,
    )
    return outcome, evaluate(private, table)


@lru_cache
def made_of_example(epsilon: float) -> tuple[RunResult, Evaluation]:
    """The same for the example, once for all tests: neither can be changed."""
    example = EXAMPLES["two_groups_signal"]
    return made(PrivateTable(example.load(), example.schema), epsilon)


def keep(session: Session, outcome: RunResult, evaluation: Evaluation) -> None:
    session.work.add_run(outcome).evaluations[outcome.schema.names] = evaluation


def ready(mode: str = "teaching", *epsilons: float) -> Session:
    session = Session(mode=mode)  # type: ignore[arg-type]
    load_example(session, "two_groups_signal")
    for epsilon in epsilons or (1.0,):
        keep(session, *made_of_example(epsilon))
    return session


def evaluations(session: Session) -> list[Evaluation]:
    return [evaluation for run in session.runs for evaluation in run.evaluations.values()]


def diagnostics(session: Session) -> AppTest:
    return page("pages/4_Diagnostics.py", session)


def test_without_a_release_the_page_says_what_is_missing() -> None:
    app = diagnostics(Session())
    assert "needs a synthetic table" in app.info[0].value
    assert any("Choose an example" in element.value for element in app.markdown)
    session = Session()
    load_example(session, "two_groups_signal")
    assert any("Synthesize page" in element.value for element in diagnostics(session).markdown)


def test_every_registered_diagnostic_has_a_panel_with_question_number_and_method() -> None:
    app = diagnostics(ready())
    headers = [element.value for element in app.header]
    assert headers == [kind.title for kind in DIAGNOSTICS.values()]
    told = " ".join(element.value for element in app.markdown)
    for kind in DIAGNOSTICS.values():
        assert kind.question in told
        assert kind.method in told
    assert "95% interval" in texts(app)


def test_panels_are_shown_as_they_are_ready_and_the_verdict_when_all_are() -> None:
    session = ready()
    run = session.runs[0]
    (columns, evaluation), *_ = run.evaluations.items()
    run.evaluations.clear()
    job = Job(id="1", title="The comparison", submitted=0.0, state="running", parts=evaluation.results[:2])
    session.work.tasks.put(EXAMINATION, Task(title="", about=(run, columns), job=job, store=lambda _: None))
    app = diagnostics(session)
    kinds = [DIAGNOSTICS[key].title for key in evaluation]
    assert [element.value for element in app.header] == kinds[:2]
    assert kinds[2] in next(element.value for element in app.caption if "Still to come" in element.value)
    assert "Good for" not in str(app.markdown)
    job.parts, job.state = (), "finished"
    run.evaluations[columns] = evaluation
    app.run()
    assert [element.value for element in app.header] == kinds
    assert not any("Still to come" in element.value for element in app.caption)


def test_every_picture_has_words_and_a_table() -> None:
    session = ready()
    app = diagnostics(session)
    charts = [element for element in app.main if element.type == "plotly_chart"]
    assert charts
    assert all(json.loads(chart.proto.spec) for chart in charts)
    for key in DIAGNOSTICS:
        app.toggle(key=f"table_{key}").set_value(True)
    app.run()
    assert not app.exception
    assert not [element for element in app.main if element.type == "plotly_chart"]
    assert len(app.dataframe) >= len(DIAGNOSTICS)


def test_the_raw_pmse_stands_beside_its_ratio_to_chance() -> None:
    """In the papers' unit, 0 to 0.25, for the regressions and for the tree."""
    table = next(frame.value for frame in diagnostics(ready()).dataframe if "pMSE" in frame.value.columns)
    assert {"Regression, main effects", "Tree, half of the rows"} <= set(table["model"])
    for row in table[table["ratio"] != ""].to_dict("records"):
        pmse, chance, ratio = (float(row[name].replace(",", "")) for name in ("pMSE", "by chance", "ratio"))
        assert 0 <= pmse <= 0.25
        assert ratio == pytest.approx(pmse / chance, rel=0.05)


def test_up_to_four_releases_are_compared_and_remembered() -> None:
    session = ready("teaching", 0.01, 100.0)
    app = diagnostics(session)
    assert app.multiselect(key="compared").value == [2]
    app.multiselect(key="compared").set_value([2, 1]).run()
    assert not app.exception
    assert session_of(app).work.compared == [2, 1]
    assert "1: KD tree, ε 0.01" in texts(app)
    assert "2: KD tree, ε 100" in texts(app)
    app.switch_page("pages/3_Synthesize.py").run()
    app.switch_page("pages/4_Diagnostics.py").run()
    assert app.multiselect(key="compared").value == [2, 1]


def test_in_release_mode_nothing_is_compared_unasked_and_all_is_marked() -> None:
    session = ready("release")
    session.runs[0].evaluations.clear()
    app = diagnostics(session)
    assert "For internal review, not for release" in app.warning[0].value
    assert app.button(key="examine").label.startswith("Compare 1: KD tree")
    assert not app.header
    assert session_of(app).work.tasks.get("examination") is None


def test_an_examination_runs_in_a_worker_and_is_kept() -> None:
    session = ready()
    session.runs[0].evaluations.clear()
    (run,) = session.runs
    names = run.result.schema.names
    assert next_missing([run], names) is run
    finish(examine(session.work, run, names).job)
    app = diagnostics(session)
    assert set(session_of(app).runs[0].evaluations[names]) == set(DIAGNOSTICS)
    assert next_missing([run], names) is None


def test_another_table_forgets_what_was_found() -> None:
    session = ready()
    load_example(session, "breast_cancer")
    assert not session.runs


def test_names_from_a_file_are_never_read_as_markup() -> None:
    session = Session()
    header = ",".join(f'"{name}"' for name in HOSTILE[:3])
    rows = "\n".join(f"{i % 7},{i % 3},{HOSTILE[i % 4]}" for i in range(60))
    load_upload(session, "x.csv", f"{header}\n{rows}".encode())
    private = session.work.private
    assert private is not None
    keep(session, *made(private, 1.0))
    app = diagnostics(session)
    assert not app.exception
    for hostile in HOSTILE[:3]:
        assert_only_in_plain_text(app, hostile)


def test_downloads_carry_the_mark() -> None:
    session = ready()
    (found,) = session.runs[0].evaluations.values()
    chart = dot_chart({"release": found["marginals"]})
    text = marked_csv(chart.table, INTERNAL)
    assert text.startswith(b"# For internal review")
    back = pd.read_csv(io.BytesIO(text), comment="#")
    assert list(back.columns) == list(chart.table.columns)
    html = marked_html(chart, INTERNAL)
    assert b"For internal review" in html
    assert b"<script src=" not in html


@pytest.mark.parametrize("column", ["value", "group"])
def test_columns_can_be_chosen(column: str) -> None:
    session = ready()
    names = session.runs[0].result.schema.names
    chosen = tuple(name for name in names if name == column) or names[:1]
    private = session.work.private
    assert private is not None
    session.runs[0].evaluations[chosen] = evaluate(private, session.runs[0].result.tables[0], columns=chosen)
    session.work.columns = chosen
    app = diagnostics(session)
    assert not app.exception
    assert f"Columns: 1 of {len(names)}" in [expander.label for expander in app.expander]


def test_another_regression_takes_the_place_of_the_first_in_every_release() -> None:
    session = ready("teaching", 0.1, 10.0)
    session.work.compared = [1, 2]
    app = diagnostics(session)
    before = [evaluation["regression"].notes[0] for evaluation in evaluations(session_of(app))]
    assert all("linear" in note for note in before)
    (outcome,) = (element for element in app.selectbox if element.label == "Outcome")
    outcome.set_value("group")
    (send,) = (element for element in app.button if element.label == "Compare this regression")
    app = send.click().run()
    assert not app.exception
    after = [evaluation["regression"] for evaluation in evaluations(session_of(app))]
    assert all("logistic regression of 'group'" in result.notes[0] for result in after)
    sources = set(after[0].tables["coefficients"]["source"])
    assert len(sources) == 4, "the private regressions run at the release's epsilon"
    assert "logistic regression of 'group'" in texts(app)


def poor(monkeypatch: pytest.MonkeyPatch) -> Session:
    """A release that is far apart, without a worker to ask."""
    monkeypatch.setattr(advice_view, "BEGIN_SECONDS", 0.0)
    session = ready("teaching", 0.01)
    assert session.runs[0].evaluations[session.runs[0].result.schema.names].verdict == "poor"
    return session


def test_far_apart_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    app = diagnostics(poor(monkeypatch))
    assert any("Why is it far apart?" in element.value for element in app.markdown)
    assert "of the rows would have to move to another cell" in texts(app)
    assert any("What would help most?" in button.label for button in app.button)


def test_what_is_finer_than_the_ranges_is_not_put_down_to_noise() -> None:
    """Every tenth number in the original, all in the release: a tree tells them apart, and no range shows it."""
    rng = np.random.default_rng(1)
    rows = np.append(rng.integers(0, 30, (4_000, 2)) * 10 + 3, [[0, 0], [299, 299]], axis=0)
    session = Session()
    load_upload(session, "tens.csv", pd.DataFrame(rows, columns=["sbp", "dbp"]).to_csv(index=False).encode())
    assert session.work.private is not None
    private = session.work.private
    outcome, _ = made(private, 2.0)
    spread = outcome.tables[0].copy()
    for name in spread:
        spread[name] = rng.permutation(rows[:, 0]) // 10 * 10 + rng.integers(0, 10, len(rows))
    keep(session, replace(outcome, tables=(spread,)), evaluate(private, spread, ["marginals", "pairs", "pmse"]))
    (evaluation,) = evaluations(session)
    found = {key: evaluation[key].verdict for key in ("marginals", "pairs", "pmse")}
    assert found["pmse"] == "poor"
    assert "poor" not in (found["marginals"], found["pairs"])
    app = diagnostics(session)
    assert any("Single columns and pairs of columns are not far apart." in text.value for text in app.markdown)
    said = texts(app)
    assert "What gives the rows away is finer than these ranges" in said
    assert "is the largest part" not in said


def test_a_release_that_is_not_far_apart_gets_no_advice() -> None:
    session = ready("teaching", 10.0)
    assert next(iter(session.runs[0].evaluations.values())).verdict != "poor"
    assert not any("Why is it far apart?" in element.value for element in diagnostics(session).markdown)


def test_far_apart_says_what_would_help_most(monkeypatch: pytest.MonkeyPatch) -> None:
    session = poor(monkeypatch)
    finish(start_advice(session, session.runs[0]).job)
    app = diagnostics(session)
    said = [element.value for element in app.markdown]
    # At so small an epsilon, twice as much of it is still little.
    assert any("None of these changes would help much: the forecast for pairs" in text for text in said)
    assert any("Epsilon 0.02 instead of 0.01" in str(frame.value) for frame in app.dataframe)


def test_the_risk_of_a_false_discovery_is_refined_by_itself() -> None:
    session = ready()
    run, tasks = session.runs[0], session.work.tasks
    group = group_columns(run.result.schema)[0]
    first = ask(session.work, run, (value_columns(run.result.schema, group)[0], group, None))
    assert finish(first.job).state == "finished"
    app = diagnostics(session)
    (risk,) = run.risks.values()
    assert (risk.stage, risk.last, risk.releasable) == (0, False, True)
    shown = texts(app)
    assert all(sentence in shown for sentence in risk.sentences)
    refining = tasks[RISK]
    assert refining is not first, "a finer figure is worked out while the person reads"
    refining.cancel()
    finish(refining.job)
    app.run()
    assert risk.sentences[0] in texts(app), "what is known stays"
    assert app.button(key="ask_risk").label.startswith("Refine it")


def test_a_slow_simulation_says_what_it_takes_before_anybody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ready()
    run = session.runs[0]
    group = group_columns(run.result.schema)[0]
    key = (value_columns(run.result.schema, group)[0], group, None)
    monkeypatch.setattr(pvalues, "expected_seconds", lambda *_: 600.0)
    app = diagnostics(session)
    assert app.button(key="ask_risk").label == "Work it out (about 10 min at most)"
    at_once = "between 0 and 100 would report one, as far as is known: no release has been simulated."
    assert at_once in texts(app), "a wide figure, but a true one, before anybody waits"
    assert "A first, rough range takes about 10 min at most, and you can cancel at any time." in texts(app)
    job = finish(ask(session.work, run, key).job)
    assert job.state == "finished", job.problem
    app = diagnostics(session)
    assert at_once not in texts(app)
    assert app.button(key="ask_risk").label == "Refine it (about 10 min at most)", "it does not begin by itself"
    run.risks.clear()
    monkeypatch.setattr(pvalues, "expected_seconds", lambda *_: 36_000.0)
    app = diagnostics(session)
    assert "takes too long to repeat it often enough: about 600 minutes" in texts(app)
    assert at_once in texts(app)
    assert not [button for button in app.button if button.key == "ask_risk"]


def test_the_page_answers_what_the_table_is_good_for() -> None:
    session = ready("teaching", 10.0)
    app = diagnostics(session)
    told = texts(app)
    (evaluation,) = evaluations(session)
    assert all(line.sentence in told for line in fitness_lines(evaluation))
    assert "The original table shows" in told, "the groups of one's own table, with the test on each"
    assert "The synthetic table shows" in told
    app.multiselect(key="purposes").set_value(["totals", "groups"]).run()
    assert session_of(app).work.purposes == ("totals", "groups")
    (evaluation,) = evaluations(session_of(app))
    lines = fitness_lines(evaluation, ["totals", "groups"])
    assert all(line.sentence in texts(app) for line in lines)
    assert any(f"**{overall(lines)}**" == element.value for element in app.markdown)
    app.switch_page("pages/3_Synthesize.py").run()
    app.switch_page("pages/4_Diagnostics.py").run()
    assert app.multiselect(key="purposes").value == ["totals", "groups"]


def test_the_regression_follows_the_target() -> None:
    session = ready("teaching", 10.0)
    app = diagnostics(session)
    app.selectbox(key="target").set_value("group").run()
    assert not app.exception
    (evaluation,) = evaluations(session_of(app))
    assert "regression of 'group'" in evaluation["regression"].notes[0]
    assert "Explaining group, interval gap" in texts(app)
    (outcome,) = (element for element in app.selectbox if element.label == "Outcome")
    assert outcome.value == "group"
    work = session_of(app).work
    result = work.runs[0].result
    later = configured(result, target_of(work, result.schema.names))
    diagnostic = next(each for each in later if each.key == "regression")
    assert isinstance(diagnostic, RegressionDiagnostic)
    assert diagnostic.outcome == "group", "later comparisons begin with it"


def classified(session: Session) -> list[pd.DataFrame]:
    return [evaluation["classification"].tables["classifiers"] for evaluation in evaluations(session)]


def test_classifiers_follow_the_target_in_a_worker() -> None:
    session = ready("teaching", 10.0)
    app = diagnostics(session)
    app.selectbox(key="target").set_value("group").run()
    work = session_of(app).work
    finish(work.tasks[CLASSIFYING].job)
    app.run()
    assert not app.exception
    assert work.label == "group"
    assert app.selectbox(key="label").value == "group"
    result = work.runs[0].result
    later = configured(result, target_of(work, result.schema.names), label_of(work, result.schema.names))
    diagnostic = next(each for each in later if each.key == "classification")
    assert isinstance(diagnostic, ClassificationDiagnostic)
    assert diagnostic.label == "group", "later comparisons begin with it"


@pytest.mark.slow
def test_all_twelve_classifiers_can_be_asked_for_and_cancelled() -> None:
    session = ready("teaching", 0.1, 10.0)
    session.work.compared = [1, 2]
    app = diagnostics(session)
    assert [len(found) for found in classified(session_of(app))] == [2 * len(QUICK)] * 2
    (button,) = (element for element in app.button if element.label.startswith("Train all twelve (about"))
    app = button.click().run()
    task = session_of(app).work.tasks[CLASSIFYING]
    assert task.about == ("group", CLASSIFIERS)
    assert task.expected is not None
    task.cancel()
    finish(task.job)
    app.run()
    assert any(element.value == "The training of classifiers was cancelled." for element in app.info)
    assert [len(found) for found in classified(session_of(app))] == [2 * len(QUICK)] * 2, "nothing was lost"
    again = classify(session_of(app).work, "group", CLASSIFIERS[:2])  # the quickest
    assert again is not None
    finish(again.job)
    app.run()
    assert not app.exception
    assert [len(found) for found in classified(session_of(app))] == [4, 4], "every release that is compared"
    assert any("held-out rows too" in element.value for element in app.caption)


def test_what_became_better_is_said() -> None:
    app = diagnostics(ready("teaching", 0.01, 100.0))
    assert any("What has changed from release 1 to release 2?" in element.value for element in app.markdown)
    changed = next(frame.value for frame in app.dataframe if {"change", "measure"} <= set(frame.value.columns))
    assert "better" in set(changed["change"])


def test_every_verdict_of_visible_differences_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    session = poor(monkeypatch)
    app = diagnostics(session)
    (evaluation,) = evaluations(session)
    bad = [result for result in evaluation.results if result.verdict in ("fair", "poor")]
    assert sum(element.value == "**Why?**" for element in app.markdown) == len(bad)
    for result in bad:
        assert " × ".join(concerned(result, evaluation)) + ": " in texts(app)


def test_the_groups_shown_first_are_the_worst() -> None:
    session = ready("teaching", 1.0)
    app = diagnostics(session)
    (evaluation,) = evaluations(session)
    value, group = evaluation["mann_whitney"].headline.columns
    assert (app.selectbox(key="value_column").value, app.selectbox(key="group_column").value) == (value, group)
