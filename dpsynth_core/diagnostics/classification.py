"""Would a classifier that learned from the synthetic rows recognise original ones?

The downstream task of Kreačić et al. (2023), Table 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, Verdict, judge
from dpsynth_core.diagnostics.classifiers import CLASSIFIERS, QUICK, SECONDS, LabelledRows, RocAreas, roc_areas
from dpsynth_core.diagnostics.features import features, frequent_labels
from dpsynth_core.errors import ParameterError, check_choice, check_int, check_text
from dpsynth_core.inference.proportions import UPPER_TAIL
from dpsynth_core.mechanisms.numbers_and_labels import is_number, level_count, to_levels
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

LIMITS = 0.03, 0.1
"""Areas lost, beyond chance, up to which a classifier is called close to the original's, and beyond which far off."""
MAX_LABELS = 10
MIN_LABEL_ROWS = 10
"""Original rows that a label needs to take part: at least two of them are held out."""
MIN_SYNTHETIC_ROWS = 10
MAX_TOLD_ROWS = 2_000
"""Rows on which candidates for the label are compared."""
TRAINING_SHARE = 0.4
"""Of the original's rows, twice: two disjoint training parts, which differ as fresh samples do. The rest is tested."""
ORIGINAL, SYNTHETIC = "original", "synthetic"
COORDINATES = 10
"""Behind the times in ``SECONDS``."""
READINGS: dict[Verdict, str] = {
    "excellent": "as good as training on the original, within {within:.2g}, the most that chance explains.",
    "good": "a little worse than training on the original.",
    "fair": "visibly worse than training on the original.",
    "poor": "much worse than training on the original.",
}


@dataclass(frozen=True, kw_only=True)
class ClassificationDiagnostic(Diagnostic):
    """Train on synthetic rows, test on held-out original ones, beside the same classifier trained on the original."""

    key: ClassVar[str] = "classification"
    title: ClassVar[str] = "Classification"
    question: ClassVar[str] = "Would a classifier trained on the synthetic rows work on original ones?"
    method: ClassVar[str] = (
        "A classifier learns to predict one column, the label, from all others: once from synthetic rows and once from "
        "as many original rows, with as many rows of each label where the synthetic table has them. Both are tested "
        "on original rows that were held out. The score is the area under the ROC curve (AUC) that is lost: 0.5 is a "
        "guess, 1 is perfect; with more than two labels it is the mean over the labels of one against the rest. It is "
        "taken from the classifier's scores; the area from the labels it predicts is in the table. Labels keep their "
        "shares in every split, and rare labels weigh as much as frequent ones. In every split two disjoint training "
        "parts of the original are learned from: how much the two differ says how much a fresh sample of the original "
        "would lose or gain by chance, adjusted for the number of classifiers. Intervals over the splits allow for "
        "the rows that splits share (Nadeau & Bengio 2003). The release was made from all rows, so the synthetic table "
        "has seen the held-out ones too, though only through the mechanism; the original's classifier has not. "
        "XGBoost, the twelfth of the paper's classifiers, is represented by gradient boosting on histograms."
    )
    scale: ClassVar[Scale] = Scale(
        name="AUC lost", low=-1.0, good="no more than a fresh sample of the original would lose by chance"
    )

    label: str | None = None
    """The column to be predicted. None: the one that the others tell best, so that there is something to lose."""
    classifiers: tuple[str, ...] = QUICK
    """Names in ``CLASSIFIERS``; six quick ones unless all twelve are asked for."""
    splits: int = 5
    """Times that the original is divided anew."""
    max_rows: int = 1_000
    """Rows of a training or test part, at most; rows of the most frequent labels are left out first."""

    def __post_init__(self) -> None:
        check_text("label", self.label, optional=True)
        check_int("splits", self.splits, 2, 1_000)
        check_int("max_rows", self.max_rows, 20, 10**7)
        if not self.classifiers:
            raise ParameterError("classifiers", [], allowed=f"one or more of {', '.join(CLASSIFIERS)}")
        for name in self.classifiers:
            check_choice("classifiers", name, CLASSIFIERS)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        progress("Choosing the label", 0.0)
        task = _LabelTask.of(pair, self.label)
        if isinstance(task, str):
            return self.unable(task)
        areas: dict[str, list[_SplitAreas]] = {name: [] for name in self.classifiers}
        fits = self.splits * len(self.classifiers)
        for split in range(self.splits):
            parts = task.split(self.max_rows, rng)
            for step, name in enumerate(self.classifiers):
                progress("Training classifiers", (split * len(self.classifiers) + step) / fits)
                areas[name].append(parts.areas(name, task.labels, seed=int(rng.integers(2**31))))
        ratio = len(parts.test.y) / len(parts.first.y)
        measures = _measures(areas, ratio, 1 / len(parts.test.y))
        return self.result(
            measures, notes=self._notes(task, parts), tables={"classifiers": _table(task.name, areas, ratio)}
        )

    def seconds(self, schema: Schema, n: int) -> float:
        """Running time to expect, roughly; from public facts."""
        rows = min(self.max_rows, max(20, int(TRAINING_SHARE * n))) / 1_000
        width = sum(1 if column.is_numeric else level_count(column) for column in schema) / COORDINATES
        one = sum(SECONDS[name] * (0.3 + 0.7 * rows * max(1.0, width)) for name in self.classifiers)
        return 1.0 + 3 * self.splits * one

    def _notes(self, task: _LabelTask, parts: _Parts) -> list[str]:
        notes = [
            f"The label is {task.name!r}. The original was divided {self.splits} times; each classifier learns "
            f"from {len(parts.first.y):,} rows and is tested on {len(parts.test.y):,} original rows that were held out."
        ]
        if len(np.unique(task.synthetic.y)) < 2:
            notes.append("All synthetic rows have the same label, so nothing can be learned from them: AUC 0.5.")
        if task.dropped:
            notes.append(
                f"Rows whose label is missing, or one of {task.rare} label(s) with fewer than {MIN_LABEL_ROWS} "
                "original rows, are left out."
            )
        return notes


