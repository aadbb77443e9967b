"""The pMSE mechanism (Snoke & Slavković 2018): parameters whose sample hides best among the original rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import DPSynthError, ParameterError, check_between, check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.pmse.blocks import (
    LARGEST_GROUP,
    Parents,
    Step,
    block_prior,
    block_start,
    small_groups,
    whole_blocks,
)
from dpsynth_core.mechanisms.pmse.greedy import GreedyScore
from dpsynth_core.mechanisms.pmse.metropolis import Chains, Told, walk
from dpsynth_core.mechanisms.pmse.parents import (
    CHOOSING,
    CHOOSING_SHARE,
    candidates,
    choose_parents,
    most_parents,
    share_out,
)
from dpsynth_core.mechanisms.pmse.parts import Part, parts_of
from dpsynth_core.mechanisms.pmse.score import DISTANCE, SQUARES, TREE, Randomness, Score, sensitivity_of
from dpsynth_core.mechanisms.pmse.sequential import Mixture, SequentialModel
from dpsynth_core.mechanisms.pmse.zoom import REACH, Zoom
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

Tell: TypeAlias = Callable[..., None]
"""Told the share that is done, and points to draw."""
SAMPLERS = {"lists": "from finite lists (proven)", "metropolis": "by random walks (the paper's, private in the limit)"}
LAWS = {"normal": "normal", "skewed": "normal or skewed"}
Judge: TypeAlias = Literal["distance", "cells", "optimal", "greedy"]
TREES = {
    "distance": "all cells at once, by their distance (proven)",
    "cells": "all cells at once, by their pMSE (proven)",
    "optimal": "the best small tree (proven)",
    "greedy": "CART (the paper's, not guaranteed)",
}
JUDGES = {"distance": DISTANCE, "cells": SQUARES, "optimal": TREE}
BOUNDS = {"tight": "the proven one", "paper": "the paper's, twice as large"}
PRIORS = {"bounds": "from the declared bounds", "flat": "the paper's, flat"}
OVER_PAIRS = {"mean": "average over pairs", "worst": "worst pair"}
CANDIDATES = {1: 64, 2: 256, 3: 512}
"""Length of a list, by how many parameters it is for."""
MOST_PARAMETERS = 600
"""Of a model, and a fifth of it of one column by itself: beyond, epsilon is spread so thin that nothing is left."""
ATTEMPTS = 3
"""Times that chains may be run on, twice as long each time, before the release is refused."""
SECONDS_PER_VALUE = 6e-9
"""Making, placing and counting one value of one pair of columns for one score."""
FIRST_RATE = 20.0
"""Walks begin where a pMSE of 1/20 costs one unit of log density, and cool down to the real rate."""
MOST_RATE = {"distance": 0.1, "cells": 0.7, "optimal": 0.7, "greedy": 0.7}
"""Over the score's sensitivity, by judge: walks never go beyond this rate (epsilon 0.2 for one walk by the distance),
where the score's own steps, from counting rows, become cliffs that no walk climbs, and where the draw is as good as the
rows allow."""
NOTHING = "nothing to choose"
"""Label of the charge for a table whose every value is declared."""
MOST_MODEL_ROWS = 50_000
"""Of the model in a score: more would only take longer."""
FLAT_DEVIATION = 100_000**0.5
"""Of the paper's prior N(0, 100000), section 6."""


