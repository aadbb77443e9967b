"""Simulated tables with a known structure, each drawn from a seed of its own. Facts are declared, not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Simulated: TypeAlias = tuple[pd.DataFrame, list[dict[str, Any]]]
"""Rows, and the public facts of each column."""
Numbers: TypeAlias = NDArray[np.float64]


def dense(rows: int = 62_500) -> Simulated:
    """15 columns that all depend on the same two hidden numbers: every pair is related, no tree explains it."""
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(rows, 2))
    table = _Columns()
    for index in range(14):
        angle = np.pi * index / 14
        value = hidden @ (np.cos(angle), np.sin(angle)) + rng.normal(0, 0.6, rows)
        if index % 2:
            table.labels(f"label_{index}", np.digitize(value, np.linspace(-1.5, 1.5, 2 + index // 2)), 3 + index // 2)
        else:
            table.number(f"number_{index}", np.clip(value, -5, 5), -5, 5)
    table.answer("outcome", 2.5 * hidden[:, 0] * np.where(hidden[:, 1] > 0, 1.0, 0.2) - 0.5, rng)
    return table.parts()


def high_order(rows: int = 20_000) -> Simulated:
    """10 columns: two parities of three and products of two, so that pairs tell little and triples nearly all."""
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, (rows, 4))
    thirds = rng.integers(0, 3, (rows, 2))
    table = _Columns()
    for index, column in enumerate(bits.T):
        table.labels(f"bit_{index}", column, 2)
    for index, column in enumerate(thirds.T):
        table.labels(f"third_{index}", column, 3)
    table.labels("sum_of_thirds", (thirds.sum(axis=1) + _rarely(rng, rows, 0.1)) % 3, 3)
    number = rng.normal(size=rows)
    table.number("number", np.clip(number, -4, 4), -4, 4)
    parity = (bits[:, 0] + bits[:, 1] + _rarely(rng, rows, 0.1)) % 2
    table.labels("parity", parity, 2, names=("no", "yes"))
    table.answer("outcome", 2.0 * number * (2 * bits[:, 2] - 1) + bits[:, 3], rng)
    return table.parts()


def spiky(rows: int = 30_000) -> Simulated:
    """10 columns: preferred values, many zeros, long tails and missing values, with moderate relations."""
    rng = np.random.default_rng(3)
    table = _Columns()
    age = np.clip(rng.gamma(9, 5.5, rows), 18, 100).round()
    table.number("age", age, 0, 120, kind="integer")
    pressure = 100 + 0.4 * age + rng.normal(0, 14, rows)
    rounded = np.where(rng.random(rows) < 0.7, 10 * np.round(pressure / 10), np.round(pressure))
    pressure = np.where((np.abs(pressure - 120) < 12) & (rng.random(rows) < 0.8), 120, rounded)
    table.number("pressure", np.clip(pressure, 0, 300), 0, 300, kind="integer")
    smokes = rng.random(rows) < np.where(age < 60, 0.4, 0.25)
    cigarettes = np.where(smokes, rng.choice([5, 10, 15, 20, 30, 40, 3, 7, 25], rows, p=_preferred(9)), 0)
    table.number("cigarettes", cigarettes, 0, 100, kind="integer")
    hours = np.where(rng.random(rows) < 0.45, 40, np.clip(rng.normal(36, 14, rows), 0, 99).round())
    hours = np.where(age > 67, np.where(rng.random(rows) < 0.85, 0, hours), hours)
    table.number("hours", hours, 0, 168, kind="integer")
    income = np.exp(rng.normal(10.2, 0.8, rows)) * (hours / 40 + 0.3)
    income = np.where(rng.random(rows) < 0.5, 1000 * np.round(income / 1000), np.round(income))
    income = np.where(rng.random(rows) < 0.12, 0, income)
    missing = rng.random(rows) < np.where(age < 25, 0.25, 0.06)
    table.number("income", np.where(missing, np.nan, np.clip(income, 0, 1e6)), 0, 1e6, kind="integer", nullable=True)
    gain = np.where(rng.random(rows) < 0.92, 0.0, rng.exponential(9_000, rows))
    table.number("gain", np.clip(gain, 0, 100_000), 0, 100_000)
    table.labels("region", rng.choice(8, rows, p=_preferred(8)), 8)
    table.labels("work", np.digitize(hours, [1, 30, 41]), 4)
    glucose = np.clip(rng.gamma(40, 2.1, rows) + 30 * (rng.random(rows) < 0.08), 40, 400).round()
    table.number("glucose", np.where(rng.random(rows) < 0.1, np.nan, glucose), 30, 400, kind="integer", nullable=True)
    table.answer("disease", 0.06 * (age - 55) + 0.03 * (pressure - 125) + 0.04 * cigarettes - 0.6, rng)
    return table.parts()


def survey(rows: int = 6_250) -> Simulated:
    """16 coded columns in a tree: each depends on one earlier column."""
    rng = np.random.default_rng(4)
    table, codes, sizes = _Columns(), [rng.choice(5, rows, p=_preferred(5))], [5]
    table.labels("item_0", codes[0], 5)
    for index in range(1, 15):
        parent, size = (index - 1) // 2, 2 + (3 * index) % 7
        given = rng.dirichlet(np.full(size, 0.5), sizes[parent])
        drawn = (rng.random(rows)[:, None] > np.cumsum(given, axis=1)[codes[parent]]).sum(axis=1)
        codes.append(np.minimum(drawn, size - 1))
        sizes.append(size)
        table.labels(f"item_{index}", codes[-1], size)
    table.answer("outcome", 1.5 * (codes[1] % 2) - 1.2 * (codes[2] > 1) + 0.8 * (codes[0] == 0), rng)
    return table.parts()


def small(rows: int = 1_250) -> Simulated:
    """7 mixed columns of few rows: noise matters more than structure."""
    rng = np.random.default_rng(5)
    table, group = _Columns(), rng.random(rows) < 0.35
    table.labels("group", group.astype(np.int64), 2)
    table.number("score", np.clip(rng.normal(50 + 12 * group, 12), 0, 100), 0, 100)
    table.number("visits", np.clip(rng.poisson(np.where(group, 6, 2)), 0, 40), 0, 40, kind="integer")
    table.labels("stage", np.digitize(rng.normal(group, 1.0), [-0.5, 0.5, 1.5]), 4)
    table.number("age", np.clip(rng.normal(55, 14, rows), 18, 95).round(), 18, 95, kind="integer")
    table.labels("centre", rng.choice(6, rows, p=_preferred(6)), 6)
    table.answer("outcome", 1.6 * group - 0.9 + rng.normal(0, 0.5, rows), rng)
    return table.parts()


class _Columns:
    """Columns with their declared facts, one after the other."""

    def __init__(self) -> None:
        self._columns: dict[str, pd.Series[Any]] = {}
        self._facts: list[dict[str, Any]] = []

    def number(self, name: str, values: Any, lower: float, upper: float, **more: Any) -> None:
        self._columns[name] = pd.Series(np.asarray(values, dtype=np.float64))
        facts = {"name": name, "kind": "continuous", "lower": lower, "upper": upper, "bins": 16, "public": True}
        self._facts.append({**facts, **more})

    def labels(self, name: str, codes: Any, size: int, names: Sequence[str] | None = None) -> None:
        labels = list(names or (f"c{code}" for code in range(size)))
        self._columns[name] = pd.Series(np.array(labels)[codes], dtype="str")
        self._facts.append({"name": name, "kind": "categorical", "categories": labels, "public": True})

    def answer(self, name: str, logit: Numbers, rng: np.random.Generator) -> None:
        """A yes or a no with these log odds of yes."""
        yes = rng.random(len(logit)) < 1 / (1 + np.exp(-logit))
        self.labels(name, yes.astype(np.int64), 2, names=("no", "yes"))

    def parts(self) -> Simulated:
        return pd.DataFrame(self._columns), self._facts


def _preferred(size: int) -> Numbers:
    """Shares that fall as one over the rank."""
    shares = 1 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())


def _rarely(rng: np.random.Generator, rows: int, share: float) -> NDArray[np.int64]:
    return (rng.random(rows) < share).astype(np.int64)