def can_be_label(column: Column) -> bool:
    """Whether a column has a few labels, or is a number with a few values."""
    return not is_number(column) and 2 <= level_count(column) - column.nullable <= MAX_LABELS


def why_not(column: Column) -> str:
    """Why a column cannot be a label, in words."""
    if is_number(column):
        return (
            f"{column.name!r} is a number with many values, which a classifier cannot predict. See the regression "
            "instead, or choose a column with labels."
        )
    return (
        f"{column.name!r} has {level_count(column) - column.nullable:,} label(s); a classifier needs two to "
        f"{MAX_LABELS}. Choose another column."
    )


@dataclass(frozen=True, kw_only=True)
class _SplitAreas:
    """What one classifier reached in one split."""

    first: RocAreas
    second: RocAreas
    """After training on either of two disjoint parts of the original."""
    synthetic: RocAreas


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """One division of the original, and synthetic rows to compare with."""

    first: LabelledRows
    second: LabelledRows
    synthetic: LabelledRows
    test: LabelledRows

    def areas(self, name: str, labels: int, seed: int) -> _SplitAreas:
        trained = (roc_areas(name, rows, self.test, labels, seed) for rows in (self.first, self.second, self.synthetic))
        first, second, synthetic = trained
        return _SplitAreas(first=first, second=second, synthetic=synthetic)


