"""The pMSE mechanism as Snoke & Slavković (2018) publish it, beside what is proven or works better.

Greedy trees with rpart's rules score the parameters, one row is said to move a score by 1/n at most, and a Metropolis
walk draws them from exp(-eps u / (2 Delta u)) times the prior N(0, 100000) on every mean, standard deviation and
regression coefficient, in the units of the data. Nothing of that is proven: docs/proofs.md, section 12, and the lesson
on one row and a decision tree say why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpsynth_core.arrays import BoolArray, FloatArray
from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.pmse.metropolis import ChainProgress, Chains, walk
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions, codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import MAX_DEPTH, cart_pmse

PRIOR_VARIANCE = 100_000.0
"""Of the normal prior on every parameter, around zero: section 6."""
CP = 0.01
"""Share of misclassified rows that a split must save (rpart's cp, at its default)."""
FLAT_TAIL = 0.2
"""A walk whose score is above this draws tables that hardly overlap with the original one: it has left for the prior's
flat tail, where the density is that of the prior. The largest pMSE is 0.25."""
FIRST_RATE = 100.0
"""Walks begin where a pMSE of 1/100 costs one unit of log density and cool down to the real rate while they warm up. At
the real rate, a walk that begins far off stays on a ledge of the greedy tree's score."""
STEEPEST = 4.0
"""While they do, a slope takes a column across its declared width at most so many times."""
LABEL = "means, deviations and coefficients"
SECONDS_PER_VALUE = 2e-7
"""Of one value of one table in one score: sorting it and growing the tree to any depth."""
ExpectedPMSE: TypeAlias = Callable[[FloatArray], FloatArray]
"""u(X, theta) of each line of parameters."""
WalkProgress: TypeAlias = Callable[[int, ChainProgress], None]
"""Takes the number of the attempt and how its walks are doing."""


@dataclass(frozen=True, kw_only=True)
class RegressionChains:
    """Normal columns, each a linear regression on those before it: g(theta) of section 5, once for each table."""

    columns: tuple[Column, ...]
    thetas: FloatArray
    """For each table a line: of each column intercept, coefficients of the earlier ones, standard deviation."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, an equal share from each table."""
        shares = np.diff(np.linspace(0, rows, len(self.thetas) + 1).astype(np.int64))
        tables = [self._table(theta, int(size), noise) for theta, size in zip(self.thetas, shares, strict=True) if size]
        return pd.concat(tables, ignore_index=True)

    def samples(self, rows: int, noise: Noise) -> list[pd.DataFrame]:
        """A table of that many rows from each draw."""
        return [self._table(theta, rows, noise) for theta in self.thetas]

    def _table(self, theta: FloatArray, rows: int, noise: Noise) -> pd.DataFrame:
        """A normal variable has no bounds; what lies beyond the declared ones is moved to them."""
        made = normal_rows(theta, standard_normal(noise, (len(self.columns), rows)))
        lines = zip(self.columns, made, strict=True)
        return pd.DataFrame({column.name: codec_for(column).restore(_placed(column, line)) for column, line in lines})


@dataclass(frozen=True, kw_only=True)
class WalkEnds:
    """Where walks end and how well each end scores. As private as the rows until they are checked and paid for."""

    chains: Chains
    scores: FloatArray
    """u(X, theta) at the end of every walk."""

    def check(self) -> None:
        """Refuse what cannot be called a draw, and what was drawn from the prior's tail."""
        if self.scores.max() > FLAT_TAIL:
            raise DPSynthError(
                "A walk has left for the flat tail of the published prior, where rows share next to nothing with the "
                "original ones. At this epsilon for each table the published density has most of its weight there. "
                "Raise epsilon, ask for fewer synthetic data sets, or choose the sampler 'lists', whose prior follows "
                "the declared bounds."
            )
        if not self.chains.agree:
            raise DPSynthError(
                "The random walks do not agree, so where they ended cannot be called a draw. Raise steps, lower "
                "epsilon, or choose the sampler 'lists'."
            )


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Where walks begin, and what they are held to while the density is heated. From declared bounds alone."""

    starts: FloatArray
    spread: FloatArray
    """First guess of how far to step."""
    bounds: FloatArray
    """Lower and upper end of every column."""
    heated: bool

    def inside(self, lines: FloatArray) -> BoolArray:
        """Whether means lie within the bounds, deviations within their width, and slopes within reason."""
        means, allowed = np.empty((len(lines), len(self.bounds))), np.ones(len(lines), dtype=np.bool_)
        widths, start = self.bounds[:, 1] - self.bounds[:, 0], 0
        for j, (low, high) in enumerate(self.bounds):
            slopes = lines[:, start + 1 : start + 1 + j]
            means[:, j] = lines[:, start] + (slopes * means[:, :j]).sum(axis=1)
            allowed &= (means[:, j] >= low) & (means[:, j] <= high) & (lines[:, start + j + 1] <= widths[j])
            allowed &= (np.abs(slopes) * widths[:j] <= STEEPEST * widths[j]).all(axis=1)
            start += j + 2
        return allowed


@dataclass(frozen=True, kw_only=True)
class PublishedWalks:
    """Algorithm 2 with the choices of the paper's sections 5 to 7."""

    depth: int = MAX_DEPTH
    """Of a tree: 1, 2, 5 or unlimited in the paper."""
    draws: int = 1
    """Tables whose pMSE is averaged for one score (m in Equation 3)."""
    tables: int = 1
    """Draws of the parameters, each at an equal share of epsilon (l)."""
    chains: int = 4
    steps: int = 2_000
    """Of each chain, half of them to warm up."""
    attempts: int = 3
    """Times that walks may be run on, twice as long each time, before the release is refused."""

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One charge for the draws of all tables."""
        columns = _numbers(schema)
        scores = self._walks * self.steps * self.draws
        return Plan(
            stages=(Stage(label=LABEL, epsilon=budget.epsilon, scale=None),),
            cuts=(1,) * len(columns),
            cells=1,
            draws=self._walks * self.steps,
            values=n * len(columns),
            computing=scores * 2 * n * len(columns) * SECONDS_PER_VALUE,
        )

    def fit(self, table: PrivateTable, noise: Noise, progress: WalkProgress) -> RegressionChains:
        """Draw theta from Equation 2, times the flat prior, once for each table."""
        ends = self.ends(table, noise, progress)
        ends.check()
        return RegressionChains(columns=_numbers(table.schema), thetas=ends.chains.states[: self.tables])

    def ends(
        self,
        table: PrivateTable,
        noise: Noise,
        progress: WalkProgress,
        *,
        begin_at: FloatArray | None = None,
    ) -> WalkEnds:
        """Where every walk ends, whether or not they agree.

        Walks begin within the declared bounds, or all at ``begin_at``, which must not come from the rows.
        """
        original = np.column_stack([_values(c, table.positions(c.name)) for c in _numbers(table.schema)])
        # Drawn once, before any score: u is then a fixed function of the parameters.
        z = standard_normal(noise, (self.draws, original.shape[1], table.n))

        def expected_pmse(lines: FloatArray) -> FloatArray:
            """u(X, theta), Equation 3, of each line of parameters."""
            return np.array([np.mean([self._pmse(original, normal_rows(line, draw)) for draw in z]) for line in lines])

        bounds = _bounds(table.schema)
        starts, spread = _starts(bounds, self._walks, noise)
        if begin_at is not None:
            starts = np.tile(begin_at, (self._walks, 1))
        warm_up = WarmUp(starts=starts, spread=spread, bounds=bounds, heated=begin_at is None)
        chains: Chains = noise.metropolis(
            partial(self._walk, expected_pmse, warm_up, progress),
            -expected_pmse(starts),
            sensitivity=Fraction(1, table.n),  # Theorem 2 of the paper; under the best tree it would be half of that
            epsilon=noise.budget.epsilon,
            label=LABEL,
        )
        return WalkEnds(chains=chains, scores=expected_pmse(chains.states))

    @property
    def _walks(self) -> int:
        return max(self.chains, self.tables)

    def _walk(
        self,
        expected_pmse: ExpectedPMSE,
        warm_up: WarmUp,
        progress: WalkProgress,
        generator: np.random.Generator,
        scale: float,
    ) -> Chains:
        state, rate = warm_up.starts, 1 / (self.tables * scale)  # each of the l draws has its share of epsilon
        deviations = _deviations(state.shape[1])

        def log_density(lines: FloatArray, heat: float) -> FloatArray:
            density = np.full(len(lines), -np.inf)
            allowed = (lines[:, deviations] > 0).all(axis=1)
            if heat < 1:  # otherwise a heated walk would leave for the flat tail and not come back
                allowed &= warm_up.inside(lines)
            prior = -0.5 * np.square(lines[allowed]).sum(axis=1) / PRIOR_VARIANCE
            density[allowed] = prior - heat * rate * expected_pmse(lines[allowed])
            return density

        for attempt in range(self.attempts):
            heated = warm_up.heated and attempt == 0
            chains = walk(
                log_density,
                state,
                warm_up.spread,
                steps=self.steps * 2**attempt,
                heat=min(1.0, FIRST_RATE / rate) if heated else 1.0,
                generator=generator,
                progress=partial(progress, attempt),
            )
            state = chains.states
            if chains.agree or expected_pmse(state).max() > FLAT_TAIL:
                break
        return chains

    def _pmse(self, original: FloatArray, rows: FloatArray) -> float:
        return cart_pmse(original, rows.T, cp=CP, maxdepth=self.depth)


def normal_rows(theta: FloatArray, z: FloatArray) -> FloatArray:
    """X1 = N(theta1, theta2), X2 = N(theta3 + theta4 x1, theta5) and so on, from standard normal draws."""
    rows = np.empty_like(z)
    start = 0
    for j in range(len(z)):
        own = theta[start : start + j + 2]
        rows[j] = own[0] + own[1:-1] @ rows[:j] + own[-1] * z[j]
        start += j + 2
    return rows


def standard_normal(noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    """From uniform numbers of the run's own source."""
    uniform = noise.uniform(math.prod(shape)).reshape(shape)
    return np.asarray(ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)))


