"""Whatever leaves through an entry point is a function of what was drawn; if it were not, it would be noticed."""

from __future__ import annotations

import pytest

from dpsynth_core.audit.checks import QUICK, failures
from dpsynth_core.audit.leaving import OTHER_ENTRIES, entry_points, leaving_checks, left_otherwise, release_noise
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import RunProgress
from dpsynth_core.runs.selection import noise_source
from tests.audit.published import published

SEED = 20_261_117
BUNDLE = {"synthetic.csv", "synthetic.parquet", "schema.json", "configuration.json", "data_card.md", "croissant.json"}


def test_nothing_that_leaves_depends_on_the_rows() -> None:
    checks = list(leaving_checks(QUICK, SEED, files=published))
    assert {check.subject for check in checks} >= {*OTHER_ENTRIES}
    assert {key for key, kind in MECHANISMS.items() if kind.status != "none"} <= {check.subject for check in checks}
    assert not failures(checks)


@pytest.mark.slow
def test_nor_does_it_for_the_mechanisms_that_take_longest() -> None:
    slow = [entry for entry in entry_points(files=published) if entry.slow]
    assert slow
    for entry in slow:
        assert not list(left_otherwise(entry, entry.shape.far(SEED)))


@pytest.mark.parametrize("name", ["perturbed_histogram", *OTHER_ENTRIES])
def test_something_leaves_whichever_table_is_given(name: str) -> None:
    """A check that compares nothing but the same refusal would pass for ever."""
    entry = next(entry for entry in entry_points(files=published) if entry.name == name)
    pair = entry.shape.far(SEED)
    for frame in (pair.first, pair.second):
        left = entry.leave(frame, pair.schema, RunProgress())
        assert left
        assert "test" in left or {"data_card.md", "croissant.json", "SHA256SUMS"} <= left.keys()
        if name == "perturbed_histogram":
            assert left.keys() >= BUNDLE


def test_release_noise_is_itself_again_afterwards() -> None:
    with release_noise(lambda budget: SeededNoise(budget, 1)):
        assert isinstance(noise_source(None)(Budget.of(1)), SeededNoise)
    assert noise_source(None)(Budget.of(1)).secure
