"""The Release page as a reviewer finds it, without a browser."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from starlette.requests import Request
from starlette.responses import Response
from streamlit.testing.v1 import AppTest

from dpsynth_core.diagnostics.evaluation import evaluate
from dpsynth_core.diagnostics.purposes import fitness_lines, overall
from dpsynth_core.diagnostics.wording import VERDICT_WORDS, statement
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.stated_risk import RiskVerdict
from dpsynth_core.review import Evidence, Thresholds, gather
from dpsynth_core.review.evidence import EvidenceRequest
from dpsynth_core.review.report import MARK
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.private_table import PrivateTable
from pages.shared.accounts import account_of, open_ledger
from pages.shared.data.actions import edit_draft, load_example, load_upload, open_account, sign
from pages.shared.downloads import Download
from pages.shared.memory import COOKIE, MEMORY, browser_of
from pages.shared.release.actions import (
    approved_archive,
    approved_file,
    bundle_of,
    checks,
    chosen_by,
    current_approval,
    gather_evidence,
    history,
    record,
    report_of,
)
from pages.shared.release.side_by_side import NOT_COMPARED, USES
from pages.shared.server import hand_over
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from tests.tables.releases import outcome_of
from tests.waiting.jobs import finish
from tests.waiting.pages import HOSTILE, assert_only_in_plain_text, page, session_of, settled, texts

EXAMPLE = "two_groups_signal"
BROWSER = f"2|00|{'7f' * 16}|1"
"""A cookie like Streamlit's."""


@lru_cache
def made() -> RunResult:
    """A release of the example with real noise, once for all tests: it cannot be changed."""
    example = EXAMPLES[EXAMPLE]
    return outcome_of(example.load(), example.schema, "perturbed_histogram")


@lru_cache
def found() -> Evidence:
    example = EXAMPLES[EXAMPLE]
    return gather(PrivateTable(example.load(), example.schema), EvidenceRequest(outcome=made()))


def perfect() -> Evidence:
    """Evidence in which nothing is amiss."""
    evidence = found()
    results = tuple(
        replace(result, headline=replace(result.headline, value=0.001, low=0.0, high=0.002), items=())
        for result in evidence.evaluation.results
    )
    assert evidence.discoveries is not None
    rates = replace(evidence.discoveries, low=0.04, high=0.06, verdict="sound", simulations=2_000)
    return replace(evidence, evaluation=replace(evidence.evaluation, results=results), discoveries=rates)


def ready(mode: str = "teaching", evidence: Evidence | None = None) -> Session:
    session = Session(mode=mode)  # type: ignore[arg-type]
    load_example(session, EXAMPLE)
    run = session.work.add_run(made())
    if mode == "release":
        open_account(session, "3", "1e-6")
        assert session.work.data.fingerprint is not None
        charge = open_ledger().reserve(session.work.data.fingerprint, made().config.total, purpose="Synthesize")
        charge.commit()
        run.charge = charge.id
    run.evidence = evidence
    return session


def release(session: Session) -> AppTest:
    return page("pages/6_Release.py", session)


def ruled(app: AppTest, choice: str, reviewer: str = "Ada", note: str = "") -> AppTest:
    (radio,) = (element for element in app.radio if element.label == "Decision")
    radio.set_value(choice)
    app.text_input(key="reviewer").set_value(reviewer)
    (area,) = (element for element in app.text_area if element.label == "Note: why?")
    area.set_value(note)
    return settled(app.run())


def downloads(app: AppTest) -> list[str]:
    return [element.proto.label for element in app.main if element.type == "link_button"]


def test_without_a_release_the_page_says_what_is_missing() -> None:
    assert "needs a synthetic table" in release(Session()).info[0].value


def test_a_decision_remembers_that_private_diagnostics_were_looked_at() -> None:
    session = ready("release", perfect())
    app = release(session)
    sentence = "rests on private diagnostics. The stated epsilon covers the rows"
    assert any(sentence in caption.value for caption in app.caption)
    (run,) = session.runs
    decision = record(session, run, "approve", reviewer="Ada", note="")
    assert history(session)[-1].chosen_by == decision.chosen_by == "private diagnostics"
    assert sentence in bundle_of(session.work, run, decision.publication).files["data_card.md"].decode()
    assert approved_archive(session.work, run, decision)
    # Whoever opens the table again has the earlier decision before them.
    assert chosen_by(ready_again(session).work) == "private diagnostics"


def ready_again(session: Session) -> Session:
    again = Session(mode="release")
    load_example(again, EXAMPLE)
    assert again.work.data.fingerprint == session.work.data.fingerprint
    return again


