"""A table that looks as if it could be real, from nothing but a schema: for previews that cost nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.schema import Schema

MISSING_SHARE = 0.05
FINE_CELLS = 1024
"""Parts of a range at which a number's shape is drawn."""


def simulate_table(schema: Schema, rows: int, seed: int) -> pd.DataFrame:
    """Two clusters of rows, labels of unequal frequency, some missing values where allowed."""
    rng = np.random.default_rng(seed)
    cluster = rng.random(rows) < 0.4
    columns = {}
    for column in schema:
        codec = codec_for(column)
        codes = _levels(column.levels, cluster, rng)
        missing = rng.random(rows) < MISSING_SHARE
        if column.nullable:
            codes = np.where(missing, column.levels, codes)
        columns[column.name] = codec.decode(codes, rng.random)
    return pd.DataFrame(columns)


def _levels(levels: int, cluster: BoolArray, rng: np.random.Generator) -> IntArray:
    shares = np.where(cluster, rng.beta(8, 4, len(cluster)), rng.beta(3, 9, len(cluster)))
    return np.minimum((shares * levels).astype(np.int64), levels - 1)


def simulate_related(schema: Schema, rows: int, *, relation: float, seed: int) -> pd.DataFrame:
    """Rows whose columns depend on two hidden numbers, as strongly as asked for, with shapes that real columns have.

    Labels have unequal shares. A number is a hump somewhere in its declared range, a pile at one end with a long tail,
    or a few preferred values among others. With a ``relation`` of 0 columns are independent; with 1 they follow from
    the two hidden numbers (a Gaussian copula).

    Example:
        >>> schema = Schema.from_dict({"columns": [{"name": "smoker", "kind": "boolean"}]})
        >>> simulate_related(schema, 3, relation=0.5, seed=0).shape
        (3, 1)
    """
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 2))
    columns = {}
    for column in schema:
        fine = replace(column, bins=FINE_CELLS) if column.is_numeric and column.levels < FINE_CELLS else column
        shares = (_number_shares if column.is_numeric else _label_shares)(fine.levels, rng)
        angle = rng.uniform(0, 2 * np.pi)
        driver = np.sqrt(relation) * (hidden @ (np.cos(angle), np.sin(angle)))
        driver += np.sqrt(1 - relation) * rng.normal(size=rows)
        codes = np.searchsorted(np.cumsum(shares)[:-1], ndtr(driver), side="right").astype(np.int64)
        if column.nullable:
            codes = np.where(rng.random(rows) < MISSING_SHARE, fine.levels, codes)
        columns[column.name] = codec_for(fine).decode(codes, rng.random)
    return pd.DataFrame(columns)


def _label_shares(levels: int, rng: np.random.Generator) -> FloatArray:
    """Shares that fall with the rank, some columns steeply and some hardly."""
    shares = np.arange(1, levels + 1) ** -rng.uniform(0.2, 1.6)
    return np.asarray(rng.permutation(shares / shares.sum()))


def _number_shares(levels: int, rng: np.random.Generator) -> FloatArray:
    place = (np.arange(levels) + 0.5) / levels
    hump = np.exp(-0.5 * ((place - rng.uniform(0.15, 0.7)) / rng.uniform(0.05, 0.2)) ** 2)
    kind = rng.integers(3)
    if kind == 1:  # a pile at the lower end, then a tail
        hump = np.exp(-place / rng.uniform(0.03, 0.2))
        hump[0] += rng.uniform(0.2, 2.0) * hump.sum()
    elif kind == 2:  # preferred values
        preferred = rng.choice(levels, min(levels, 6), replace=False)
        hump[preferred] += hump[preferred] * rng.uniform(10, 100)
    return np.asarray(hump / hump.sum())