@dataclass(frozen=True, kw_only=True)
class PMSE(Mechanism):
    """Choose the parameters of a sequential model by how well its rows hide among the original ones.

    Rows of the model and original rows are counted cell by cell, or told apart by a tree; the less they differ, the
    likelier the parameters are chosen (exponential mechanism). Rows are then made from the model. No bound on the data
    enters the guarantee.
    """

    key: ClassVar[str] = "pmse"
    title: ClassVar[str] = "pMSE mechanism"
    summary: ClassVar[str] = "Picks a statistical model whose rows a classifier can hardly tell from the original ones."
    good_for: ClassVar[str] = (
        "A few columns with bell-shaped or simple categorical laws, regressions, and small epsilon."
    )
    beware: ClassVar[str] = (
        "The rows follow a regression model: what the model cannot express is not in them, however large epsilon is."
    )
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Snoke & Slavković (2018), Algorithm 2, with an exact judge in place of greedy trees."
    audit_runs: ClassVar[int] = 50

    sampler: Literal["lists", "metropolis"] = setting("lists", title="How parameters are drawn", labels=SAMPLERS)
    """How parameters are drawn. 'lists' selects from finite lists, finer and finer, with a proven guarantee.
    'metropolis' is the paper's random walk: nearer to the best parameters, but private only in the limit."""
    numbers: Literal["normal", "skewed"] = setting("normal", title="Law of numbers", labels=LAWS)
    """Normal, or with a skew of its own (shifted log-normal), which costs one more parameter for each column."""
    trees: Judge = setting("distance", title="Judge", advanced=True, labels=TREES)  # noqa: RUF009  an alias
    """All cells of two columns at once, by total variation or by pMSE; the best tree of depth two; or CART as in the
    paper. The distance finds most: the pMSE, being a square, hardly tells good parameters from the best. One row can
    move CART further than any proof allows, so that its epsilon is not guaranteed; CART is also slow."""
    bound: Literal["tight", "paper"] = setting("tight", title="Bound on one row", advanced=True, labels=BOUNDS)
    """How far one row can move the score. 'tight' is proven in docs/proofs.md; the paper's is twice as large and halves
    what epsilon buys."""
    prior: Literal["bounds", "flat"] = setting("bounds", advanced=True, labels=PRIORS)
    """What random walks expect before looking: a moderate use of the declared bounds, or the paper's N(0, 100000)."""
    over_pairs: Literal["mean", "worst"] = setting("mean", title="Pairs of columns", advanced=True, labels=OVER_PAIRS)
    """How random walks combine the trees on different pairs of columns, where there are three columns or more."""
    parents: int | None = setting(None, title="Columns to lean on", advanced=True)
    """Earlier columns that each column leans on. None: as many as rows and epsilon can describe. Where that is fewer
    than there are, a tenth of epsilon goes to finding those that go together most."""
    ratio: int = setting(2, title="Model rows per original row", advanced=True)
    """Rows of the model for each original row when the two are compared. Two finds most; the paper has one."""
    joint: int = setting(8, title="Most parameters in one walk", advanced=True)
    """Models with no more parameters than this are drawn in one random walk, others column by column."""
    chains: int = setting(4, title="Random walks", advanced=True)
    """Random walks side by side: only several can show that they agree."""
    steps: int = setting(2_000, title="Steps of each walk", advanced=True)
    """Steps of each random walk, half of them to warm up."""
    cp: float = setting(0.01, title="Complexity of CART", advanced=True)
    """Share of misclassified rows that a split of CART must save (rpart's cp)."""
    tree_depth: int = setting(30, title="Depth of CART", advanced=True)
    """Most splits of CART on a path."""
    datasets: int = setting(1, title="Synthetic data sets", advanced=True)
    """Synthetic data sets (l in the paper), each with its own parameters and an equal share of epsilon."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, tuple(SAMPLERS))
        check_choice("numbers", self.numbers, tuple(LAWS))
        check_choice("trees", self.trees, tuple(TREES))
        check_choice("bound", self.bound, tuple(BOUNDS))
        check_choice("prior", self.prior, tuple(PRIORS))
        check_choice("over_pairs", self.over_pairs, tuple(OVER_PAIRS))
        check_int("parents", self.parents, 1, 1_000, optional=True)
        check_int("ratio", self.ratio, 1, 10)
        check_int("joint", self.joint, 0, 50)
        check_int("chains", self.chains, 2, 64)
        check_int("steps", self.steps, 200, 10**6)
        check_between("cp", self.cp, 0, 1)
        check_int("tree_depth", self.tree_depth, 1, 30)
        check_int("datasets", self.datasets, 1, 100)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount) -> Self:
        """Parameters from public facts only."""
        parameters = sum(part.size for part in parts_of(schema, "skewed"))
        share = n * float(exact(epsilon, parameter="epsilon")) / max(parameters, 1)
        numbers: Literal["normal", "skewed"] = "skewed" if share >= 50 else "normal"
        verdict = (
            "enough to fit a skew to every number" if numbers == "skewed"
            else "enough for plain normal laws" if share >= 20
            else "too little for more than a rough picture"
        )  # fmt: skip
        return cls(
            numbers=numbers,
            reason=f"{n:,} rows at this epsilon leave {share:,.0f} rows times epsilon for each of {parameters} "
            f"parameters: {verdict}.",
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also the best tree as a judge. The score is the same for random walks, whose kernel is audited by itself."""
        return {
            **super().audited(schema, n, epsilon),
            "best tree": cls(trees="optimal", ratio=1),
            "one parent": cls(parents=1),
        }

    def judge(self, guarantee: Guarantee) -> Guarantee:
        """Only finite lists and a judge that one row moves little are proven."""
        if self.trees == "greedy":
            guarantee = guarantee.weakened(
                "heuristic",
                "Scored by greedy trees, which one row can move further than the bound that epsilon rests on.",
            )
        if self.sampler == "lists":
            return guarantee
        return guarantee.weakened(
            "asymptotic",
            "Drawn by random walks of finite length: epsilon holds in the limit of long walks. Whether the walks agree "
            "is checked on the private rows, and a release is refused where they do not; that look is not paid for.",
        )

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One stage for each step, data sets together."""
        parts = self._parts(schema)
        most = self._most(parts, n, budget.epsilon / self.datasets)
        # Which columns will be leaned on is not known beforehand: the first ones stand for them, at the same price.
        parents = None if most is None else tuple(tuple(candidates(parts, j)[:most]) for j in range(len(parts)))
        steps = self._steps(parts, parents)
        choosing, shares = share_out(parts, steps, budget, most)
        merged: dict[str, Fraction] = {} if choosing is None else {CHOOSING: choosing.epsilon}
        for step, share in zip(steps, shares, strict=True):
            merged[step.label] = merged.get(step.label, Fraction(0)) + share.epsilon
        sensitivity = self._looseness * sensitivity_of(self._judge, n, self._model_rows(n))
        scores = pairs = 0.0
        for step, share in zip(steps, shares, strict=True):
            zoom = self._zoom(step, parts, share.epsilon / self.datasets, sensitivity)
            number = zoom.stages * zoom.candidates if self.sampler == "lists" else self.steps * self.chains
            scores += number
            pairs += number * (step.last - step.first + 1 + len(step.pairs))
        computing = self.datasets * (pairs * (n + self._model_rows(n)) * SECONDS_PER_VALUE + scores * 1e-4)
        return Plan(
            stages=tuple(Stage(label=label, epsilon=epsilon, scale=None) for label, epsilon in merged.items())
            or (Stage(label=NOTHING, epsilon=budget.epsilon, scale=None),),
            cuts=(1,) * len(parts), cells=1, draws=int(scores), values=n * len(parts), computing=computing,
        )  # fmt: skip

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> Mixture:
        """Algorithm 2: l draws of parameters, each with its share of epsilon."""
        progress("Drawing the randomness of the model", 0.0)
        parts = self._parts(table.schema)
        if not any(part.size for part in parts):
            noise.permute_and_flip(np.zeros(1), sensitivity=1, epsilon=noise.budget.epsilon, label=NOTHING)
        budgets = noise.budget.split(*(1 for _ in range(self.datasets)))
        models = []
        for number, budget in enumerate(budgets):
            told = partial(_tell, progress, number, self.datasets)
            models.append(self._fit_once(table, parts, noise, budget, told))
        return Mixture(models=tuple(models))

    def _fit_once(
        self, table: PrivateTable, parts: tuple[Part, ...], noise: Noise, budget: Budget, progress: Progress
    ) -> SequentialModel:
        # z is drawn once, before any score: u is then a fixed function of the parameters.
        score = self._score(table, parts, Randomness.draw(parts, self._model_rows(table.n), noise, even=True))
        most = self._most(parts, table.n, budget.epsilon)
        parents: Parents | None = None
        if most is not None:
            parents = choose_parents(table, parts, most, noise, CHOOSING_SHARE * budget.epsilon)
        steps = self._steps(parts, parents)
        _, shares = share_out(parts, steps, budget, most)
        theta: FloatArray | None = None
        for number, (step, share) in enumerate(zip(steps, shares, strict=True)):
            tell = partial(_tell, progress, number, len(steps), f"Choosing {step.label}")
            tell(0.0)
            score.settle_empty(step.first)
            if theta is None:
                theta = block_start(parts, step.first, step.last, parents)
            if self.sampler == "lists":
                theta[step.places] = self._select(score, step, theta, noise, share.epsilon)
            else:
                theta[step.places] = self._walk(score, step, theta, noise, share.epsilon, tell=tell)
            if step.final:
                score.settle(theta, step.last)
                theta = None
        score.settle_empty(len(parts))
        return SequentialModel.of(score)

    def _select(self, score: Score, step: Step, theta: FloatArray, noise: Noise, epsilon: Fraction) -> FloatArray:
        """A few of the parameters, from lists; the others stay as they are."""

        def scored(candidates: FloatArray) -> FloatArray:
            return score(step.filled(theta, candidates), step.last, step.pairs)

        _, deviation = block_prior(score.parts, step.first, step.last)
        sensitivity = self._sensitivity(score)
        zoom = self._zoom(step, score.parts, epsilon, sensitivity)
        return zoom.run(
            scored, theta[step.places], REACH * deviation[step.places],
            noise=noise, sensitivity=sensitivity, epsilon=epsilon, label=step.label,
        )  # fmt: skip

    def _walk(
        self, score: Score, step: Step, theta: FloatArray, noise: Noise, epsilon: Fraction, *, tell: Tell
    ) -> FloatArray:  # fmt: skip
        """All parameters of a block, by random walks that start where the prior says, whatever the data say."""
        mean, deviation = (each[step.places] for each in block_prior(score.parts, step.first, step.last))
        starts = mean + deviation * ndtri(np.clip(noise.uniform(self.chains * step.size), 1e-12, 1 - 1e-12)).reshape(
            self.chains, step.size
        )
        if self.prior == "flat":
            mean, spread = np.zeros_like(mean), np.full_like(mean, FLAT_DEVIATION)
        else:
            spread = deviation

        def scored(lines: FloatArray) -> FloatArray:
            return -score(step.filled(theta, lines), step.last, step.pairs, worst=self.over_pairs == "worst")

        most_rate = MOST_RATE[self.trees]

        def walked(generator: np.random.Generator, scale: float) -> Chains:
            scale = max(scale, float(score.sensitivity) / most_rate)  # less than epsilon allows is private, too

            def log_density(lines: FloatArray, heat: float) -> FloatArray:
                # Equation 2, times the prior: exp(-eps u / (2 du)) pi(theta).
                total: FloatArray = heat / scale * scored(lines) - 0.5 * np.square((lines - mean) / spread).sum(axis=1)
                return total

            state = starts
            for attempt in range(ATTEMPTS):
                chains = walk(
                    log_density, state, 0.1 * deviation, steps=self.steps * 2**attempt,
                    heat=min(1.0, FIRST_RATE * scale), generator=generator, progress=partial(_tell_walk, tell, attempt),
                )  # fmt: skip
                state = chains.states
                if chains.agree:
                    break
            return chains

        chains: Chains = noise.metropolis(
            walked, scored(starts), sensitivity=self._sensitivity(score), epsilon=epsilon, label=step.label
        )
        if not chains.agree:
            raise DPSynthError(
                f"The random walks for the {step.label} do not agree after {self.steps * (2**ATTEMPTS - 1):,} steps "
                "each, so where they ended cannot be called a draw. Raise steps, keep fewer columns, or choose the "
                "sampler 'lists'."
            )
        return chains.state

    def _score(self, table: PrivateTable, parts: tuple[Part, ...], randomness: Randomness) -> Score:
        if self.trees != "greedy":
            return Score(table, parts, randomness, judge=self._judge)
        return GreedyScore(table, parts, randomness, cp=self.cp, depth=self.tree_depth)

    def _parts(self, schema: Schema) -> tuple[Part, ...]:
        parts = parts_of(schema, self.numbers)
        total, widest = sum(part.size for part in parts), max(parts, key=lambda part: part.own)
        if total > MOST_PARAMETERS or widest.own > MOST_PARAMETERS // 5:
            raise ParameterError(
                "columns", f"{total} parameters, {widest.own} for {widest.column.name!r} by itself",
                allowed=f"up to {MOST_PARAMETERS} parameters, {MOST_PARAMETERS // 5} for one column by itself",
                remedy="Keep fewer columns or categories, or choose kd_tree.",
            )  # fmt: skip
        return parts

    def _steps(self, parts: tuple[Part, ...], parents: Parents | None) -> tuple[Step, ...]:
        return small_groups(parts, parents) if self.sampler == "lists" else whole_blocks(parts, self.joint, parents)

    def _most(self, parts: tuple[Part, ...], n: int, epsilon: Fraction) -> int | None:
        """Columns that a column may lean on; None for all before it."""
        if self.parents is None and sum(part.size for part in parts) <= self.joint:
            return None
        return most_parents(parts, n * epsilon, self.parents)

    def _zoom(self, step: Step, parts: tuple[Part, ...], epsilon: Fraction, sensitivity: Fraction) -> Zoom:
        _, deviation = block_prior(parts, step.first, step.last)
        size = min(step.size, LARGEST_GROUP)
        return Zoom.of(
            size, CANDIDATES[size], float(epsilon / (2 * sensitivity)), REACH * float(deviation[step.places].max()),
            straight=self.trees == "distance",
        )  # fmt: skip

    def _model_rows(self, n: int) -> int:
        return min(self.ratio * n, max(n, MOST_MODEL_ROWS)) if self.ratio > 1 else n

    @property
    def _looseness(self) -> int:
        return 1 if self.bound == "tight" else 2

    def _sensitivity(self, score: Score) -> Fraction:
        return self._looseness * score.sensitivity

    @property
    def _judge(self) -> int:
        return JUDGES.get(self.trees, TREE)  # for CART, what would hold for the best tree


def _tell(progress: Progress, number: int, parts: int, stage: str, done: float, /, *points: Point) -> None:
    """Progress of one part as progress of the whole."""
    progress(stage, (number + done) / parts, *points)


def _tell_walk(tell: Tell, attempt: int, told: Told) -> None:
    """A walk's progress with its live trace. Most walks need no second attempt, so the first gets most of the bar."""
    tell(
        1 - 0.1**attempt + 0.9 * 0.1**attempt * told.done,
        Point(series="Steps accepted (%)", x=told.step, y=100 * told.acceptance),
        Point(series="Log density of the first walk", x=told.step, y=told.log_density),
        *(() if told.rhat is None else (Point(series="R-hat (agreement of the walks)", x=told.step, y=told.rhat),)),
    )
