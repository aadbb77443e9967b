"""Mean embeddings that are broken on purpose."""

from __future__ import annotations

from dpsynth_core.mechanisms.mean_embedding.balog_points import BalogPoints
from dpsynth_core.mechanisms.mean_embedding.domain_points import PointSpace, WeightedPoints
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_rows import PrivateRows


class LeakedPoints(BalogPoints):
    """Takes rows of the table for its public points."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> WeightedPoints:
        space = PointSpace.of(table.schema, self.width)
        every = {name: table.positions(name) for name in table.schema.names}
        some = {
            name: Positions(
                values=found.values[: self.points],
                missing=None if found.missing is None else found.missing[: self.points],
            )
            for name, found in every.items()
        }
        return self._weighed(table, space, some, noise, progress)
