"""DP GAN: a generator that learns from critics through noisy gradients (GS-WGAN; Chen, Orekondy & Fritz 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from dpsynth_core.errors import ParameterError, check_between, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.dp_gan.generator import Generator
from dpsynth_core.mechanisms.dp_gan.network_shape import NetworkShape
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout
from dpsynth_core.mechanisms.dp_gan.schedule import Schedule
from dpsynth_core.mechanisms.dp_gan.training import GRADIENTS, Game
from dpsynth_core.mechanisms.extras import require_extra
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_COORDINATES = 1_024
"""Numbers and labels of all columns together: a network's width."""
FEW_ROWS = 5_000
"""Rows times epsilon below which the result is mostly noise."""
MIN_PART, MAX_PART = 5, 50
"""Default range for the rows of a critic."""
MIN_ROUNDS, MAX_ROUNDS = 40, 200
"""Default range for the rounds of training."""
COMPILING_SECONDS, SECONDS_PER_CRITIC_STEP = 6.0, 2.5e-5
"""Once, and for each critic's step at a width of 32."""


@dataclass(frozen=True, kw_only=True)
class DPGAN(Mechanism):
    """Train a generator of rows against many critics, each of which sees a few rows of its own.

    Every round draws some critics, in secret, and trains them anew. The gradient that a critic returns for each
    generated row is clipped, and noise is added before the generator sees it. Only the generator is released.
    """

    key: ClassVar[str] = "dp_gan"
    title: ClassVar[str] = "DP GAN"
    summary: ClassVar[str] = (
        "Trains a neural network to generate rows that critics, each with a few original rows, cannot tell apart."
    )
    good_for: ClassVar[str] = (
        "Comparison, and tables with tens of thousands of rows. Small tables come out badly, and groups may differ "
        "although they do not in the original."
    )
    beware: ClassVar[str] = (
        "Numbers are only roughly right, rare labels may be lost, and groups that are alike may come out different: "
        "tests on its rows find differences that do not exist."
    )
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Chen, Orekondy & Fritz (2020), as compared by Montoya Perez et al. (2024)."
    needs_delta: ClassVar[bool] = True
    audit_runs: ClassVar[int] = 0
    max_rows: ClassVar[int | None] = 200_000

    rows_per_critic: int | None = setting(None, title="Rows per critic")
    """Rows that each critic sees. Fewer rows mean less noise, but weaker critics. None: from the rows and epsilon."""
    rounds: int | None = setting(None, title="Rounds of training")
    """Steps of the generator. All rounds together spend the budget, so more rounds mean more noise in each. None: from
    the rows and epsilon."""
    noise_multiplier: float = setting(1.07, title="Noise multiplier", advanced=True)
    """Noise relative to the most that one row can change. It decides how many critics a round uses; the exact noise
    follows from epsilon and delta."""
    batch: int = setting(16, title="Generated rows per round", advanced=True)
    """Rows for which each critic says in which direction they should change."""
    hidden: int = setting(64, title="Nodes per hidden layer", advanced=True)
    """Size of the two hidden layers of both networks."""
    critic_steps: int = setting(25, title="Training steps per critic", advanced=True)
    """They cost no privacy, because a critic is never released."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("rows_per_critic", self.rows_per_critic, 1, 100_000, optional=True)
        check_int("rounds", self.rounds, 1, 100_000, optional=True)
        check_between("noise_multiplier", self.noise_multiplier, 0, 1e6)
        check_int("batch", self.batch, 1, 1_000)
        check_int("hidden", self.hidden, 1, 1_024)
        check_int("critic_steps", self.critic_steps, 1, 10_000)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  alike for all
        n, granted = cls.rows_used(n), exact(epsilon, parameter="epsilon")
        part, rounds = _rows_per_critic(n, float(granted)), _rounds(n, float(granted))
        size = _layout(schema).size
        reason = (
            f"{max(1, n // part):,} critics see about {part} rows each; the generator learns {size} "
            f"coordinate(s) from their noisy gradients in {rounds} rounds."
        )
        if n * granted < FEW_ROWS:
            reason += " With so few rows at so small an epsilon, expect little but noise."
        return cls(reason=reason)

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:  # noqa: ARG003  alike for all tables
        """Few rounds and small networks, as the argument is the same for all: some critics per round, and all."""
        return {
            "some critics": cls(rows_per_critic=5, rounds=4, batch=2, hidden=8, critic_steps=2),
            "all critics": cls(rows_per_critic=5, rounds=2, batch=2, hidden=8, critic_steps=2, noise_multiplier=1e5),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step: all rounds are calibrated and paid for together."""
        require_extra(self.title, "gan", "jax", "optax")
        made, n = self.cells_made(schema, n), self.rows_used(n)
        layout, schedule = _layout(schema), self._schedule(n, budget)
        critic_steps = schedule.rounds * schedule.chosen * self.critic_steps
        return Plan(
            stages=(Stage(label=GRADIENTS, epsilon=budget.epsilon, scale=None, delta=budget.delta),),
            cuts=tuple(max(1, block.levels) for block in layout.blocks),
            cells=layout.size,
            draws=schedule.rounds * self.batch * layout.size,
            values=n * len(schema.columns),
            made=made,
            computing=critic_steps * SECONDS_PER_CRITIC_STEP * (1 + layout.width / 32),
            starting=COMPILING_SECONDS,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> Generator:
        """Deal the rows to critics; in every round sanitise the gradients of some of them and train the generator."""
        require_extra(self.title, "gan", "jax", "optax")
        rows = table.sample(self.rows_used(table.n), noise)
        return self._game(rows, noise.budget).play(rows, noise, progress)

    def _game(self, table: PrivateTable, budget: Budget) -> Game:
        layout, schedule = _layout(table.schema), self._schedule(table.n, budget)
        largest = -(-table.n // schedule.parts)
        shape = NetworkShape(
            width=layout.width,
            hidden=self.hidden,
            batch=self.batch,
            critic_steps=self.critic_steps,
            part=max(2 * MAX_PART, 1 << (largest - 1).bit_length()),
        )
        return Game(layout=layout, shape=shape, schedule=schedule)

    def _schedule(self, n: int, budget: Budget) -> Schedule:
        epsilon = float(budget.epsilon)
        part, rounds = self.rows_per_critic or _rows_per_critic(n, epsilon), self.rounds or _rounds(n, epsilon)
        return Schedule.of(n, budget, rows_per_critic=part, rounds=rounds, multiplier=self.noise_multiplier)


def _rows_per_critic(n: int, epsilon: float) -> int:
    """Few rows per critic where noise dominates; more where there is room, because such critics see more."""
    return max(MIN_PART, min(MAX_PART, int(n * min(epsilon, 10.0)) // 1_000))


def _rounds(n: int, epsilon: float) -> int:
    """Many small steps work better than few large ones, but where noise dominates it makes no difference."""
    return max(MIN_ROUNDS, min(MAX_ROUNDS, int(n * min(epsilon, 10.0)) // 5))


def _layout(schema: Schema) -> PointLayout:
    layout = PointLayout.of(schema)
    if layout.size > MAX_COORDINATES:
        raise ParameterError(
            "schema",
            f"{len(schema.columns)} columns with {layout.size:,} numbers and labels",
            allowed=f"at most {MAX_COORDINATES:,} numbers and labels in all",
            remedy="Leave out or merge labels, or use private_pgm.",
        )
    return layout
