"""The pMSE mechanism as Snoke & Slavković (2018) publish it, where the app offers what is proven or works better.

Greedy trees with rpart's rules score the parameters, one row is said to move a score by 1/n at most, and a Metropolis
walk draws them from exp(-eps u / (2 Delta u)) times the prior N(0, 100000) on every mean, standard deviation and
regression coefficient, in the units of the data. Nothing of that is proven: docs/proofs.md, section 12, and the
experiment ``tree_sensitivity`` say why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import DPSynthError, ParameterError, check_between, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.pmse.metropolis import ChainProgress, Chains, walk
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import MAX_DEPTH, cart_pmse

PRIOR_VARIANCE = 100_000.0
"""Of the normal prior on every parameter, around zero: section 6."""
FLAT_TAIL = 0.2
"""A walk whose score is above this draws tables that hardly overlap with the original one: it has left for the prior's
flat tail, where the density is that of the prior. The largest pMSE is 0.25."""
Score: TypeAlias = Callable[[FloatArray], FloatArray]
"""u(X, theta) of each line of parameters."""
LABEL = "means, deviations and coefficients"
DEPTHS = {1: "depth 1", 2: "depth 2", 5: "depth 5", MAX_DEPTH: "any depth"}
"""The trees of Figures 2 and 4."""


@dataclass(frozen=True, kw_only=True)
class RegressionChain:
    """Normal columns, each a linear regression on those before it: g(theta) of section 5."""

    columns: tuple[str, ...]
    theta: FloatArray
    """For each column intercept, coefficients of the earlier ones, standard deviation."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows; a normal variable has no bounds, so neither have they."""
        z = _normal(noise, (len(self.columns), rows))
        return pd.DataFrame(dict(zip(self.columns, _rows(self.theta, z), strict=True)))


@dataclass(frozen=True, kw_only=True)
class WalkEnds:
    """Where walks end and how well each end scores. As private as the rows until they are checked and paid for."""

    chains: Chains
    scores: FloatArray
    """u(X, theta) at the end of every walk."""

    def check(self) -> None:
        """Refuse what cannot be called a draw, and what was drawn from the prior's tail."""
        worst = float(self.scores.max())
        if worst > FLAT_TAIL:
            raise DPSynthError(
                f"A walk has left for the flat tail of the prior: its rows have a pMSE of {worst:.2f} of "
                "at most 0.25, so they share next to nothing with the original. At this epsilon the paper's density "
                "has most of its weight there. Raise epsilon, or use PMSE, whose prior follows the declared bounds."
            )
        if not self.chains.agree:
            raise DPSynthError("The random walks do not agree, so where they ended cannot be called a draw.")


