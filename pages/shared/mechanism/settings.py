"""What the visitor has chosen on the Mechanism page, without a widget in sight."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpsynth_core.errors import DPSynthError, ParameterError, shown
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import parameters
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Budget, Guarantee, exact
from dpsynth_core.runs.configuration import MAX_ROWS_HELD, RunConfig
from dpsynth_core.runs.selection import COST, SCORE_SHARE, PrivateSelection
from dpsynth_core.table.schema import Schema
from pages.shared.formatting import big_number

EPSILONS: tuple[str, ...] = (
    "0.01",
    "0.02",
    "0.03",
    "0.05",
    "0.07",
    "0.1",
    "0.15",
    "0.2",
    "0.25",
    "0.3",
    "0.5",
    "0.7",
    "1",
    "1.5",
    "2",
    "3",
    "4",
    "5",
    "7",
    "10",
)
"""Evenly spaced on a log scale, near enough, and all of them numbers that people say; those of the papers are here."""
DEFAULT_EPSILON = "1"
PROPOSED_ROWS = 1_000_000
"""Synthetic rows for a table that is too long for as many as it has."""
SHARE_OF_LEFT = Fraction(1, 2)
"""Of the epsilon that an account has left, at most this share is proposed for a run, so that another one can follow."""


@dataclass(kw_only=True)
class MechanismSettings:
    """A mechanism, its privacy, and what was changed from the suggested parameters."""

    key: str = "kd_tree"
    """The mechanism."""
    picked: bool = False
    """Whether the visitor chose or changed it; until then it is what suits the table."""
    epsilon: str = DEFAULT_EPSILON
    """For each synthetic table, as typed."""
    epsilon_picked: bool = False
    """Whether the visitor chose it; until then it is 1, or less where the account would be used up by that."""
    delta: str = "1e-6"
    """For each synthetic table, where the mechanism needs one or is granted one."""
    grant_delta: bool = False
    """Whether a mechanism that can do without a delta gets one: it is more accurate then, at the same epsilon."""
    copies: int = 1
    """Synthetic tables in one run."""
    seed: int | None = None
    """Teaching only."""
    candidates: list[str] = field(default_factory=list)
    """Mechanisms from which the best run is to be chosen privately."""
    max_runs: int | None = None
    """Most runs of such a choice; None: eight for each candidate."""
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By mechanism, the parameters that differ from the suggestion."""
    version: int = 0
    """Counts the changes made other than by typing, so that forms start afresh."""

    def pick(self, key: str) -> None:
        """The visitor's own choice."""
        self.key, self.picked = key, True
        self.version += 1

    def suit(self, schema: Schema) -> None:
        """Choose what suits a table, until the visitor has chosen."""
        if not self.picked and self.key != recommended(schema):
            self.key = recommended(schema)
            self.version += 1

    def pick_epsilon(self, epsilon: str) -> None:
        """The visitor's own choice."""
        self.epsilon, self.epsilon_picked = epsilon, True
        self.version += 1

    def suit_account(self, left: Fraction | None) -> None:
        """Propose an epsilon that leaves something for another run, until the visitor has chosen.

        Args:
            left: Epsilon that the account has left; None where there is none.
        """
        if self.epsilon_picked:
            return
        wanted = [DEFAULT_EPSILON, *reversed(EPSILONS[: EPSILONS.index(DEFAULT_EPSILON)])]
        fitting = [each for each in wanted if left is None or Fraction(each) <= left * SHARE_OF_LEFT]
        proposed = next(iter(fitting), EPSILONS[0])
        if proposed != self.epsilon:
            self.epsilon = proposed
            self.version += 1

    def suggested(self, schema: Schema, n: int, key: str | None = None) -> Mechanism:
        """What the mechanism itself suggests for this table."""
        suggestion = MECHANISMS[key or self.key].suggest(schema, n, self.epsilon, self.delta_of(key))
        # Synthetic rows are held in memory, so a longer table gets fewer of them than it has.
        return replace(suggestion, rows=PROPOSED_ROWS) if n > MAX_ROWS_HELD else suggestion

    def mechanism(self, schema: Schema, n: int, key: str | None = None) -> Mechanism:
        """The suggestion with the visitor's changes; raises where they make no sense, in the words of the form."""
        suggestion = self.suggested(schema, n, key)
        try:
            return replace(suggestion, **self.changed.get(key or self.key, {}))
        except ParameterError as problem:
            raise _in_form_words(problem, suggestion) from None

    def guarantee(self, schema: Schema, n: int, key: str | None = None) -> Guarantee:
        """The most that a run with these parameters could claim, before the columns' public facts are judged."""
        mechanism = self.mechanism(schema, n, key)
        best = Guarantee(status=mechanism.status, budget=Budget.of(self.epsilon, self.delta_of(key)))
        return mechanism.judge(best)

    def plan(self, schema: Schema, n: int, *, key: str | None = None, epsilon: str | float | None = None) -> Plan:
        """What would be done; raises where the parameters make no sense or do not fit."""
        mechanism = self.mechanism(schema, n, key)
        return plan_for(mechanism, schema, n, self.epsilon if epsilon is None else epsilon, self.delta_of(key))

    def seconds(self, schema: Schema, n: int, *, key: str | None = None) -> float:
        """How long a run should take, roughly; raises as the plan does."""
        mechanism = self.mechanism(schema, n, key)
        return RunConfig(mechanism=mechanism, epsilon=self.epsilon, delta=self.delta_of(key)).seconds(schema, n)

    def delta_of(self, key: str | None = None) -> str:
        """Zero, unless the mechanism needs more or is granted more."""
        kind = MECHANISMS[key or self.key]
        return self.delta if kind.needs_delta or (kind.takes_delta and self.grant_delta) else "0"

    def use_delta(self, delta: str) -> None:
        """Grant a delta to a mechanism that can do without one."""
        self.delta, self.grant_delta = delta, True
        self.version += 1

    def missing(self, schema: Schema, n: int) -> list[str]:
        """What is still to be done on the Mechanism page before anything can run."""
        try:
            mechanism = self.mechanism(schema, n)
        except DPSynthError:
            return ["Correct the parameters listed in red."]
        try:
            plan_for(mechanism, schema, n, self.epsilon, self.delta_of())
        except DPSynthError:
            return ["Choose a mechanism or parameters that fit this table."]
        return []

    def set(self, schema: Schema, n: int, name: str, value: Any) -> None:
        """Change one parameter, or take the change back where it equals the suggestion."""
        mine = self.changed.setdefault(self.key, {})
        if value == getattr(self.suggested(schema, n), name):
            mine.pop(name, None)
        else:
            mine[name] = value
            self.picked = True

    def use_preset(self, schema: Schema, n: int, name: str) -> None:
        """Take over the parameters with which a paper ran the mechanism; the others go back to the suggestion."""
        self.changed.pop(self.key, None)
        for parameter, value in MECHANISMS[self.key].presets[name].items():
            self.set(schema, n, parameter, value)
        self.picked = True
        self.version += 1

    def reset(self) -> None:
        """Back to what is suggested."""
        self.changed.pop(self.key, None)
        self.version += 1

    def config(self, schema: Schema, n: int, *, teaching: bool) -> RunConfig:
        """What would be run now."""
        return RunConfig(
            mechanism=self.mechanism(schema, n),
            epsilon=self.epsilon,
            delta=self.delta_of(),
            copies=self.copies,
            seed=self.seed if teaching else None,
        )

    def selection_config(self, schema: Schema, n: int, *, teaching: bool) -> RunConfig:
        """The best of several runs, at the same total; each candidate with the parameters for what a run gets."""
        fit = Budget.of(self.epsilon).epsilon / COST * (1 - SCORE_SHARE)
        candidates = [
            replace(MECHANISMS[key].suggest(schema, n, fit), **self.changed.get(key, {})) for key in self.candidates
        ]
        return RunConfig(
            mechanism=candidates[0],
            epsilon=self.epsilon,
            seed=self.seed if teaching else None,
            selection=PrivateSelection.of(candidates, self.max_runs),
        )

    def load(self, config: RunConfig) -> None:
        """Take over a saved configuration, parameter by parameter."""
        names = [parameter.name for parameter in parameters(type(config.mechanism))]
        self.key, self.epsilon, self.copies = config.mechanism.key, config.epsilon, config.copies
        self.picked, self.epsilon_picked, self.grant_delta = True, True, exact(config.delta, parameter="delta") > 0
        self.delta = config.delta if self.grant_delta else self.delta
        self.changed[self.key] = {name: getattr(config.mechanism, name) for name in names}
        self.version += 1


def _in_form_words(problem: ParameterError, mechanism: Mechanism) -> DPSynthError:
    """The same problem under the name that the reader sees."""
    titles = {parameter.name: parameter.title for parameter in parameters(type(mechanism))}
    name, text, value = problem.parameter, str(problem), problem.value
    if name == "cells" and isinstance(value, int):
        return DPSynthError(text.replace(f"cells is {shown(value)}", f"It would need {big_number(value)} cells", 1))
    return DPSynthError(f"{titles[name]}{text[len(name) :]}") if name in titles and text.startswith(name) else problem


def plan_for(mechanism: Mechanism, schema: Schema, n: int, epsilon: str | float, delta: str = "0") -> Plan:
    """What the mechanism would do; raises where it does not fit, in the words of the form."""
    try:
        return mechanism.plan(schema, n, Budget.of(epsilon, delta).per_row(schema.rows_per_person))
    except ParameterError as problem:
        raise _in_form_words(problem, mechanism) from None