@dataclass(frozen=True, kw_only=True)
class _LabelTask:
    """The label and what it is to be predicted from, in both tables."""

    name: str
    labels: int
    original: LabelledRows
    synthetic: LabelledRows
    dropped: bool
    """Whether original rows have no label, or one that is too rare."""
    rare: int

    @classmethod
    def of(cls, pair: TablePair, label: str | None) -> _LabelTask | str:
        """The task, or why there is none."""
        schema = pair.original.schema
        if label is not None and label not in schema.names:
            raise ParameterError("label", label, allowed=", ".join(schema.names))
        if label is not None and not can_be_label(schema[label]):
            return why_not(schema[label])
        if len(schema.columns) < 2:
            return "There is only one column, so there is nothing to predict a label from."
        candidates = [c for c in schema if can_be_label(c)] if label is None else [schema[label]]
        common = {c.name: _common_labels(pair.original, c) for c in candidates}
        usable = [c for c in candidates if len(common[c.name]) >= 2]
        if not usable:
            which = "No column" if label is None else f"{label!r} does not have"
            has = " has" if label is None else ""
            return (
                f"{which}{has} two to {MAX_LABELS} labels with at least {MIN_LABEL_ROWS} original rows each. With one "
                "label there is nothing to tell apart, and the area under the ROC curve is not defined."
            )
        column = (
            max(usable, key=lambda each: _told(pair.original, each, common[each.name])) if label is None else usable[0]
        )
        kept = common[column.name]
        others = [name for name in schema.names if name != column.name]
        frequent = frequent_labels(pair.original.select(others))
        tables = [_labelled(table, column, others, kept, frequent) for table in (pair.original, pair.synthetic)]
        if len(tables[1].y) < MIN_SYNTHETIC_ROWS:
            return f"Fewer than {MIN_SYNTHETIC_ROWS} synthetic rows have one of the labels: too few to learn from."
        return cls(
            name=column.name,
            labels=len(kept),
            original=tables[0],
            synthetic=tables[1],
            dropped=len(tables[0].y) < pair.original.n,
            rare=level_count(column) - column.nullable - len(kept),
        )

    def split(self, max_rows: int, rng: np.random.Generator) -> _Parts:
        """Two disjoint training parts and a test part of the original, and synthetic rows; labels keep their shares."""
        parts: list[list[IntArray]] = [[], [], []]
        for label in range(self.labels):
            rows = rng.permutation(np.flatnonzero(self.original.y == label))
            cut = int(TRAINING_SHARE * len(rows))
            for part, some in zip(parts, (rows[:cut], rows[cut : 2 * cut], rows[2 * cut :]), strict=True):
                part.append(some)
        size = min(max_rows, len(self.synthetic.y))
        first, second, test = (
            np.concatenate(_fewer(part, limit)) for part, limit in zip(parts, (size, size, max_rows), strict=True)
        )
        wanted = np.bincount(self.original.y[first], minlength=self.labels)
        synthetic = _like(self.synthetic.y, wanted, rng)
        take = self.original.take
        return _Parts(first=take(first), second=take(second), synthetic=self.synthetic.take(synthetic), test=take(test))


def _common_labels(table: PrivateTable, column: Column) -> IntArray:
    """Labels that enough original rows have."""
    codes, present = _codes(table, column)
    counts = np.bincount(codes[present], minlength=1)
    return np.flatnonzero(counts >= MIN_LABEL_ROWS)


def _codes(table: PrivateTable, column: Column) -> tuple[IntArray, IntArray]:
    """Every row's label, and the rows that have one."""
    positions = table.positions(column.name)
    present = np.arange(table.n) if positions.missing is None else np.flatnonzero(~positions.missing)
    return to_levels(column, positions), present


def _labelled(
    table: PrivateTable, column: Column, others: Sequence[str], kept: IntArray, frequent: dict[str, list[int]]
) -> LabelledRows:
    codes, present = _codes(table, column)
    rows = present[np.isin(codes[present], kept)]
    X = features(table.select(others), frequent).values
    return LabelledRows(X=X[rows], y=np.searchsorted(kept, codes[rows]))


def _told(table: PrivateTable, column: Column, kept: IntArray) -> float:
    """How much of a label the other columns tell: the share that a linear regression of its indicators explains.

    Adjusted for the number of coordinates. Reads the original alone, so every release of it has the same label.
    """
    others = [name for name in table.schema.names if name != column.name]
    rows = _labelled(table, column, others, kept, frequent_labels(table.select(others)))
    some = rows.take(np.unique(np.linspace(0, len(rows.y) - 1, MAX_TOLD_ROWS).astype(np.int64)))
    X = some.X - some.X.mean(axis=0)
    Y = (some.y[:, None] == np.unique(some.y)) * 1.0
    Y -= Y.mean(axis=0)
    fitted, _, rank, _ = np.linalg.lstsq(X, Y)
    left, freedom = float(np.square(Y - X @ fitted).sum()), len(Y) - int(rank) - 1
    variation = float(np.square(Y).sum())
    return 1 - left / freedom * (len(Y) - 1) / variation if freedom > 0 and variation > 0 else 0.0


