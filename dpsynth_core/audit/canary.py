"""A GAN whose critics are as bad as critics can be: one row turns every gradient around.

Trained critics hardly ever use up what clipping allows, so attacks on them prove little. These do, which makes the
attack on a round a test of clipping, of the declared distance and of the noise. The rest of the training is the real
one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.mechanisms.dp_gan.mechanism import DPGAN
from dpsynth_core.mechanisms.dp_gan.training import Game
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.private_table import PrivateTable

if TYPE_CHECKING:
    from dpsynth_core.mechanisms.dp_gan.players import Players

LOUD = 1e3
"""Norm of a canary's gradient, far beyond the clipping norm."""


class CanaryGame(Game):
    def ask(self, players: Players, turn: int, parts: Sequence[NDArray[np.float32]]) -> tuple[NDArray[Any], float]:  # noqa: ARG002
        """Loud, along one coordinate, up and down in turn over the generated rows, so that their mean is silent."""
        out = np.zeros((len(parts), self.shape.batch, self.shape.width))
        turns = (-1.0) ** np.arange(self.shape.batch)
        for index, part in enumerate(parts):
            out[index, :, 0] = LOUD * turns * _sign(part)
        return out, 0.0


def _sign(rows: NDArray[np.float32]) -> int:
    """Whether all rows are alike; where they are not, anything that a replaced row is likely to change."""
    if (rows == rows[0]).all():
        return 1
    return -1 if zlib.crc32(rows.tobytes()) % 3 else 1


@dataclass(frozen=True, kw_only=True)
class CanaryGradients(DPGAN):
    key: ClassVar[str] = "probe: gradients"
    game: ClassVar[type[Game]] = CanaryGame

    def _game(self, table: PrivateTable, budget: Budget) -> Game:
        real = super()._game(table, budget)
        return self.game(layout=real.layout, shape=real.shape, schedule=real.schedule)
