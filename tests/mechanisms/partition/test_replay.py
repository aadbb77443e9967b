"""What recording and replaying rest on; the replays themselves are part of the audit (tests/audit)."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.audit.neighbours import HURTFUL
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay
from dpsynth_core.table.private_table import PrivateTable

CORNER = next(pair for pair in HURTFUL if pair.name == "all in a corner but one")


def test_the_order_of_cells_does_not_show_which_of_them_hold_rows() -> None:
    table = PrivateTable(pd.DataFrame(CORNER.first + 0.6), CORNER.schema)
    for seed in range(3):
        model = KDGrid(bins=8, threshold=1).fit(table, SeededNoise(Budget.of(1), seed=seed))
        assert model.low.tolist() == sorted(model.low.tolist())


def test_the_recorder_itself_keeps_picks_inside_the_draw_they_belong_to() -> None:
    mechanism = KDGrid(bins=8, threshold=1)
    recorded = Recorder(SeededNoise(Budget.of(1), seed=0))
    mechanism.fit(CORNER.tables[0], recorded).sample(25, recorded)
    replay = Replay(recorded)
    mechanism.fit(CORNER.tables[1], replay).sample(25, replay)
    assert replay.finished
    assert replay.excess == 1.0


def test_the_recorder_itself_keeps_what_was_drawn_even_if_the_run_writes_into_it() -> None:
    recorded = Recorder(SeededNoise(Budget.of(1), seed=0))
    drawn = recorded.uniform(3)
    before = drawn.tolist()
    drawn *= 0
    replay = Replay(recorded)
    again = replay.uniform(3)
    assert again.tolist() == before
    again *= 0
    assert Replay(recorded).uniform(3).tolist() == before
