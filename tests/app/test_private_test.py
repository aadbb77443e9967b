"""The private test in the app: paid for before it is visible, once a click, by whoever has budget left."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.errors import BudgetError, DPSynthError
from dpsynth_core.inference.private_comparison import ComparisonRequest, compare_privately
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.table.schema import Schema
from pages.shared.accounts import account_of, open_ledger
from pages.shared.comparison import actions
from pages.shared.comparison.actions import group_columns, power_asked, results, run_private_test
from pages.shared.data.actions import declare_all_public, load_example, load_upload, open_account
from pages.shared.session import Session
from tests.waiting.pages import HOSTILE, assert_only_in_plain_text, click, page, texts

RNG = np.random.default_rng(4)
PEOPLE = pd.DataFrame(
    {
        "income": np.round(RNG.normal(50, 10, 400) + np.repeat([0, 15], 200), 2),
        "sex": np.repeat(["f", "m"], 200),
        "town": RNG.choice(["north", "south", "west"], 400),
    }
)
REQUEST = ComparisonRequest(value="income", group="sex", epsilon="2")


def upload(mode: str, content: bytes | None = None) -> Session:
    session = Session(mode=mode)  # type: ignore[arg-type]
    load_upload(session, "people.csv", content or PEOPLE.to_csv(index=False).encode())
    declare_all_public(session, public=True)
    return session


@pytest.fixture
def release() -> Session:
    session = upload("release")
    open_account(session, 5, "1e-5")
    return session


def account_in(session: Session) -> Account:
    account = account_of(session)
    assert account is not None
    return account


def facts(session: Session) -> Schema:
    assert session.schema is not None
    return session.schema


def run(session: Session, request: ComparisonRequest = REQUEST, run_id: str = "") -> float:
    run_private_test(session, facts(session), request, run_id=run_id or uuid.uuid4().hex)
    return results(session)[-1].pvalue


def test_the_account_is_charged_before_the_result_is_visible(release: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def watched(*args: object, watch: Callable[[object], None], **more: object) -> object:
        def before(charge: object) -> None:
            watch(charge)
            seen.extend(entry.state for entry in account_in(release).entries)
            assert results(release) == ()

        return compare_privately(*args, watch=before, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(actions, "compare_privately", watched)
    run(release)
    assert seen == ["reserved", "reserved"]
    assert [entry.state for entry in account_in(release).entries] == ["committed"]
    assert account_in(release).spent.epsilon == 2
    (found,) = results(release)
    assert (found.guarantee.status, found.guarantee.budget) == ("proven", Budget.of(2, "1e-6"))


def test_a_double_click_pays_once_and_shows_the_same_result(release: Session) -> None:
    one, two = (run(release, run_id="click") for _ in range(2))
    assert one == two
    assert account_in(release).spent.epsilon == 2


def test_two_tabs_cannot_spend_what_is_left_twice(release: Session) -> None:
    """Both ask at the same moment for more than half of what is left."""
    other, outcomes = upload("release"), []
    ready = threading.Barrier(2)

    def ask(session: Session) -> None:
        ready.wait()
        try:
            run(session, replace(REQUEST, epsilon="3"))
            outcomes.append("paid")
        except BudgetError:
            outcomes.append("refused")

    tabs = [threading.Thread(target=ask, args=(session,)) for session in (release, other)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert sorted(outcomes) == ["paid", "refused"]
    assert account_in(release).spent.epsilon == 3


def test_another_session_with_the_same_file_sees_what_is_paid_for(release: Session) -> None:
    pvalue = run(release)
    other = upload("release")
    assert [found.pvalue for found in results(other)] == [pvalue]
    another_file = upload("release", PEOPLE.head(300).to_csv(index=False).encode())
    assert results(another_file) == ()


def test_without_an_account_or_budget_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a private row was looked at")

    monkeypatch.setattr(actions, "compare_privately", never)
    session = upload("release", PEOPLE.iloc[::2].to_csv(index=False).encode())
    with pytest.raises(DPSynthError, match="account"):
        run(session)
    open_account(session, 1, "1e-5")
    with pytest.raises(BudgetError):
        run(session)
    with pytest.raises(BudgetError):
        run(session, replace(REQUEST, epsilon="0.5", delta="1e-4"))
    with pytest.raises(DPSynthError):
        run(session, replace(REQUEST, group="town", epsilon="0.5"))
    with pytest.raises(DPSynthError):
        run(session, replace(REQUEST, group="town", levels=("north", "nowhere"), epsilon="0.5"))
    assert account_in(session).entries == ()


def test_a_failure_before_the_first_draw_is_refunded_and_one_after_it_is_not(
    release: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, watch: Callable[[object], None], drawn: list[bool], **__: object) -> None:
        if drawn[0]:
            watch(None)
        raise DPSynthError("broken")

    drawn = [False]
    monkeypatch.setattr(
        actions, "compare_privately", lambda *args, watch, **more: failing(*args, watch=watch, drawn=drawn, **more)
    )
    with pytest.raises(DPSynthError):
        run(release)
    assert account_in(release).spent.epsilon == 0
    drawn[0] = True
    with pytest.raises(DPSynthError):
        run(release)
    assert account_in(release).spent.epsilon == 2
    assert results(release) == ()


def test_the_unit_of_protection_is_that_of_the_account(release: Session) -> None:
    with pytest.raises(DPSynthError, match="at most 1 row"):
        run_private_test(release, replace(facts(release), rows_per_person=3), REQUEST, run_id="a")
    assert account_in(release).entries == ()


def test_a_test_is_no_release_and_no_private_diagnostic(release: Session) -> None:
    from pages.shared.release.actions import chosen_by, releases_made

    run(release)
    assert releases_made(release.work) == 1
    assert chosen_by(release.work) == "public facts only"


def test_teaching_is_free() -> None:
    session = Session()
    load_example(session, "two_groups_signal")
    group = group_columns(facts(session))[0]
    value = next(name for name in facts(session).names if name != group)
    request = ComparisonRequest(value=value, group=group, epsilon="1")
    run(session, request)
    assert len(results(session)) == 1
    assert results(session)[0].guarantee.status == "proven"


# The page


def synthesize_page(session: Session) -> AppTest:
    return page("pages/3_Synthesize.py", session)


def test_in_release_mode_a_dialog_states_the_cost_and_cancel_spends_nothing(release: Session) -> None:
    app = click(synthesize_page(release), "test_run_synthesize")
    assert "costs ε 1, δ 1e-6." in texts(app)
    assert "Left afterwards: ε 4, δ 9e-6." in texts(app)
    click(app, "cancel_test")
    assert account_in(release).entries == ()


def test_a_result_is_on_the_page_with_its_guarantee(release: Session) -> None:
    run(release)
    app = synthesize_page(release)
    assert "proven for this run: epsilon 2, delta 1e-6" in texts(app)
    assert "p-value of the private test" in [metric.label for metric in app.metric]
    assert "Test again with fresh noise" in [button.label for button in app.button]


def test_what_is_more_than_is_left_cannot_be_confirmed(release: Session) -> None:
    with open_ledger().charge(release.work.data.fingerprint or "", Budget.of("4.5"), purpose="other") as charge:
        charge.drawn()
    app = click(synthesize_page(release), "test_run_synthesize")
    assert "more than is left" in texts(app)
    assert app.button(key="confirm_test").disabled


def test_without_an_account_the_button_says_so() -> None:
    app = synthesize_page(upload("release", PEOPLE.iloc[::4].to_csv(index=False).encode()))
    assert app.button(key="test_run_synthesize").disabled


def test_several_tests_are_read_with_their_number_in_mind() -> None:
    session = upload("teaching")
    run(session)
    run(session, replace(REQUEST, group="town", levels=("north", "west")))
    app = synthesize_page(session)
    assert "compare each p-value with 0.025" in texts(app)


@pytest.mark.parametrize("hostile", HOSTILE[:3])
def test_names_from_a_file_are_shown_literally(hostile: str) -> None:
    table = PEOPLE.rename(columns={"income": hostile, "sex": f"g{hostile}"})
    session = upload("teaching", table.to_csv(index=False).encode())
    run(session, ComparisonRequest(value=hostile, group=f"g{hostile}", epsilon="1"))
    assert_only_in_plain_text(synthesize_page(session), hostile)


def test_equal_questions_about_power_are_asked_once() -> None:
    session = upload("teaching")
    one, two = (power_asked(session, REQUEST, effect=0.7, share=0.5, run=None) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    session.settings.pick("perturbed_histogram")
    assert power_asked(session, REQUEST, effect=0.7, share=0.5, run=None) != one


def test_a_test_is_published_with_a_release_in_one_statement(release: Session) -> None:
    from pages.shared.release.actions import bundle_of, checks, publishable_tests

    work, schema = release.work, facts(release)
    config = RunConfig(mechanism=MECHANISMS["kd_grid"].suggest(schema, work.n, "1"), epsilon="1")
    record = work.add_run(execute(work.data.table, schema, config))
    run(release)
    (paid,) = publishable_tests(release, record)
    alone = record.digest, bundle_of(work, record).sha256
    record.published_tests = (paid,)
    assert record.outcome.guarantee.budget == Budget.of(3, "1e-6")
    assert (record.digest, bundle_of(work, record).sha256) != alone
    assert "private_tests.json" in bundle_of(work, record).files
    measured = {item.key: item for item in checks(release, record).checks}
    assert "not on record" in measured["ledger"].measured, "the run was made without a charge"
    record.published_tests = (replace(paid, pvalue=0.0),)
    measured = {item.key: item for item in checks(release, record).checks}
    assert "no charge for a private test" in measured["ledger"].measured
    app = page("pages/6_Release.py", release)
    assert "Private tests to publish with it" in [box.label for box in app.multiselect]