def test_a_decision_without_a_look_at_the_rows_rests_on_public_facts() -> None:
    session = ready("release")
    assert chosen_by(session.work) == "public facts only"
    (run,) = session.runs
    assert record(session, run, "hold", reviewer="Ada", note="").chosen_by == "public facts only"
    session.work.compared_with_original = True
    assert chosen_by(session.work) == "private diagnostics"


def test_before_anybody_has_looked_it_says_what_to_press() -> None:
    app = release(ready())
    assert "Evidence is missing" in app.info[0].value
    assert not app.button(key="gather").disabled
    assert app.button(key="decide").disabled
    assert downloads(app) == []


@pytest.mark.slow
def test_evidence_is_gathered_by_a_worker_and_serves_diagnostics_too() -> None:
    session, names = ready(), made().schema.names
    (run,) = session.runs
    finish(gather_evidence(session.work, run).job)
    session.collect()
    assert run.evidence is not None
    assert run.evidence.evaluation.verdict == found().evaluation.verdict
    assert run.evaluations[names] is run.evidence.evaluation
    assert run.evidence.pair is not None
    (risk,) = run.risks.values()
    assert run.evidence.discoveries == replace(risk, last=True), "both pages show one figure"
    assert not risk.last, "and Diagnostics may go on from it"


@pytest.mark.slow
def test_a_review_does_not_rest_on_the_rough_first_figure_of_diagnostics() -> None:
    session, before = ready(), found().discoveries
    (run,) = session.runs
    assert before is not None
    rough = replace(before, low=0.0, high=0.7, verdict="inflated", simulations=8, last=False)
    assert rough.is_rough
    run.risks[(rough.value, rough.group, None)] = rough
    finish(gather_evidence(session.work, run).job)
    session.collect()
    assert run.evidence is not None
    assert run.evidence.discoveries is not None
    assert not run.evidence.discoveries.is_rough


@pytest.mark.parametrize(("high", "verdict", "state"), [(0.06, "sound", "pass"), (0.9, "inflated", "fail")])
def test_a_figure_that_diagnostics_has_refined_since_is_the_one_that_is_reviewed(
    high: float, verdict: RiskVerdict, state: str
) -> None:
    session = ready(evidence=found())
    (run,), before = session.runs, found().discoveries
    assert before is not None
    assert before.simulations > 0
    finer = replace(before, low=0.04, high=high, verdict=verdict, simulations=before.simulations + 1)
    run.risks[(finer.value, finer.group, None)] = finer
    check = next(check for check in checks(session, run).checks if check.key == "false_discovery")
    assert (check.high, check.state) == (high, state)
    assert check.evidence == " ".join(finer.sentences), "word for word what Diagnostics says"
    run.risks[(finer.value, finer.group, None)] = replace(finer, simulations=before.simulations - 1)
    check = next(check for check in checks(session, run).checks if check.key == "false_discovery")
    assert check.high == before.high, "a coarser figure replaces nothing"


@pytest.mark.parametrize("mode", ["teaching", "release"])
def test_what_passes_is_approved_and_offered(mode: str) -> None:
    session = ready(mode, perfect())
    app = release(session)
    assert "Yes" in app.success[0].value
    app = ruled(app, "approve")
    app = settled(app.button(key="decide").click().run())
    assert "Approved" in app.success[0].value
    assert "Download the approved bundle" in downloads(app)
    run = session.runs[0]
    approved = current_approval(run, history(session))
    assert approved is not None
    archive = approved_archive(session.work, run, approved)
    with zipfile.ZipFile(io.BytesIO(archive)) as bundle:
        assert "croissant.json" in bundle.namelist()
        assert all(MARK.encode() not in bundle.read(name) for name in bundle.namelist())


def test_gathering_can_be_cancelled_and_says_that_nothing_is_charged() -> None:
    session = ready("release")
    task = gather_evidence(session.work, session.runs[0])
    app = release(session)
    settled(app.button(key="cancel_evidence").click().run())
    assert task.job.state == "cancelled"
    settled(app.run())
    assert "The search for evidence was cancelled." in [note.value for note in app.info]
    assert "Nothing was charged." in texts(app)
    assert not app.button(key="gather").disabled


def test_every_score_stands_beside_its_reference_its_verdict_and_its_worst_item() -> None:
    session = ready(evidence=found())
    shown = texts(release(session))
    for key in ("columns", "pairs", "mmd"):
        check = checks(session, session.runs[0])[key]
        assert "a fresh sample: about" in check.evidence
        assert check.evidence in shown
        assert f"Measured: {check.measured}" in shown
    assert "5 is what a sound test allows" in shown


