"""The pMSE mechanism (Snoke & Slavković 2018): parameters whose sample hides best among the original rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import DPSynthError, ParameterError, check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.pmse.box_search import REACH, BoxSearch
from dpsynth_core.mechanisms.pmse.column_models import ColumnModels, column_models
from dpsynth_core.mechanisms.pmse.fit_steps import FitStep, Parents, block_start, blocks_of_columns, small_groups
from dpsynth_core.mechanisms.pmse.metropolis import ChainProgress, Chains, walk
from dpsynth_core.mechanisms.pmse.objective import DISTANCE, SQUARES, TREE, PMSEObjective, Randomness, sensitivity_of
from dpsynth_core.mechanisms.pmse.parents import (
    CHOOSING,
    CHOOSING_SHARE,
    candidates,
    choose_parents,
    max_parents,
    predictor_counts,
    share_out,
)
from dpsynth_core.mechanisms.pmse.published import PublishedWalks, RegressionChains
from dpsynth_core.mechanisms.pmse.score_time import ScoreTime
from dpsynth_core.mechanisms.pmse.sequential import Mixture, SequentialModel
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import MAX_DEPTH

StepProgress: TypeAlias = Callable[..., None]
"""Takes the share that is done, and points to draw."""
SAMPLERS = {
    "lists": "from finite lists (proven)",
    "metropolis": "by random walks (private in the limit)",
    "published": "as published (heuristic)",
}
Sampler: TypeAlias = Literal["lists", "metropolis", "published"]
LAWS = {"normal": "normal", "skewed": "normal or skewed"}
Criterion: TypeAlias = Literal["distance", "cells", "optimal"]
CRITERIA = {
    "distance": "all cells at once, by their distance",
    "cells": "all cells at once, by their pMSE",
    "optimal": "the best small tree, by its pMSE",
}
OURS = {"sampler": ("lists", "metropolis")}
WALKS = {"sampler": ("metropolis", "published")}
PUBLISHED = {"sampler": ("published",)}
JUDGES = {"distance": DISTANCE, "cells": SQUARES, "optimal": TREE}
CANDIDATES = {1: 64, 2: 256, 3: 512}
"""Length of a list, by how many parameters it is for."""
MAX_PARAMETERS = 600
"""Of a model, and a fifth of it of one column by itself: beyond, epsilon is spread so thin that nothing is left."""
ATTEMPTS = 3
"""Times that chains may be run on, twice as long each time, before the release is refused."""
SECONDS_PER_LISTED_SCORE, SECONDS_PER_WALKED_SCORE = 4.2e-6, 7e-5
"""Of one line of parameters, however few rows there are: lists are scored together, walks a step at a time."""
SECONDS_PER_DRAWN_CELL = 8e-8
"""Drawing one cell of a row from its regression."""
FIRST_RATE = 20.0
"""Walks begin where a pMSE of 1/20 costs one unit of log density, and cool down to the real rate."""
MAX_RATE = {"distance": 0.1, "cells": 0.7, "optimal": 0.7}
"""Over the score's sensitivity, by criterion: walks never go beyond this rate (epsilon 0.2 for a walk by the distance),
where the score's own steps, from counting rows, become cliffs that no walk climbs, and where the draw is as good as the
rows allow."""
NOTHING = "nothing to choose"
"""Label of the charge for a table whose every value is declared."""
MAX_MODEL_ROWS = 50_000
"""Of the model in a score: more would only take longer."""


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
    paper: ClassVar[str] = "Snoke & Slavković (2018), Algorithm 2, with an exact comparison in place of greedy trees."
    audit_runs: ClassVar[int] = 50
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "Snoke & Slavković (2018)": {
            "sampler": "published",
            "depth": MAX_DEPTH,
            "draws": 1,
            "chains": 10,
            "steps": 2_000,
            "datasets": 10,
        }
    }

    sampler: Sampler = setting("lists", title="How parameters are drawn", labels=SAMPLERS)  # noqa: RUF009
    """How parameters are drawn. 'lists' selects from finite lists, finer and finer, with a proven guarantee.
    'metropolis' is a random walk: nearer to the best parameters, but private only in the limit. 'published' is the
    paper's mechanism itself, for comparison: greedy trees, which one row can move further than epsilon allows for, and
    a normal prior of variance 100,000 on every mean, deviation and coefficient; numbers without missing values only.
    The settings for the law of numbers, comparison, predictors and model rows do not apply to it."""
    numbers: Literal["normal", "skewed"] = setting("normal", title="Law of numbers", labels=LAWS, only=OURS)
    """Normal, or with a skew of its own (shifted log-normal), which costs one more parameter for each column."""
    criterion: Criterion = setting("distance", title="How tables are compared", labels=CRITERIA, only=OURS)  # noqa: RUF009
    """How a sample of the model is compared with the original rows, for two columns at a time: by the total variation
    between all cells, by the pMSE of all cells, or by the best tree of depth two. The distance works best: the pMSE is
    a square and hardly separates good parameters from the best."""
    parents: int | None = setting(None, title="Predictors per column", only=OURS)
    """How many earlier columns predict each column. None: as many as rows and epsilon can describe. Where that is fewer
    than there are, a tenth of epsilon goes to finding the ones that depend on each other most."""
    ratio: int = setting(2, title="Model rows per original row", advanced=True, only=OURS)
    """Rows of the model for each original row when the two are compared. Two works best; the paper uses one."""
    chains: int = setting(4, title="Random walks", advanced=True, only=WALKS)
    """Random walks side by side: only several can show that they agree."""
    steps: int = setting(2_000, title="Steps of each walk", advanced=True, only=WALKS)
    """Steps of each random walk, half of them to warm up."""
    datasets: int = setting(1, title="Synthetic data sets", advanced=True)
    """Synthetic data sets (l in the paper), each with its own parameters and an equal share of epsilon."""

    depth: int = setting(MAX_DEPTH, title="Depth of greedy trees", advanced=True, only=PUBLISHED)
    """Longest path of a greedy tree, as published: 1, 2, 5 or unlimited (30) in the paper."""
    draws: int = setting(1, title="Tables per score", advanced=True, only=PUBLISHED)
    """Tables of the model whose pMSE is averaged for one score, as published (m in Equation 3)."""

    max_rows: ClassVar[int | None] = 200_000
    joint: ClassVar[int] = 8
    """Models with no more parameters than this are drawn in one random walk, others column by column."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, tuple(SAMPLERS))
        check_choice("numbers", self.numbers, tuple(LAWS))
        check_choice("criterion", self.criterion, tuple(CRITERIA))
        check_int("parents", self.parents, 1, 1_000, optional=True)
        check_int("ratio", self.ratio, 1, 10)
        check_int("chains", self.chains, 2, 64)
        check_int("steps", self.steps, 200, 10**6)
        check_int("datasets", self.datasets, 1, 100)
        check_int("depth", self.depth, 1, MAX_DEPTH)
        check_int("draws", self.draws, 1, 100)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        n, parameters = cls.rows_used(n), sum(model.size for model in column_models(schema, "skewed"))
        share = n * float(exact(epsilon, parameter="epsilon")) / max(parameters, 1)
        numbers: Literal["normal", "skewed"] = "skewed" if share >= 50 else "normal"
        plain = "enough for plain normal laws" if share >= 20 else "too little for more than a rough picture"
        verdict = "enough to fit a skew to every number" if numbers == "skewed" else plain
        leave = f"{n:,} rows at this epsilon leave {share:,.0f} rows times epsilon for each of {parameters} parameters"
        return cls(numbers=numbers, reason=f"{leave}: {verdict}.")

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also the best tree. The score is the same for random walks, whose kernel is audited by itself. As published,
        the score breaks its bound, so there is no claim that an audit could test."""
        others = {
            "best tree": cls(criterion="optimal", ratio=1),
            "one parent": cls(parents=1),
            "two data sets": cls(criterion="cells", datasets=2),
        }
        return {**super().audited(schema, n, epsilon), **others}

    def judge(self, guarantee: Guarantee) -> Guarantee:
        """Only draws from finite lists are proven."""
        if self.sampler == "lists":
            return guarantee
        if self.sampler == "published":
            return guarantee.weakened(
                "heuristic",
                "Scored by greedy trees, which one row can move further than the bound that epsilon rests on; drawn by "
                "random walks of finite length, whose agreement is checked on the private rows without paying for it.",
            )
        return guarantee.weakened(
            "asymptotic",
            "Drawn by random walks of finite length: epsilon holds in the limit of long walks. Whether the walks agree "
            "is checked on the private rows, and a release is refused where they do not; that look is not paid for.",
        )

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One stage for each step, data sets together."""
        made, n = self.cells_made(schema, n), self.rows_used(n)
        if self.sampler == "published":
            return replace(self._published.plan(schema, n, budget), made=made)
        models = self._column_models(schema)
        limit = self._max_parents(models, n, budget.epsilon / self.datasets)
        # Which predictors will be chosen is not known beforehand: the first ones stand for them, at the same price.
        parents = None if limit is None else tuple(tuple(candidates(models, j)[:limit]) for j in range(len(models)))
        steps = self._steps(models, parents)
        choosing, shares = share_out(models, steps, budget, limit)
        merged: dict[str, Fraction] = {} if choosing is None else {CHOOSING: choosing.epsilon}
        sensitivity = sensitivity_of(JUDGES[self.criterion], n, self._model_rows(n))
        predictors = predictor_counts(models, parents)
        score_time = ScoreTime(models=models, judge=JUDGES[self.criterion], original=n, made=self._model_rows(n))
        scores, computing = 0, 0.0
        for step, share in zip(steps, shares, strict=True):
            merged[step.label] = merged.get(step.label, Fraction(0)) + share.epsilon
            number, each = self.steps * self.chains, SECONDS_PER_WALKED_SCORE
            if self.sampler == "lists":
                search = self._box_search(step, models, share.epsilon / self.datasets, sensitivity)
                number, each = search.stages * search.candidates, SECONDS_PER_LISTED_SCORE
            scores += self.datasets * number
            computing += self.datasets * number * (each + score_time.of(step, predictors))
        merged = merged or {NOTHING: budget.epsilon}
        stages = tuple(Stage(label=label, epsilon=epsilon, scale=None) for label, epsilon in merged.items())
        cuts, values = (1,) * len(models), n * len(models)
        return Plan(
            stages=stages,
            cuts=cuts,
            cells=1,
            draws=0,
            values=values,
            computing=computing,
            scores=scores if self.sampler == "lists" else 0,
            made=made,
            seconds_per_made_cell=SECONDS_PER_DRAWN_CELL,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> Mixture | RegressionChains:
        """Algorithm 2: l draws of parameters, each with its share of epsilon."""
        progress("Drawing the randomness of the model", 0.0)
        rows = table.sample(self.rows_used(table.n), noise)
        if self.sampler == "published":
            return self._published.fit(rows, noise, partial(_report_walk, partial(progress, "Walking")))
        models = self._column_models(table.schema)
        if not any(model.size for model in models):
            noise.permute_and_flip(np.zeros(1), sensitivity=1, epsilon=noise.budget.epsilon, label=NOTHING)
        budgets = noise.budget.split(*(1 for _ in range(self.datasets)))
        fitted = []
        for number, budget in enumerate(budgets):
            own = partial(_report, progress, number, self.datasets)
            fitted.append(self._fit_once(rows, models, noise, budget, own))
        return Mixture(models=tuple(fitted))

    def _fit_once(
        self, table: PrivateTable, models: ColumnModels, noise: Noise, budget: Budget, progress: Progress
    ) -> SequentialModel:
        # z is drawn once, before any score: u is then a fixed function of the parameters.
        randomness = Randomness.draw(models, self._model_rows(table.n), noise, even=True)
        objective = PMSEObjective(table, models, randomness, judge=JUDGES[self.criterion])
        limit = self._max_parents(models, table.n, budget.epsilon)
        parents: Parents | None = None
        if limit is not None:
            parents = choose_parents(table, models, limit, noise, CHOOSING_SHARE * budget.epsilon)
        steps = self._steps(models, parents)
        _, shares = share_out(models, steps, budget, limit)
        theta: FloatArray | None = None
        for number, (step, share) in enumerate(zip(steps, shares, strict=True)):
            report = partial(_report, progress, number, len(steps), f"Choosing {step.label}")
            report(0.0)
            objective.settle_empty(step.first)
            if theta is None:
                theta = block_start(models, step.first, step.last, parents)
            if self.sampler == "lists":
                theta[step.indices] = self._select(objective, step, theta, noise, share.epsilon)
            else:
                theta[step.indices] = self._walk(objective, step, theta, noise, share.epsilon, report=report)
            if step.final:
                objective.settle(theta, step.last)
                theta = None
        objective.settle_empty(len(models))
        return SequentialModel.of(objective)

    def _select(
        self, objective: PMSEObjective, step: FitStep, theta: FloatArray, noise: Noise, epsilon: Fraction
    ) -> FloatArray:
        """A few of the parameters, from lists; the others stay as they are."""

        def scored(candidates: FloatArray) -> FloatArray:
            return objective(step.filled(theta, candidates), step.last, step.pairs)

        sensitivity = objective.sensitivity
        search = self._box_search(step, objective.models, epsilon, sensitivity)
        centre, reach = theta[step.indices], REACH * step.prior(objective.models)[1]
        return search.run(
            scored, centre, reach, noise=noise, sensitivity=sensitivity, epsilon=epsilon, label=step.label
        )

    def _walk(
        self,
        objective: PMSEObjective,
        step: FitStep,
        theta: FloatArray,
        noise: Noise,
        epsilon: Fraction,
        *,
        report: StepProgress,
    ) -> FloatArray:
        """All parameters of a block, by random walks that start where the prior says, whatever the data say."""
        mean, std = step.prior(objective.models)
        uniform = noise.uniform(self.chains * step.size).reshape(self.chains, step.size)
        starts = mean + std * ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))

        def scored(lines: FloatArray) -> FloatArray:
            return -objective(step.filled(theta, lines), step.last, step.pairs)

        def walked(generator: np.random.Generator, scale: float) -> Chains:
            # Less than epsilon allows is private, too.
            scale = max(scale, float(objective.sensitivity) / MAX_RATE[self.criterion])
            first_heat = min(1.0, FIRST_RATE * scale)

            def log_density(lines: FloatArray, heat: float) -> FloatArray:
                # Equation 2, times the prior: exp(-eps u / (2 du)) pi(theta).
                log_prior: FloatArray = -0.5 * np.square((lines - mean) / std).sum(axis=1)
                return heat / scale * scored(lines) + log_prior

            state = starts
            for attempt in range(ATTEMPTS):
                trace, steps = partial(_report_walk, report, attempt), self.steps * 2**attempt
                chains = walk(
                    log_density, state, 0.1 * std, steps=steps, heat=first_heat, generator=generator, progress=trace
                )
                state = chains.states
                if chains.agree:
                    break
            return chains

        chains: Chains = noise.metropolis(
            walked, scored(starts), sensitivity=objective.sensitivity, epsilon=epsilon, label=step.label
        )
        if not chains.agree:
            raise DPSynthError(
                f"The random walks for the {step.label} do not agree after {self.steps * (2**ATTEMPTS - 1):,} steps "
                "each, so where they ended cannot be called a draw. Raise steps, keep fewer columns, or choose the "
                "sampler 'lists'."
            )
        return chains.state

    @property
    def _published(self) -> PublishedWalks:
        return PublishedWalks(
            depth=self.depth, draws=self.draws, tables=self.datasets, chains=self.chains, steps=self.steps
        )

    def _column_models(self, schema: Schema) -> ColumnModels:
        models = column_models(schema, self.numbers)
        total, widest = sum(model.size for model in models), max(models, key=lambda model: model.own)
        if total > MAX_PARAMETERS or widest.own > MAX_PARAMETERS // 5:
            raise ParameterError(
                "columns",
                f"{total} parameters, {widest.own} for {widest.column.name!r} by itself",
                allowed=f"up to {MAX_PARAMETERS} parameters, {MAX_PARAMETERS // 5} for one column by itself",
                remedy="Keep fewer columns or categories, or choose kd_tree.",
            )
        return models

    def _steps(self, models: ColumnModels, parents: Parents | None) -> tuple[FitStep, ...]:
        if self.sampler == "lists":
            return small_groups(models, parents)
        return blocks_of_columns(models, self.joint, parents)

    def _max_parents(self, models: ColumnModels, n: int, epsilon: Fraction) -> int | None:
        """Predictors that a column may have; None for all columns before it."""
        if self.parents is None and sum(model.size for model in models) <= self.joint:
            return None
        return max_parents(models, n * epsilon, self.parents)

    def _box_search(self, step: FitStep, models: ColumnModels, epsilon: Fraction, sensitivity: Fraction) -> BoxSearch:
        rate, span = float(epsilon / (2 * sensitivity)), REACH * float(step.prior(models)[1].max())
        return BoxSearch.of(step.size, CANDIDATES[step.size], rate, span, straight=self.criterion == "distance")

    def _model_rows(self, n: int) -> int:
        return min(self.ratio * n, max(n, MAX_MODEL_ROWS)) if self.ratio > 1 else n


def _report(progress: Progress, number: int, parts: int, stage: str, done: float, /, *points: Point) -> None:
    """Progress of one part as progress of the whole."""
    progress(stage, (number + done) / parts, *points)


def _report_walk(report: StepProgress, attempt: int, walked: ChainProgress) -> None:
    """A walk's progress with its live trace. Most walks need no second attempt, so the first gets most of the bar."""
    values = {
        "Steps accepted (%)": 100 * walked.acceptance,
        "Log density of the first walk": walked.log_density,
        "R-hat (agreement of the walks)": walked.rhat,
    }
    points = [Point(series=name, x=walked.step, y=value) for name, value in values.items() if value is not None]
    report(1 - 0.1**attempt + 0.9 * 0.1**attempt * walked.done, *points)
