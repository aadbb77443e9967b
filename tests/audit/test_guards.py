"""A source refuses what was not paid for, prices hold by another road, and neither check can be talked round."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_core.audit import guards
from dpsynth_core.audit.checks import QUICK, failures
from dpsynth_core.audit.guards import guard_checks, price_checks
from dpsynth_core.audit.prices import underpriced, underpriced_together
from dpsynth_core.audit.replay import replay_checks
from dpsynth_core.audit.subject import subject_of
from dpsynth_core.mechanisms.kd_tree import KDTree
from dpsynth_core.mechanisms.kd_tree.growth import Boxes
from dpsynth_core.mechanisms.kd_tree.split_rules import PrivTreeRule
from dpsynth_core.privacy import accounting
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Decisions

SEED = 20_261_117


def test_sources_refuse_and_prices_hold() -> None:
    assert not failures([*guard_checks(), *guard_checks(SecureNoise), *price_checks()])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("affordable_cost", lambda right: lambda *given: right(*given) * 1.05),
        ("sampled_delta", lambda right: lambda *given: right(*given) * 0.9),
    ],
)
def test_an_account_that_allows_a_little_too_much_is_noticed(
    name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, name, wrong(getattr(accounting, name)))  # type: ignore[operator]
    assert failures(price_checks())


def _decisions(*levels: dict[int, int]) -> list[Decisions]:
    noise = SeededNoise(Budget.of(1), 1)
    rule = PrivTreeRule.open(noise, epsilon=Budget.of(1).epsilon, threshold=0)
    return [
        Decisions(
            keys=np.array(list(level)),
            values=np.array(list(level.values())),
            zeros=0,
            threshold=rule.bias + 1,
            pick=lambda _: np.zeros(0, dtype=np.int64),
            scale=rule.scale,
            charge=rule.charge,
        )
        for level in levels
    ]


def test_decisions_pay_for_their_depth() -> None:
    bias = _decisions({0: 0})[0].threshold - 1
    assert not any(underpriced(call) for call in _decisions({0: 9, 1: 0}))
    assert not list(underpriced_together(_decisions({0: 3 * bias, 1: 2}, {0: 2 * bias, 1: 0, 2: 0}, {0: bias, 3: 0})))
    assert list(underpriced_together(_decisions({0: 3 * bias}, {1: 3 * bias})))
    assert list(underpriced_together(_decisions({1: 3 * bias}, {}, {5: 2 * bias + 1})))
    assert underpriced(_decisions({0: -1})[0])


def test_a_tree_without_the_floor_under_its_counts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrivTreeRule.decide

    def no_floor(self: PrivTreeRule, boxes: Boxes, **given: object) -> object:
        monkeypatch.setattr(np, "maximum", lambda first, _: first)
        try:
            return right(self, boxes, **given)  # type: ignore[arg-type]
        finally:
            monkeypatch.undo()
            monkeypatch.setattr(PrivTreeRule, "decide", no_floor)

    monkeypatch.setattr(PrivTreeRule, "decide", no_floor)
    assert failures(replay_checks(subject_of(KDTree), QUICK, SEED))