def test_a_table_with_permuted_columns_is_not_green() -> None:
    example = EXAMPLES[EXAMPLE]
    original, rng = example.load(), np.random.default_rng(1)
    permuted = pd.DataFrame({name: rng.permutation(original[name]) for name in original})
    outcome = replace(made(), tables=(permuted,))
    session = ready(evidence=gather(PrivateTable(original, example.schema), EvidenceRequest(outcome=outcome)))
    answer = checks(session, session.runs[0])
    assert answer["columns"].state == "pass", "each column by itself is perfect"
    assert answer["pmse"].state == "fail"
    assert not answer.answer.startswith("Yes")


def test_a_later_hold_takes_an_approval_back_and_both_stay_on_record() -> None:
    session = ready("release", perfect())
    record(session, session.runs[0], "approve", reviewer="Ada", note="")
    record(session, session.runs[0], "hold", reviewer="Bob", note="Wait.")
    assert [decision.choice for decision in history(session)] == ["approve", "hold"]
    app = release(session)
    assert "Download the approved bundle" not in downloads(app)
    assert "You can download it once a reviewer has approved it." in [element.value for element in app.markdown]
    table = app.dataframe[-1].value
    assert list(table["reviewer"]) == ["Bob", "Ada"]
    # Another session on the same data set sees the same history.
    assert len(history(ready("release"))) == 2


def test_a_double_click_records_once() -> None:
    session = ready("release", perfect())
    session.work.ticket = "the same"
    record(session, session.runs[0], "hold", reviewer="Ada", note="")
    session.work.ticket = "the same"
    record(session, session.runs[0], "hold", reviewer="Ada", note="")
    assert len(history(session)) == 1


def test_what_is_missing_for_an_approval_is_listed_and_shrinks() -> None:
    strict = ready(evidence=found())
    strict.thresholds = Thresholds(columns=0.0001)
    app = ruled(release(strict), "approve", reviewer="")
    assert "Say in the note why" in texts(app)
    assert "Give the reviewer's name." in texts(app)
    assert app.button(key="decide").disabled
    app = ruled(app, "approve", note="For a course.")
    assert not app.button(key="decide").disabled


def test_a_void_guarantee_has_no_bundle_and_cannot_be_approved() -> None:
    session = ready("release", perfect())
    session.runs[0].result = replace(made(), guarantee=made().guarantee.weakened("void", "Read from the data."))
    app = release(session)
    assert "cannot be released as private" in app.error[0].value
    assert "There is no release bundle." in [element.value for element in app.error]
    app = ruled(app, "approve", note="Please.")
    assert app.button(key="decide").disabled
    with pytest.raises(DPSynthError):
        record(session, session.runs[0], "approve", reviewer="Ada", note="Please.")
    assert downloads(app) == ["Download the review report"]


def test_a_release_that_nobody_paid_for_cannot_be_approved() -> None:
    session = ready("release", perfect())
    session.runs[0].charge = None
    assert checks(session, session.runs[0])["ledger"].state == "fail"
    with pytest.raises(DPSynthError, match="cannot be overruled"):
        record(session, session.runs[0], "approve", reviewer="Ada", note="It was free.")


def test_a_run_of_this_session_is_found_in_the_ledger() -> None:
    session = Session(mode="release")
    load_example(session, EXAMPLE)
    open_account(session, "3", "1e-6")
    finish(start(session, RunConfig(mechanism=made().config.mechanism, epsilon="1")).job)
    session.collect()
    account = account_of(session)
    assert account is not None
    assert session.runs[0].charge == account.entries[0].id
    assert checks(session, session.runs[0])["ledger"].state == "pass"


def test_thresholds_are_the_reviewers_and_are_recorded() -> None:
    app = release(ready("release", perfect()))
    app.text_input(key="policy_epsilon").set_value("0.5")
    app.number_input(key="limit_pairs").set_value(0.4)
    (send,) = (element for element in app.button if element.label == "Use these thresholds")
    app = settled(send.click().run())
    session = session_of(app)
    assert session.thresholds == Thresholds(epsilon="0.5", pairs=0.4)
    assert checks(session, session.runs[0])["epsilon"].state == "fail"
    decision = record(session, session.runs[0], "hold", reviewer="Ada", note="Too much.")
    assert history(session)[-1] == decision
    assert decision.thresholds == session.thresholds


def test_thresholds_that_make_no_sense_are_told_in_words() -> None:
    app = release(ready(evidence=perfect()))
    app.text_input(key="policy_epsilon").set_value("lots")
    (send,) = (element for element in app.button if element.label == "Use these thresholds")
    app = settled(send.click().run())
    assert "These thresholds cannot be used." in [element.value for element in app.error]
    assert session_of(app).thresholds == Thresholds()


