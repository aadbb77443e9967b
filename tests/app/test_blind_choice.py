"""Choices that reveal nothing: the best of several runs picked privately, and a review on public facts only."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.diagnostics.evaluation import evaluate
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.review import Thresholds, checklist
from dpsynth_core.review.publication import PRIVATE_DIAGNOSTICS, PUBLIC_FACTS
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.private_table import PrivateTable
from pages.shared.accounts import account_of, open_ledger
from pages.shared.data.actions import load_example, open_account
from pages.shared.release.actions import bundle_of, gather_evidence, history, record, report_of
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from pages.shared.tasks import RUN, Task
from tests.tables.releases import outcome_of
from tests.waiting.jobs import finish
from tests.waiting.pages import page, session_of, settled, texts

EXAMPLE = "two_groups_signal"


def synthesize_page(session: Session) -> AppTest:
    return page("pages/3_Synthesize.py", session)


def release_page(session: Session) -> AppTest:
    return page("pages/6_Release.py", session)


def words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.success, app.error, app.subheader)
    return "\n".join([*(str(element.value) for kind in kinds for element in kind), texts(app)])


def loaded(mode: str) -> Session:
    session = Session(mode=mode)  # type: ignore[arg-type]
    load_example(session, EXAMPLE)
    if mode == "release":
        open_account(session, "3", "1e-6")
    return session


# -------------------------------------------------------------------------------------------------- the best of several


def chosen(session: Session, *keys: str, runs: int = 3) -> AppTest:
    app = synthesize_page(session)
    app.multiselect(key="candidates").set_value(list(keys))
    app.number_input(key="max_runs").set_value(runs)
    return settled(app.run())


def started(session: Session) -> Task:
    """What the second button of the dialog does."""
    assert session.schema is not None
    return start(session, session.settings.selection_config(session.schema, session.work.n, teaching=False))


def test_cost_and_shares_are_said_before_anything_runs() -> None:
    app = chosen(loaded("release"), "perturbed_histogram", "kd_tree")
    said = words(app)
    assert "Total cost: ε = 1" in said
    assert "ε = 4/15 (about 0.2667) for its table and 1/15" in said
    assert "makes 3 runs" in said
    assert "stays secret" in said
    account = account_of(session_of(app))
    assert account is not None
    assert not account.spent.epsilon


def test_mechanisms_that_need_a_delta_or_claim_nothing_are_not_offered() -> None:
    offered = synthesize_page(loaded("teaching")).multiselect(key="candidates").options
    assert len(offered) >= 6
    assert not {MECHANISMS[key].title for key in ("dp_gan", "bayes")} & set(offered)


def test_without_candidates_the_page_says_so() -> None:
    app = chosen(loaded("teaching"))
    assert "Choose at least one mechanism" in words(app)
    assert "pick_best" not in {button.key for button in app.button}


def test_the_pick_is_confirmed_charged_once_and_gives_one_release() -> None:
    session = loaded("release")
    app = chosen(session, "perturbed_histogram", "kd_grid")
    settled(app.button(key="pick_best").click().run())
    assert "This run costs ε 1, δ 0." in texts(app)
    assert not session.work.tasks.get(RUN), "nothing is spent before the second button"
    started(session)
    account = account_of(session)
    assert account is not None
    assert account.spent.epsilon == 1, "before the result is visible"
    assert not session.runs
    finish(session.work.tasks[RUN].job)
    session.collect()
    (run,) = session.runs
    assert run.config.selection is not None
    assert run.config.mechanism.key in ("perturbed_histogram", "kd_grid")
    assert run.result.guarantee.epsilon == 1
    assert any("best of up to 3 runs" in caveat for caveat in run.result.guarantee.caveats)
    account = account_of(session)
    assert account is not None
    (entry,) = account.entries
    assert (entry.state, entry.budget) == ("committed", run.config.total)
    assert "best of up to 3 runs" in words(synthesize_page(session))
    files = bundle_of(session.work, run)
    assert "Chosen privately as the best" in files.files["data_card.md"].decode()


def test_a_pick_can_be_cancelled_while_it_runs() -> None:
    session = loaded("release")
    chosen(session, "private_pgm", runs=500)
    task = started(session)
    task.cancel()
    finish(task.job)
    account = account_of(session)
    assert account is not None
    assert not session.runs
    assert task.job.state == "cancelled"
    assert account.spent.epsilon == (1 if task.job.drawn else 0)


# ---------------------------------------------------------------------------------------------------- public facts only


@lru_cache
def made() -> RunResult:
    example = EXAMPLES[EXAMPLE]
    return outcome_of(example.load(), example.schema, "perturbed_histogram")


def reviewed(mode: str = "release") -> Session:
    session = loaded(mode)
    run = session.work.add_run(made())
    if session.work.data.fingerprint is not None:
        charge = open_ledger().reserve(session.work.data.fingerprint, made().config.total, purpose="Synthesize")
        open_ledger().commit(charge.id)
        run.charge = charge.id
    return session


def switched(session: Session) -> AppTest:
    app = release_page(session)
    app.toggle(key="public_review").set_value(True)
    return settled(app.run())


def test_a_public_review_holds_public_checks_and_names_what_stays_unanswered() -> None:
    session = reviewed()
    app = switched(session)
    said = words(app)
    assert "Unanswered" in said
    assert "Pairs of columns go together as before" in said
    assert "The rows are what the schema declares" in said
    assert "Computed from the private rows" not in said
    assert "gather" not in {button.key for button in app.button}
    assert "Nothing on this page is computed from the private rows" in said
    with pytest.raises(DPSynthError, match="public facts only"):
        gather_evidence(session.work, session.runs[0])
    with pytest.raises(DPSynthError):
        report_of(session, session.runs[0])()


def test_a_public_review_can_approve_and_the_record_says_how() -> None:
    session = reviewed()
    session.work.public_review = True
    decision = record(session, session.runs[0], "approve", reviewer="Ada", note="")
    (stored,) = history(session)
    assert stored == decision
    assert stored.public_only
    assert stored.chosen_by == PUBLIC_FACTS
    assert set(stored.states) == {"guarantee", "facts", "ledger", "epsilon", "delta", "method", "rows"}


def looked(session: Session) -> Session:
    (run,) = session.runs
    private = PrivateTable(session.work.data.table, run.result.schema)
    run.evaluations[run.result.schema.names] = evaluate(private, run.result.tables[0], ("marginals",))
    return session


def test_once_a_private_diagnostic_was_seen_the_choice_is_no_longer_blind() -> None:
    session = looked(reviewed())
    assert "no longer blind" in words(switched(session))
    decision = record(session, session.runs[0], "hold", reviewer="Ada", note="as seen in the diagnostics")
    assert decision.public_only
    assert decision.chosen_by == PRIVATE_DIAGNOSTICS
    # In another session, by the account's record alone; and what was noted then is not shown.
    other = reviewed()
    assert "no longer blind" in words(switched(other))


def test_a_look_in_another_session_is_remembered_with_the_data_set() -> None:
    release_page(looked(reviewed()))  # any page will do; nothing is decided
    assert "no longer blind" in words(switched(reviewed()))


def test_notes_that_rest_on_private_evidence_are_hidden_in_a_public_review() -> None:
    session = looked(reviewed())
    record(session, session.runs[0], "hold", reviewer="Ada", note="the outlier is back")
    app = switched(session)
    shown = "\n".join(frame.value.to_csv() for frame in app.dataframe if isinstance(frame.value, pd.DataFrame))
    assert "the outlier is back" not in shown
    assert "hidden: private evidence" in shown


def test_rows_outside_the_schema_fail_a_public_review_for_good() -> None:
    result, thresholds = made(), Thresholds()
    good = checklist(result, 100, thresholds, public=True, public_only=True)
    assert good["rows"].state == "pass"
    assert good.public_only
    column = next(c.name for c in result.schema if c.is_numeric)
    moved = result.tables[0].assign(**{column: 1e9})
    bad = checklist(replace(result, tables=(moved,)), 100, thresholds, public=True, public_only=True)
    assert bad["rows"] in bad.final
    fewer = checklist(replace(result, tables=(moved.drop(columns=column),)), 100, thresholds, public_only=True)
    assert fewer["rows"].state == "fail"