@dataclass(frozen=True, kw_only=True)
class PublishedPMSE(Mechanism):
    """Algorithm 2 with the choices of the paper's sections 5 to 7."""

    key: ClassVar[str] = "published_pmse"
    title: ClassVar[str] = "pMSE mechanism as published"
    summary: ClassVar[str] = "Draws regression parameters whose rows a greedy tree can hardly tell from the original."
    good_for: ClassVar[str] = "Comparing with the paper."
    paper: ClassVar[str] = "Snoke & Slavković (2018), Algorithm 2, sections 5 to 7."

    depth: int = MAX_DEPTH
    """Most splits of a tree on a path: 1, 2, 5 or unlimited in the paper."""
    cp: float = 0.01
    """Share of misclassified rows that a split must save (rpart's cp)."""
    draws: int = 1
    """Tables whose pMSE is averaged for one score (m in Equation 3)."""
    chains: int = 4
    steps: int = 2_000
    """Of each chain, half of them to warm up."""
    attempts: int = 3
    """Times that walks may be run on, twice as long each time, before the release is refused."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("depth", self.depth, 1, MAX_DEPTH)
        check_between("cp", self.cp, 0, 1)
        check_int("draws", self.draws, 1, 100)
        check_int("chains", self.chains, 2, 64)
        check_int("steps", self.steps, 200, 10**6)
        check_int("attempts", self.attempts, 1, 10)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003
        return cls(reason="The paper's own choices.")

    def judge(self, guarantee: Guarantee) -> Guarantee:
        """Nothing is proven of a score by greedy trees, and walks are private in the limit at best."""
        return guarantee.weakened(
            "heuristic",
            "Scored by greedy trees, which one row can move further than the bound that epsilon rests on; drawn by "
            "random walks of finite length, whose agreement is checked on the private rows without paying for it.",
        )

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One draw of all parameters."""
        columns = _numbers(schema)
        stage = Stage(label=LABEL, epsilon=budget.epsilon, scale=None)
        return Plan(
            stages=(stage,),
            cuts=(1,) * len(columns),
            cells=1,
            draws=self.chains * self.steps,
            values=n * len(columns),
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> RegressionChain:
        """Draw theta from Equation 2, times the flat prior."""
        ends = self.walk_ends(table, noise, progress)
        ends.check()
        return RegressionChain(columns=_numbers(table.schema), theta=ends.chains.state)

    def walk_ends(
        self,
        table: PrivateTable,
        noise: Noise,
        progress: Progress = no_progress,
        *,
        begin_at: FloatArray | None = None,
    ) -> WalkEnds:
        """Where every walk ends, whether or not they agree: with l walks, the paper's l draws at this epsilon each.

        Walks begin within the declared bounds, or all at ``begin_at``, which must not come from the rows.
        """
        columns = _numbers(table.schema)
        original = np.column_stack([table.positions(name).values.astype(np.float64) for name in columns])
        # Drawn once, before any score: u is then a fixed function of the parameters.
        z = _normal(noise, (self.draws, len(columns), table.n))

        def expected_pmse(lines: FloatArray) -> FloatArray:
            """u(X, theta), Equation 3, of each line of parameters."""
            return np.array([np.mean([self._pmse(original, _rows(line, draw)) for draw in z]) for line in lines])

        starts = _starts(table.schema, self.chains, noise)
        if begin_at is not None:
            starts = np.tile(begin_at, (self.chains, 1))
        walked = partial(self._walk, expected_pmse, starts, progress)
        # Theorem 2 of the paper: Delta u = 1/n. Under optimal trees it would be half of that.
        chains: Chains = noise.metropolis(
            walked,
            -expected_pmse(starts),
            sensitivity=Budget.of(1).epsilon / table.n,
            epsilon=noise.budget.epsilon,
            label=LABEL,
        )
        return WalkEnds(chains=chains, scores=expected_pmse(chains.states))

    def _walk(
        self, expected_pmse: Score, starts: FloatArray, progress: Progress, generator: np.random.Generator, scale: float
    ) -> Chains:
        def log_density(lines: FloatArray, now: float) -> FloatArray:
            density = np.full(len(lines), -np.inf)
            allowed = (lines[:, _deviations(lines.shape[1])] > 0).all(axis=1)
            prior = -0.5 * np.square(lines[allowed]).sum(axis=1) / PRIOR_VARIANCE
            density[allowed] = prior - now / scale * expected_pmse(lines[allowed])
            return density

        def report(walked: ChainProgress) -> None:
            progress("Walking", walked.done)

        state, spread = starts, 0.1 * np.abs(starts).mean(axis=0)
        for attempt in range(self.attempts):
            chains = walk(
                log_density,
                state,
                spread,
                steps=self.steps * 2**attempt,
                heat=1.0,  # a heated walk would leave for the flat tail and not come back
                generator=generator,
                progress=report,
            )
            state = chains.states
            if chains.agree or expected_pmse(state).max() > FLAT_TAIL:
                break
        return chains

    def _pmse(self, original: FloatArray, rows: FloatArray) -> float:
        return cart_pmse(original, rows.T, cp=self.cp, maxdepth=self.depth)


def _numbers(schema: Schema) -> tuple[str, ...]:
    """The columns' names; all must be numbers without missing values."""
    for column in schema:
        if column.kind != "continuous" or column.nullable:
            raise ParameterError(
                "columns", column.name, allowed="continuous numbers without missing values", remedy="Use PMSE."
            )
    return tuple(column.name for column in schema)


def _deviations(size: int) -> list[int]:
    """Where the standard deviations are: the j-th column has j + 2 parameters, its deviation last."""
    places, end = [], 0
    while end < size:
        end += len(places) + 2
        places.append(end - 1)
    return places


def _rows(theta: FloatArray, z: FloatArray) -> FloatArray:
    """X1 = N(theta1, theta2), X2 = N(theta3 + theta4 x1, theta5) and so on, from standard normal draws."""
    rows = np.empty_like(z)
    start = 0
    for j in range(len(z)):
        own = theta[start : start + j + 2]
        rows[j] = own[0] + own[1:-1] @ rows[:j] + own[-1] * z[j]
        start += j + 2
    return rows


def _starts(schema: Schema, chains: int, noise: Noise) -> FloatArray:
    """Where walks begin: around the middle of the declared bounds, without any regression; no row is looked at."""
    lines = np.zeros((chains, sum(range(2, len(schema.columns) + 2))))
    deviations = _deviations(lines.shape[1])
    for j, column in enumerate(schema):
        low, high = float(column.lower), float(column.upper)  # type: ignore[arg-type]
        width, around = high - low, noise.uniform(2 * chains).reshape(2, chains)
        lines[:, deviations[j] - j - 1] = low + width * (0.25 + 0.5 * around[0])
        lines[:, deviations[j]] = width * np.exp(math.log(0.05) + math.log(8) * around[1])
    return lines


def _normal(noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    from scipy.special import ndtri  # noqa: PLC0415  like the core's, from uniform numbers of the run's own source

    uniform = noise.uniform(math.prod(shape)).reshape(shape)
    return np.asarray(ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)))