def _numbers(schema: Schema) -> tuple[Column, ...]:
    """The columns; all must be numbers without missing values."""
    for column in schema:
        if column.kind not in ("continuous", "integer") or column.nullable:
            raise ParameterError(
                "columns",
                column.name,
                allowed="numbers without missing values, which is what the published model is for",
                remedy="Choose the sampler 'lists' or leave the column out.",
            )
    return schema.columns


def _unit(column: Column) -> tuple[float, float]:
    """First value and step of a column's positions, which are the values themselves on a continuum."""
    if column.lattice is None:
        return 0.0, 1.0
    step = 10.0 ** -(column.decimals or 0)
    return column.lattice[0] * step, step


def _values(column: Column, positions: Positions) -> FloatArray:
    """In the units of the data: the prior knows no others."""
    first, step = _unit(column)
    return first + step * positions.values.astype(np.float64)


def _placed(column: Column, values: FloatArray) -> Positions:
    first, step = _unit(column)
    placed = np.clip((values - first) / step, *column.position_range)
    return Positions(values=placed if column.lattice is None else np.rint(placed).astype(np.int64), missing=None)


def _deviations(size: int) -> list[int]:
    """Where the standard deviations are: the j-th column has j + 2 parameters, its deviation last."""
    places: list[int] = []
    end = 0
    while end < size:
        end += len(places) + 2
        places.append(end - 1)
    return places


def _bounds(schema: Schema) -> FloatArray:
    """Declared ends of every column, in the units of the data; never equal."""
    ends = np.array([[float(c.lower), float(c.upper)] for c in _numbers(schema)])  # type: ignore[arg-type]
    ends[:, 1] = np.maximum(ends[:, 1], ends[:, 0] + 1e-9)
    return ends


def _starts(bounds: FloatArray, chains: int, noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Where walks begin and how far they step at first: around the middle of the declared bounds, without regression.

    No row is looked at.
    """
    widths = bounds[:, 1] - bounds[:, 0]
    lines, spread = np.zeros((chains, sum(range(2, len(bounds) + 2)))), []
    for j, deviation in enumerate(_deviations(lines.shape[1])):
        low, width, around = bounds[j, 0], widths[j], noise.uniform(2 * chains).reshape(2, chains)
        lines[:, deviation - j - 1] = low + width * (0.25 + 0.5 * around[0])
        lines[:, deviation] = width * np.exp(math.log(0.05) + math.log(8) * around[1])
        spread += [0.05 * width, *(0.15 * width / other for other in widths[:j]), 0.05 * width]
    return lines, np.array(spread)
