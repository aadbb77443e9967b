"""DP GAN: a generator that learns from critics through noisy gradients (GS-WGAN; Chen, Orekondy & Fritz 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from dpsynth_core.errors import ParameterError, check_between, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.dp_gan.generator import Generator
from dpsynth_core.mechanisms.dp_gan.layout import Layout
from dpsynth_core.mechanisms.dp_gan.schedule import Schedule
from dpsynth_core.mechanisms.dp_gan.shape import Shape
from dpsynth_core.mechanisms.dp_gan.training import GRADIENTS, Game
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MOST_COORDINATES = 1_024
"""Numbers and labels of all columns together: a network's width."""
FEW_ROWS = 5_000
"""Rows times epsilon below which little but noise is to be expected."""
LEAST_PART, MOST_PART = 5, 50
"""Rows of a critic, unless told otherwise."""
LEAST_ROUNDS, MOST_ROUNDS = 40, 200
"""Of training, unless told otherwise."""
COMPILING, SECONDS_PER_CRITIC = 6.0, 2.5e-5
"""Of computing: once, and for each critic's step at a width of 32."""


@dataclass(frozen=True, kw_only=True)
class DPGAN(Mechanism):
    """Train a generator of rows against many critics, each of which knows a few rows of its own.

    Every round draws some critics, which nobody learns, and trains them anew. What flows back from a critic to each
    generated row is clipped, and noise is added before the generator sees it. Only the generator is released.
    """

    key: ClassVar[str] = "dp_gan"
    title: ClassVar[str] = "DP GAN"
    summary: ClassVar[str] = "Trains a neural network to invent rows that critics with few rows each cannot tell apart."
    good_for: ClassVar[str] = (
        "Comparing, and tables of tens of thousands of rows. Small tables come out badly, and groups may differ where "
        "they do not in the original."
    )
    beware: ClassVar[str] = (
        "Numbers come out roughly, rare labels may be lost, and groups that are alike may come out different: tests on "
        "its rows find differences that are not there."
    )
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Chen, Orekondy & Fritz (2020), as compared by Montoya Perez et al. (2024)."
    needs_delta: ClassVar[bool] = True
    audit_runs: ClassVar[int] = 0

    rows_per_critic: int | None = setting(None, title="Rows of a critic")
    """Rows that each critic knows. The fewer, the less noise, and the less a critic can tell. None: from the rows and
    epsilon."""
    rounds: int | None = setting(None, title="Rounds of training")
    """Steps of the generator. The budget is spent at the last one, and not before: more rounds mean more noise in each.
    None: from the rows and epsilon."""
    noise_multiplier: float = setting(1.07, title="Noise multiplier", advanced=True)
    """Noise over the most that one row can move. As many critics are heard in a round as need about this much; the
    exact noise follows from epsilon and delta."""
    batch: int = setting(16, title="Generated rows in a round", advanced=True)
    """Rows at which each critic is asked in which direction they should change."""
    hidden: int = setting(64, title="Nodes of a hidden layer", advanced=True)
    """Size of the two hidden layers of both networks."""
    critic_steps: int = setting(25, title="Steps of a critic", advanced=True)
    """Steps that a new critic learns for; they cost no privacy, because a critic is never released."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("rows_per_critic", self.rows_per_critic, 1, 100_000, optional=True)
        check_int("rounds", self.rounds, 1, 100_000, optional=True)
        check_between("noise_multiplier", self.noise_multiplier, 0, 1e6)
        check_int("batch", self.batch, 1, 1_000)
        check_int("hidden", self.hidden, 1, 1_024)
        check_int("critic_steps", self.critic_steps, 1, 10_000)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount) -> Self:
        """Parameters from public facts only; they adapt to the noise by themselves."""
        granted = exact(epsilon, parameter="epsilon")
        part, rounds = _part(n, float(granted)), _rounds(n, float(granted))
        size = _checked(schema).size
        reason = (
            f"{max(1, n // part):,} critics know about {part} rows each; the generator learns {size} "
            f"coordinate(s) from their noisy gradients in {rounds} rounds."
        )
        if n * granted < FEW_ROWS:
            reason += " With so few rows at so small an epsilon, expect little but noise."
        return cls(reason=reason)

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:  # noqa: ARG003  alike for all tables
        """Few rounds and small networks, as the argument is the same for all: some critics a round, and all of them."""
        return {
            "some critics": cls(rows_per_critic=5, rounds=4, batch=2, hidden=8, critic_steps=2),
            "all critics": cls(rows_per_critic=5, rounds=2, batch=2, hidden=8, critic_steps=2, noise_multiplier=1e5),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step: all rounds are calibrated and paid for together."""
        layout, schedule = _checked(schema), self._schedule(n, budget)
        critic_steps = schedule.rounds * schedule.chosen * self.critic_steps
        return Plan(
            stages=(Stage(label=GRADIENTS, epsilon=budget.epsilon, scale=None),),
            cuts=tuple(max(1, block.levels) for block in layout.blocks),
            cells=layout.size,
            draws=schedule.rounds * self.batch * layout.size,
            values=n * len(schema.columns),
            computing=COMPILING + critic_steps * SECONDS_PER_CRITIC * (1 + layout.width / 32),
        )

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> Generator:
        """Deal the rows out to critics; in every round sanitise what some of them say, and let the generator learn."""
        return self._game(table, noise.budget).play(table, noise, progress)

    def _game(self, table: PrivateTable, budget: Budget) -> Game:
        layout, schedule = _checked(table.schema), self._schedule(table.n, budget)
        largest = -(-table.n // schedule.parts)
        shape = Shape(
            width=layout.width, hidden=self.hidden, batch=self.batch, critic_steps=self.critic_steps,
            part=max(2 * MOST_PART, 1 << (largest - 1).bit_length()),
        )  # fmt: skip
        return Game(layout=layout, shape=shape, schedule=schedule)

    def _schedule(self, n: int, budget: Budget) -> Schedule:
        epsilon = float(budget.epsilon)
        return Schedule.of(
            n, budget, rows_per_critic=self.rows_per_critic or _part(n, epsilon),
            rounds=self.rounds or _rounds(n, epsilon), multiplier=self.noise_multiplier,
        )  # fmt: skip


def _part(n: int, epsilon: float) -> int:
    """Few rows a critic where noise prevails; more where there is room, because such critics see more."""
    return max(LEAST_PART, min(MOST_PART, int(n * min(epsilon, 10.0)) // 1_000))


def _rounds(n: int, epsilon: float) -> int:
    """Many small steps find their way better than few large ones, but where noise prevails it makes no difference."""
    return max(LEAST_ROUNDS, min(MOST_ROUNDS, int(n * min(epsilon, 10.0)) // 5))


def _checked(schema: Schema) -> Layout:
    layout = Layout.of(schema)
    if layout.size > MOST_COORDINATES:
        raise ParameterError(
            "schema", f"{len(schema.columns)} columns with {layout.size:,} numbers and labels",
            allowed=f"at most {MOST_COORDINATES:,} numbers and labels in all",
            remedy="Leave out or merge labels, or use private_pgm.",
        )  # fmt: skip
    return layout