def _fewer(rows: Sequence[IntArray], limit: int) -> list[IntArray]:
    """At most so many rows in all: the labels with most rows lose theirs first."""
    sizes = np.array([len(some) for some in rows])
    quota, left, open_labels = np.zeros_like(sizes), limit, len(sizes)
    for label in np.argsort(sizes, kind="stable"):
        quota[label] = min(sizes[label], -(-left // open_labels))
        left, open_labels = max(0, left - quota[label]), open_labels - 1
    return [some[:most] for some, most in zip(rows, quota, strict=True)]


def _like(y: IntArray, wanted: IntArray, rng: np.random.Generator) -> IntArray:
    """Rows with so many of each label; where a label has too few, others take their places."""
    order = rng.permutation(len(y))
    rank = np.zeros(len(y), dtype=np.int64)
    for label in range(len(wanted)):
        own = order[y[order] == label]
        rank[own] = np.where(np.arange(len(own)) < wanted[label], 0, 1)
    return order[np.argsort(rank[order], kind="stable")][: int(wanted.sum())]


def _half_width(values: FloatArray, ratio: float) -> float:
    """Half of the 95% interval of a mean over splits that share rows (Nadeau & Bengio 2003, Eq. 8)."""
    splits = len(values)
    return float(stdtrit(splits - 1, UPPER_TAIL)) * math.sqrt((1 / splits + ratio) * float(np.var(values, ddof=1)))


def _measures(areas: dict[str, list[_SplitAreas]], ratio: float, step: float) -> list[Measure]:
    chance = {
        name: np.array([each.first.scores - each.second.scores for each in found]) for name, found in areas.items()
    }
    pooled = float(np.mean([np.mean(np.square(values)) for values in chance.values()]))
    splits = len(next(iter(areas.values())))
    # One fresh sample in forty exceeds this with any of the classifiers (Sidak).
    usual = float(stdtrit(2 * splits, UPPER_TAIL ** (1 / len(areas))))
    measures = []
    for name, found in areas.items():
        original = np.array([(each.first.scores + each.second.scores) / 2 for each in found])
        synthetic = np.array([each.synthetic.scores for each in found])
        lost = original - synthetic
        # The two parts differ by a variance of 2v; the mean of both less a third, fresh sample by 3v/2. Splits share
        # rows, so that their mean is not relied on to vary any less. The other classifiers steady the estimate.
        spread = math.sqrt(0.75 * (float(np.mean(np.square(chance[name]))) + pooled) / 2)
        value, half, high = float(lost.mean()), _half_width(lost, ratio), max(usual * spread, step)
        verdict = judge(value, high, value, LIMITS)
        reading = (
            f"AUC {synthetic.mean():.2f} after training on synthetic rows, {original.mean():.2f} on original ones: "
            f"{READINGS[verdict].format(within=high)}"
        )
        if original.mean() - 0.5 <= high:
            reading += " Here the original's rows hardly tell the label either, so there is little to lose."
        measures.append(
            Measure(
                name=name,
                value=value,
                low=max(-1.0, value - half),
                high=min(1.0, value + half),
                reference=0.0,
                reference_high=high,
                verdict=verdict,
                reading=reading,
            )
        )
    return measures


def _table(label: str, areas: dict[str, list[_SplitAreas]], ratio: float) -> pd.DataFrame:
    """Every classifier's areas after training on either table, with their 95% intervals."""
    rows = []
    for name, found in areas.items():
        for source in (ORIGINAL, SYNTHETIC):
            row: dict[str, object] = {"label": label, "classifier": name, "trained on": source}
            for kind in ("scores", "labels"):
                if source == SYNTHETIC:
                    values = np.array([getattr(each.synthetic, kind) for each in found])
                else:
                    values = np.array([(getattr(e.first, kind) + getattr(e.second, kind)) / 2 for e in found])
                half = _half_width(values, ratio)
                row[f"AUC from {kind}"] = float(values.mean())
                row[f"AUC from {kind}: from"] = max(0.0, float(values.mean()) - half)
                row[f"AUC from {kind}: to"] = min(1.0, float(values.mean()) + half)
            rows.append(row)
    return pd.DataFrame(rows)
