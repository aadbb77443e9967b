"""A table that looks as if it could be real, from nothing but a schema: for previews that cost nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.arrays import BoolArray, IntArray
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.schema import Schema

MISSING_SHARE = 0.05


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
