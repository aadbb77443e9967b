from __future__ import annotations

import dataclasses
import json

import pytest

import dpsynth_core as dp
from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.runs.configuration import RunConfig, execute
from tests.tables.stepping import Stepping


class Recorder(RunProgress):
    """Progress that only writes down what it hears."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float]] = []
        self.heard: list[object] = []

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        self.stages.append((stage, done))
        self.heard += [(point.series, point.x) for point in points] or [done]

    def drawn(self) -> None:
        self.heard.append("drawn")

    def restart(self) -> None:
        self.heard.append("restart")


@pytest.mark.parametrize("key", MECHANISMS)
def test_an_order_survives_json(key: str) -> None:
    example = dp.EXAMPLES["mixture"]
    order = RunConfig(mechanism=MECHANISMS[key].suggest(example.schema, 1_000, 1), epsilon="0.1", copies=3)
    assert RunConfig.from_json(order.to_json()) == order


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"mechanism": "magic"}',
        '{"mechanism": "kd_tree", "parameters": {"depth": 3}}',
        '{"mechanism": "kd_tree", "parameters": {"reason": "x"}}',
        '{"mechanism": "kd_tree", "parameters": []}',
        '{"mechanism": "kd_tree", "parameters": {"split_share": 2}}',
        '{"mechanism": "kd_tree", "epsilon": "much"}',
        '{"mechanism": "kd_tree", "copies": 0}',
        '{"mechanism": "kd_tree", "copies": "two"}',
        '{"mechanism": "kd_tree", "seed": 3}',
    ],
)
def test_a_broken_configuration_is_refused_in_words(text: str) -> None:
    with pytest.raises(DPSynthError):
        RunConfig.from_json(text)


def test_several_tables_cost_the_sum() -> None:
    example = dp.EXAMPLES["two_groups_signal"]
    order = RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="0.1", copies=3)
    outcome = execute(example.load(), example.schema, order)
    assert order.total == Budget.of("0.3")
    assert outcome.guarantee.budget == Budget.of("0.3")
    assert outcome.guarantee.status == "proven"
    assert [len(table) for table in outcome.tables] == [500, 500, 500]
    assert not outcome.tables[0].equals(outcome.tables[1])
    assert outcome.leaves is not None


@pytest.mark.parametrize("key", ["kd_tree", "smoothed_histogram", "private_pgm", "noisy_bayes"])
def test_the_time_to_expect_counts_the_rows_and_tables_that_are_made(key: str) -> None:
    schema, n = dp.EXAMPLES["mixture"].schema, 20_000
    suggested = MECHANISMS[key].suggest(schema, n, "1")

    def seconds(rows: int | None, copies: int = 1) -> float:
        mechanism = dataclasses.replace(suggested, rows=rows)
        return RunConfig(mechanism=mechanism, epsilon="1", copies=copies).seconds(schema, n)

    cells = 5_000_000 * len(schema.columns)
    assert seconds(5_000_000, 3) - seconds(1, 3) > 3 * cells * 1e-8, "a cell takes more than ten nanoseconds"
    plan = suggested.plan(schema, n, Budget.of("1"))
    assert seconds(suggested.rows) > plan.seconds, "the estimate of its error takes time, too"


def test_a_worker_says_that_it_draws_before_it_draws_and_reports_forwards() -> None:
    example = dp.EXAMPLES["two_groups_signal"]
    recorder = Recorder()
    execute(
        example.load(), example.schema, RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="1"), progress=recorder
    )
    assert recorder.heard[0] == 0.0
    assert "drawn" in recorder.heard
    done = [done for _, done in recorder.stages]
    assert done == sorted(done)


def test_seeded_orders_repeat_and_are_not_private() -> None:
    example = dp.EXAMPLES["two_groups_signal"]
    order = RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="1", copies=2, seed=5)
    first, second = (execute(example.load(), example.schema, order, progress=Recorder()) for _ in range(2))
    assert first.tables[1].equals(second.tables[1])
    assert not first.tables[0].equals(first.tables[1])
    assert first.guarantee.status == "none"
    assert "seed" not in json.loads(order.to_json())


def test_figures_to_watch_are_passed_on_and_begin_afresh_with_every_table() -> None:
    example = dp.EXAMPLES["two_groups_signal"]
    recorder = Recorder()
    order = RunConfig(mechanism=Stepping(steps=3, pause=0), epsilon="1", copies=2)
    execute(example.load(), example.schema, order, progress=recorder)
    line = [("distance", 1.0), ("distance", 2.0), ("distance", 3.0)]
    assert [item for item in recorder.heard if isinstance(item, tuple) or item == "restart"] == [
        *line,
        "restart",
        *line,
    ]


def test_configurations_saved_under_former_names_still_load() -> None:
    former = {"sampler": "lists", "trees": "cells", "bound": "tight", "prior": "bounds", "joint": 8, "cp": 0.01}
    loaded = RunConfig.from_json(json.dumps({"mechanism": "pmse", "parameters": former, "epsilon": "1"}))
    assert loaded.mechanism == MECHANISMS["pmse"](sampler="lists", criterion="cells")  # type: ignore[call-arg]
    bayes = RunConfig.from_json(json.dumps({"mechanism": "noisy_bayes", "parameters": {"ties_share": 0.25}}))
    assert bayes.mechanism.relations_share == 0.25  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="withdrawn"):
        RunConfig.from_json(json.dumps({"mechanism": "pmse", "parameters": {"bound": "paper"}}))


def test_what_belongs_to_the_class_is_no_parameter() -> None:
    with pytest.raises(ParameterError, match="title"):
        RunConfig.from_json(json.dumps({"mechanism": "kd_tree", "parameters": {"title": 1}}))
