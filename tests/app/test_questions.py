"""Other questions on the Diagnostics page: asked by the person, answered from released rows, refined while read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.diagnostics.evaluation import evaluate
from dpsynth_core.inference.correlation_test import CorrelationTest
from dpsynth_core.inference.question import Question
from dpsynth_core.inference.question_risk import QuestionRisk, question_risk
from dpsynth_core.inference.share_test import ShareTest
from dpsynth_core.inference.slope_test import SlopeTest
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.configuration import RunConfig, execute
from pages.shared.data.actions import declare_all_public, load_upload
from pages.shared.diagnostics.questions_view import ask
from pages.shared.session import Session
from tests.waiting.jobs import finish
from tests.waiting.pages import HOSTILE, assert_only_in_plain_text, page, texts

RNG = np.random.default_rng(8)
PEOPLE = pd.DataFrame(
    {
        "height": np.round(RNG.normal(170, 10, 200), 1),
        "weight": np.round(RNG.normal(70, 12, 200), 1),
        "sex": RNG.choice(["f", "m"], 200),
        "smokes": RNG.choice(["no", "yes"], 200),
    }
)


def ready(table: pd.DataFrame = PEOPLE) -> Session:
    session = Session()
    load_upload(session, "people.csv", table.to_csv(index=False).encode())
    declare_all_public(session, public=True)
    schema = session.schema
    assert schema is not None
    config = RunConfig(mechanism=MECHANISMS["kd_grid"].suggest(schema, len(table), "1"), epsilon="1", seed=1)
    session.work.add_run(execute(session.work.data.table, schema, config))
    return session


def questions(session: Session) -> list[Question]:
    schema = session.runs[0].result.schema
    return [
        ShareTest.of(schema, value="smokes", group="sex", outcome="yes"),
        CorrelationTest.of(schema, value="weight", other="height"),
        SlopeTest.of(schema, value="weight", predictor="height"),
    ]


def answered(session: Session, question: Question) -> QuestionRisk:
    """The answer, and the comparison with the original that the page begins with, without waiting for a worker."""
    work, run, private = session.work, session.runs[0], session.work.private
    assert private is not None
    table = run.result.tables[0]
    run.questions[question] = question_risk(run.result.release(work.n), question, table=table, stage=0)
    run.evaluations[private.schema.names] = evaluate(private, table, ["mann_whitney"])
    return run.questions[question]


def test_a_question_is_answered_in_a_worker_from_published_things() -> None:
    session = ready()
    work, run = session.work, session.runs[0]
    question = questions(session)[1]
    finish(ask(work, run, question, stage=0).job)
    session.collect()
    risk = run.questions[question]
    assert 0 <= risk.low <= risk.high <= 1
    assert not work.examined, "no private row was looked at"


def test_an_answer_is_shown_with_both_pvalues_and_no_verdict_contradicts_its_sentence() -> None:
    session = ready()
    work, run = session.work, session.runs[0]
    finish(ask(work, run, questions(session)[0], stage=0))
    session.collect()
    from dpsynth_core.diagnostics.evaluation import evaluate

    private = work.private
    assert private is not None
    run.evaluations[private.schema.names] = evaluate(private, run.result.tables[0], ["mann_whitney"])
    app = page("pages/4_Diagnostics.py", session)
    shown = texts(app)
    risk = run.questions[questions(session)[0]]
    assert risk.sentences[0] in shown
    assert risk.tests_sentence in shown


@pytest.mark.parametrize("hostile", HOSTILE[:2])
def test_names_from_a_file_are_shown_literally(hostile: str) -> None:
    session = ready(PEOPLE.rename(columns={"sex": hostile}))
    work, run = session.work, session.runs[0]
    schema = run.result.schema
    finish(ask(work, run, ShareTest.of(schema, value="smokes", group=hostile, outcome="yes"), stage=0))
    session.collect()
    from dpsynth_core.diagnostics.evaluation import evaluate

    private = work.private
    assert private is not None
    run.evaluations[private.schema.names] = evaluate(private, run.result.tables[0], ["mann_whitney"])
    assert_only_in_plain_text(page("pages/4_Diagnostics.py", session), hostile)