def test_the_words_are_part_of_what_is_approved() -> None:
    session = ready("release", perfect())
    decision = record(session, session.runs[0], "approve", reviewer="Ada", note="")
    session.work.publication = replace(session.work.publication, title="Another title")
    assert bundle_of(session.work, session.runs[0]).sha256 != decision.bundle
    with zipfile.ZipFile(io.BytesIO(approved_archive(session.work, session.runs[0], decision))) as archive:
        assert b"Another title" not in archive.read("data_card.md")


def test_an_archive_that_is_not_the_approved_one_is_refused() -> None:
    session = ready("release", perfect())
    decision = record(session, session.runs[0], "approve", reviewer="Ada", note="")
    with pytest.raises(DPSynthError, match="no longer the one"):
        approved_archive(session.work, session.runs[0], replace(decision, bundle="0" * 64))


def test_contents_are_listed_with_their_hashes() -> None:
    session = ready(evidence=perfect())
    app = release(session)
    (table,) = (element.value for element in app.dataframe if "SHA-256" in element.value)
    assert list(table["file"]) == list(bundle_of(session.work, session.runs[0]).files)
    assert all(len(digest) == 64 for digest in table["SHA-256"])


def test_every_picture_has_a_table() -> None:
    app = release(ready(evidence=found()))
    assert len([element for element in app.main if element.type == "plotly_chart"]) == 3
    app.toggle(key="release_tables").set_value(True)
    app.toggle(key="flow_table").set_value(True)
    app = settled(app.run())
    assert not [element for element in app.main if element.type == "plotly_chart"]


def test_the_report_tells_checklist_and_decisions() -> None:
    session = ready("release", found())
    record(session, session.runs[0], "hold", reviewer="<b>Ada</b>", note="First.")
    record(session, session.runs[0], "hold", reviewer="Bob", note="Second.")
    text = report_of(session, session.runs[0])().decode()
    assert "Checklist" in text
    assert "First." in text
    assert "Second." in text
    assert "&lt;b&gt;Ada" in text
    assert "not a proof of privacy" in text
    assert session.work.data.title in text
    assert str(session.work.data.fingerprint) in text
    assert bundle_of(session.work, session.runs[0]).sha256 in text
    assert session.runs[0].digest in text


def test_what_diagnostics_has_found_is_evidence_at_once_and_is_not_computed_again() -> None:
    session = ready()
    (run,) = session.runs
    run.evaluations[run.result.schema.names] = found().evaluation
    answer = checks(session, run)
    assert {check.key for check in answer.of("open")} == {"false_discovery", "nearest"}
    shown = texts(release(session))
    for key, diagnostic in (("columns", "marginals"), ("pairs", "pairs"), ("pmse", "pmse"), ("mmd", "mmd")):
        result = found().evaluation[diagnostic]
        assert f"{VERDICT_WORDS[result.verdict]}. {statement(result)}" in answer[key].evidence
        assert answer[key].evidence in shown
    assert all(use.sentence in shown for use in fitness_lines(found().evaluation))
    again = gather(session.work.private, EvidenceRequest(outcome=made(), evaluation=found().evaluation))  # type: ignore[arg-type]
    assert again.evaluation is found().evaluation


def test_candidates_are_shown_side_by_side() -> None:
    session = ready(evidence=found())
    session.work.add_run(made())
    first, second = (run.name for run in session.runs)
    app = release(session)
    assert [each.value for each in app.caption].count(first) > 10
    uses = fitness_lines(found().evaluation)
    assert overall(uses) in texts(app)
    assert NOT_COMPARED in texts(app)
    (switch,) = (each for each in app.toggle if each.key == "candidates_as_table")
    app = settled(switch.set_value(True).run())
    table = next(frame.value for frame in app.dataframe if "check" in frame.value.columns)
    assert list(table.columns) == ["check", first, second]
    row = table.set_index("check").loc["Every column keeps its distribution"]
    assert row[first].endswith(checks(session, session.runs[0])["columns"].measured)
    assert row[second] == "Not looked at"
    everything = len(table)
    (switch,) = (each for each in app.toggle if each.key == "candidates_differing")
    app = settled(switch.set_value(True).run())
    table = next(frame.value for frame in app.dataframe if "check" in frame.value.columns)
    assert 0 < len(table) < everything
    assert (table[first] != table[second]).all()
    session.work.public_review = True
    titles = [each.value for each in release(session).markdown]
    assert "**May it be released?**" in titles
    assert "**Every column keeps its distribution**" not in titles
    assert f"**{USES}**" not in titles
    assert f"**{overall(uses)}**" not in titles


