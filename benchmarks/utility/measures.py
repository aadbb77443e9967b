"""What is measured: total variation of small marginals on two grids, and what models learn from the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.utility.tables import BenchmarkTable, Target
from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.features import position_values
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

CELLS = 16
"""Ranges that a number is cut into, on either grid."""
MAX_TRIPLES = 200
"""Triples of columns that are looked at; the same ones for every release of a table."""
MAX_DENSE = 4_000_000
"""Cells of a marginal that are counted in one array."""
MAX_TRAINING_ROWS = 20_000
MAX_LABELS = 20
"""Labels of a column that models see; the others share one indicator."""

Codes = Mapping[str, IntArray]


def equal_grid(original: PrivateTable, table: PrivateTable) -> dict[str, IntArray]:
    """Numbers in equal parts of their declared range; labels as they are."""
    del original
    return {c.name: codec_for(coarse(c, CELLS)).codes(table.positions(c.name)) for c in table.schema}


def quantile_grid(original: PrivateTable, table: PrivateTable) -> dict[str, IntArray]:
    """Numbers in parts that hold equally many of the original's rows; a value that fills a part has it to itself."""
    codes = {}
    for column in table.schema:
        if not column.is_numeric:
            codes[column.name] = codec_for(column).codes(table.positions(column.name))
            continue
        values = position_values(table, column.name)
        cuts = _quantile_cuts(position_values(original, column.name))
        codes[column.name] = np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values, side="right"))
    return codes


def _quantile_cuts(values: FloatArray) -> FloatArray:
    present = values[~np.isnan(values)]
    if not len(present):
        return np.zeros(0)
    cuts, times = np.unique(np.quantile(present, np.arange(1, CELLS) / CELLS, method="lower"), return_counts=True)
    return np.unique(np.concatenate([cuts, np.nextafter(cuts[times > 1], np.inf)]))


GRIDS = {"equal": equal_grid, "quantile": quantile_grid}


def marginal_errors(original: PrivateTable, synthetic: pd.DataFrame) -> dict[str, float]:
    """Mean total variation of all single columns, pairs and (a sample of) triples, on each grid."""
    table = PrivateTable(synthetic, original.schema)
    errors = {}
    for grid, codes in GRIDS.items():
        first, second = codes(original, original), codes(original, table)
        for order, word in enumerate(("one", "two", "three"), start=1):
            sets = list(_column_sets(original.schema.names, order))
            errors[f"{word}_{grid}"] = fmean(_variation(first, second, names) for names in sets) if sets else math.nan
    return errors


def _column_sets(names: tuple[str, ...], order: int) -> Iterator[tuple[str, ...]]:
    sets = list(combinations(names, order))
    if order < 3 or len(sets) <= MAX_TRIPLES:
        return iter(sets)
    chosen = np.random.default_rng(0).choice(len(sets), MAX_TRIPLES, replace=False)
    return (sets[index] for index in sorted(chosen))


def _variation(first: Codes, second: Codes, names: tuple[str, ...]) -> float:
    shape = tuple(1 + max(int(codes[name].max()) for codes in (first, second)) for name in names)
    cells = [np.ravel_multi_index(tuple(codes[name] for name in names), shape) for codes in (first, second)]
    size = math.prod(shape)
    if size > MAX_DENSE:
        _, together = np.unique(np.concatenate(cells), return_inverse=True)
        cells, size = np.split(together, [len(cells[0])]), int(together.max()) + 1
    return float(total_variation(*(np.bincount(cell, minlength=size) for cell in cells)))


def model_scores(table: BenchmarkTable, training: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """ROC AUC on real rows of two models trained on the given rows: the mean over the table's questions."""
    scores: dict[str, list[float]] = {"auc_logistic": [], "auc_boosting": []}
    for target in table.targets:
        for name, score in _scores(target, table.schema, training.head(MAX_TRAINING_ROWS), test).items():
            scores[name].append(score)
    return {name: fmean(values) for name, values in scores.items()}


def _scores(target: Target, schema: Schema, training: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  a second of start-up
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    schema_of_x = target.predictors(schema)
    models = {"auc_logistic": LogisticRegression(max_iter=500), "auc_boosting": HistGradientBoostingClassifier()}
    answers = target.answers(training)
    if answers.nunique() < 2:  # nothing to learn: every row gets the same prediction
        return dict.fromkeys(models, 0.5)
    inputs = [_inputs(PrivateTable(rows, schema_of_x)) for rows in (training, test)]
    scores = {}
    for name, model in models.items():
        fitted = make_pipeline(_preparation(schema_of_x, impute=name == "auc_logistic"), model)
        fitted.fit(inputs[0], answers)
        scores[name] = float(roc_auc_score(target.answers(test), fitted.predict_proba(inputs[1])[:, 1]))
    return scores


def _inputs(table: PrivateTable) -> pd.DataFrame:
    """Numbers as numbers, labels as codes."""
    return pd.DataFrame(
        {
            c.name: position_values(table, c.name) if c.is_numeric else codec_for(c).codes(table.positions(c.name))
            for c in table.schema
        }
    )


def _preparation(schema: Schema, *, impute: bool) -> Any:
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    numbers = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    labels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_LABELS, sparse_output=False)
    return ColumnTransformer(
        [
            ("numbers", numbers if impute else "passthrough", [c.name for c in schema if c.is_numeric]),
            ("labels", labels, [c.name for c in schema if not c.is_numeric]),
        ]
    )
