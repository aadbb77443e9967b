"""A paid release comes back from the store as it was: same rows, same claim, same bundle."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

import dpsynth_core as dp
from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.review import Publication, release_bundle, release_digest
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.runs.saved_run import load_run, save_run
from dpsynth_core.runs.selection import PrivateSelection
from dpsynth_core.runs.stored_run import PaidRun, StoreOrder, execute_and_store, load_release
from dpsynth_core.table.estimate import estimate_bounds
from dpsynth_core.table.paid_estimate import PaidEstimate
from tests.tables.releases import hostile_outcome, mixed_outcome, outcome_of
from tests.tables.schemas import mixed_schema, mixed_table

SELECTED = RunConfig(
    mechanism=dp.MECHANISMS["kd_tree"](),
    epsilon="3",
    selection=PrivateSelection.of([dp.MECHANISMS["kd_tree"]()], 2),
)
CONFIG = RunConfig(mechanism=dp.MECHANISMS["kd_tree"](), epsilon="0.5")


def estimated() -> RunResult:
    """A release whose range was estimated privately, at a cost that joins its claim."""
    table, noise = mixed_table(), SecureNoise(Budget.of("1/3"))
    bounds = estimate_bounds(table["age"], epsilon="1/3", noise=noise)
    found = PaidEstimate.from_dict(bounds.to_dict(), Budget.of("1/3"), 1)  # as the ledger has it
    schema = mixed_schema().with_column(found.declare(mixed_schema()["age"], others_public=True))
    return execute(table, schema, CONFIG, [found])


@pytest.mark.parametrize(
    "made",
    [
        lambda: mixed_outcome(copies=2, epsilon="1/7"),
        lambda: execute(mixed_table(), mixed_schema(), SELECTED),
        lambda: hostile_outcome()[1],
        lambda: outcome_of(mixed_table(), mixed_schema(rows_per_person=2, declared_by="Bo Steward")),
        estimated,
    ],
    ids=["tables", "selection", "hostile", "signed", "estimated"],
)
def test_what_was_saved_makes_the_same_bundle(made: Callable[[], RunResult]) -> None:
    before = made()
    after = load_run(save_run(before))
    assert release_digest(after) == release_digest(before)
    words = Publication(original_rows=300)
    assert release_bundle(after, words).archive == release_bundle(before, words).archive
    assert (after.guarantee, after.estimates, after.charges) == (before.guarantee, before.estimates, before.charges)


def test_nothing_is_saved_that_a_bundle_does_not_hold() -> None:
    made = outcome_of(mixed_table(), mixed_schema(declared_by="Bo Steward"))
    assert b"Bo Steward" not in save_run(made)
    after = load_run(save_run(made))
    assert (after.leaves, after.seconds, after.schema.declared_by) == (None, 0.0, "")
    with pytest.raises(DPSynthError, match="seed"):
        save_run(mixed_outcome(seed=1))


def test_what_another_version_has_written_is_refused_in_words() -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("run.json", '{"tables": 0}')
    for content in (b"", b"not a zip", buffer.getvalue()):
        with pytest.raises(DPSynthError, match="another version"):
            load_run(content)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environment({"DPSYNTH_HOME": str(tmp_path / "home")})


def paid_run(settings: Settings) -> tuple[Ledger, PaidRun]:
    ledger = installed_ledger(settings)
    ledger.open_account("table", total=Budget.of(1))
    charge = ledger.reserve("table", CONFIG.total, purpose="Synthesize")
    order = StoreOrder(settings=settings, charge=charge.id)
    return ledger, execute_and_store(mixed_table(), mixed_schema(), CONFIG, (), order)


def test_a_paid_run_is_on_record_with_its_file_before_it_is_handed_over(settings: Settings) -> None:
    ledger, made = paid_run(settings)
    account = ledger.account("table")
    assert account is not None
    assert [entry.state for entry in account.entries] == ["committed"]
    (stored,) = account.releases
    assert (stored.charge, stored.mechanism, stored.status) == (account.entries[0].id, "kd_tree", "proven")
    assert (stored.epsilon, stored.delta, made.problem) == ("0.5", "0", "")
    assert release_digest(load_release(stored, settings)) == release_digest(made.result)
    ledger.commit(stored.charge)  # the server settles it too, which changes nothing
    assert ledger.account("table") == account
    ledger.check()


def test_a_file_that_was_changed_or_removed_is_said_plainly(settings: Settings) -> None:
    ledger, _ = paid_run(settings)
    (stored,) = ledger.account("table").releases  # type: ignore[union-attr]
    (file,) = settings.release_store.folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DPSynthError, match="changed or is damaged"):
        load_release(stored, settings)
    file.unlink()
    with pytest.raises(DPSynthError, match="missing"):
        load_release(stored, settings)


def test_what_cannot_be_stored_is_handed_over_with_the_reason(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    settings = Settings.from_environment({"DPSYNTH_HOME": str(tmp_path), "DPSYNTH_RELEASES": str(in_the_way / "x")})
    ledger, made = paid_run(settings)
    assert "cannot be kept" in made.problem
    assert len(made.result.tables[0]) == 300
    account = ledger.account("table")
    assert account is not None
    assert account.releases == ()
    assert account.entries[0].state == "reserved"  # which counts as spent, and the server settles it