def test_who_declared_the_facts_can_be_named_later_for_the_same_facts_only() -> None:
    session = ready("release", found())
    digest = bundle_of(session.work, session.runs[0]).sha256
    nobody = "nobody is named as having declared them"
    assert nobody in checks(session, session.runs[0])["facts"].measured
    assert nobody in texts(release(session))
    sign(session, "".join(HOSTILE))
    app = release(session)
    assert f"declared by {''.join(HOSTILE)}" in texts(app)
    assert_only_in_plain_text(app, HOSTILE[0])
    assert "declared by &lt;script&gt;" in report_of(session, session.runs[0])().decode()
    session.runs[0].bundle = None
    assert bundle_of(session.work, session.runs[0]).sha256 == digest
    edit_draft(session, session.work.draft.assign(bins=7))
    assert nobody in checks(session, session.runs[0])["facts"].measured


def test_in_release_mode_all_is_marked() -> None:
    app = release(ready("release"))
    assert any("For internal review, not for release" in element.value for element in app.warning)


def test_names_from_a_file_are_never_read_as_markup() -> None:
    session = Session()
    header = ",".join(f'"{name}"' for name in HOSTILE[:3])
    rows = "\n".join(f"{i % 7},{i % 2},{HOSTILE[i % 4]}" for i in range(60))
    load_upload(session, "x.csv", f"{header}\n{rows}".encode())
    private, schema = session.work.private, session.schema
    assert private is not None
    assert schema is not None
    order = RunConfig(mechanism=made().config.mechanism, epsilon="1")
    outcome = execute(session.work.data.table, schema, order)
    run = session.work.add_run(outcome)
    evaluation = evaluate(private, outcome.tables[0], ["marginals", "pairs"])
    run.evidence = gather(private, EvidenceRequest(outcome=outcome, evaluation=evaluation))
    app: Any = release(session)
    for hostile in HOSTILE[:3]:
        assert_only_in_plain_text(app, hostile)


def asked_for(session: Session) -> Response:
    """What the server answers to a browser that follows the link to the bundle, drawn while it was approved."""
    offer = session.downloads.offer("tab", "bundle", session_bundle(session))
    scope = {"type": "http", "method": "GET", "headers": [(b"cookie", f"{COOKIE}={BROWSER}".encode())]}
    request = Request({**scope, "path_params": {"token": session.token, "offer": offer}})
    # In a thread of its own: tests in a browser leave a loop behind that runs in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, received(request)).result()


async def received(request: Request) -> Response:
    """The whole answer, which is sent in pieces."""
    answer, pieces = await hand_over(request), bytearray()

    async def send(message: Any) -> None:
        pieces.extend(message.get("body", b""))

    await answer({**request.scope, "asgi": {"spec_version": "2.4"}}, request.receive, send)
    return Response(bytes(pieces), answer.status_code)


def session_bundle(session: Session) -> Download:
    return Download(name="release.zip", media_type="application/zip", content=approved_file(session, session.runs[0]))


def approved() -> Session:
    session = ready("release", perfect())
    record(session, session.runs[0], "approve", reviewer="Ada", note="")
    session.token = MEMORY.keep(session, browser_of(BROWSER))
    return session


def test_a_bundle_is_handed_over_only_while_it_is_approved() -> None:
    session = approved()
    answer = asked_for(session)
    assert answer.status_code == 200
    assert zipfile.is_zipfile(io.BytesIO(answer.body))
    colleague = ready("release", perfect())  # who decides elsewhere, while the first page still shows the link
    record(colleague, session.runs[0], "hold", reviewer="Bob", note="Wait.")
    answer = asked_for(session)
    assert (answer.status_code, b"withdrawn the approval" in answer.body) == (409, True)
    record(colleague, session.runs[0], "approve", reviewer="Bob", note="It may be released after all.")
    assert asked_for(session).status_code == 200


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM dpsynth_decisions WHERE choice = 'hold'",
        "UPDATE dpsynth_decisions SET choice = 'approve' WHERE choice = 'hold'",
    ],
)
def test_nobody_gets_a_bundle_by_editing_the_decisions(statement: str, home: Path) -> None:
    session = approved()
    record(session, session.runs[0], "hold", reviewer="Bob", note="Wait.")
    with sqlite3.connect(home / "ledger.db") as connection:
        connection.execute(statement)
    connection.close()
    answer = asked_for(session)
    assert (answer.status_code, b"of the ledger" in answer.body) == (409, True)
