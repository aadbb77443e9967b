"""The game between one generator and many critics (GS-WGAN; Chen, Orekondy & Fritz 2020), with tables for images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms.dp_gan.generator import Generator
from dpsynth_core.mechanisms.dp_gan.network_shape import NetworkShape
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout
from dpsynth_core.mechanisms.dp_gan.sanitise import clipped_sum, mean_gradient, sampled_draw
from dpsynth_core.mechanisms.dp_gan.schedule import Schedule
from dpsynth_core.privacy.accounting import SampledDraw
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.progress import Point, Progress
from dpsynth_core.table.private_table import PrivateTable

if TYPE_CHECKING:
    from dpsynth_core.mechanisms.dp_gan.players import Players

GRADIENTS = "gradients from the critics"
MOVEMENT = "Length of the generator's step"
GAP = "Gap that the critics see between original and generated rows"
PLANNED, COMPILED, TRAINED = 0.02, 0.1, 0.98
"""Progress at the end of each phase."""


@dataclass(frozen=True, kw_only=True)
class Game:
    layout: PointLayout
    shape: NetworkShape
    schedule: Schedule

    def play(self, table: PrivateTable, noise: Noise, progress: Progress) -> Generator:
        """Train, spending the whole budget in ``schedule.rounds`` equal draws."""
        from dpsynth_core.mechanisms.dp_gan.players import Players  # noqa: PLC0415  JAX takes long to import

        schedule, budget = self.schedule, noise.budget
        progress("Planning the noise", 0.0)
        draw = self.draw(schedule.calibrated(budget))
        progress("Compiling the networks", PLANNED)
        key = int(noise.integers(2**31, 1)[0])
        players = Players(self.layout, self.shape, rounds=schedule.rounds, noise_std=schedule.noise_std, key=key)
        players.compile()
        parts = deal_rows(table.n, schedule.parts, noise)
        rows = self.layout.encode(table).astype(np.float32)
        charge = noise.open_sampled(draw, schedule.rounds, epsilon=budget.epsilon, delta=budget.delta, label=GRADIENTS)
        for turn in range(schedule.rounds):
            # Which critics are used is drawn anew and never revealed: the accounting depends on it.
            selected = noise.distinct(schedule.parts, schedule.chosen)
            gradients, gap = self.ask(players, turn, [rows[parts[part]] for part in selected])
            noisy = self.sanitise(gradients[..., : self.layout.size], noise, draw, charge)
            moved = players.learn(turn, mean_gradient(noisy, schedule.chosen))
            points = [Point(series=MOVEMENT, x=turn + 1, y=moved, along="round", releasable=True)]
            if not noise.secure:
                # The critics' loss looks at the rows without noise, so a release never shows it.
                points.append(Point(series=GAP, x=turn + 1, y=gap, along="round"))
            progress("Training", COMPILED + (TRAINED - COMPILED) * (turn + 1) / schedule.rounds, *points)
        return Generator(layout=self.layout, layers=players.layers())

    def draw(self, multiplier: float) -> SampledDraw:
        chosen, parts = self.schedule.chosen, self.schedule.parts
        return sampled_draw(batch=self.shape.batch, multiplier=multiplier, chosen=chosen, parts=parts)

    def ask(self, players: Players, turn: int, parts: Sequence[NDArray[np.float32]]) -> tuple[NDArray[Any], float]:
        """The gradients that the critics of these parts return for each generated row: private."""
        return players.gradients(turn, parts)

    def sanitise(self, gradients: NDArray[Any], noise: Noise, draw: SampledDraw, charge: Charge) -> IntArray:
        """The same, clipped one by one, added up and with noise: public."""
        return noise.gaussian(clipped_sum(gradients), draw, charge)


def deal_rows(n: int, parts: int, noise: Noise) -> list[IntArray]:
    """Row indices dealt at random to so many parts of (nearly) equal size, whatever the rows hold."""
    return np.array_split(noise.distinct(n, n).astype(np.int64), parts)
