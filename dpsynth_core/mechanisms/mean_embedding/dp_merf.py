"""DP-MERF (Harder, Adamczewski & Park 2021): a generator that learns from one noisy mean of random features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import ParameterError, check_between, check_int, check_text
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.dp_gan.generator import Generator
from dpsynth_core.mechanisms.extras import require_extra
from dpsynth_core.mechanisms.mean_embedding.domain_points import PointSpace
from dpsynth_core.mechanisms.mean_embedding.fourier import fourier, frequencies
from dpsynth_core.mechanisms.mean_embedding.noisy_mean import MAX_EMBEDDED_ROWS, MEAN, embedded_sum, noisy_mean
from dpsynth_core.mechanisms.numbers_and_labels import to_levels
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

COMPILING_SECONDS, SECONDS_PER_FEATURE = 4.0, 2.5e-8
"""Once; and for each feature of a generated row in one step of training, its gradient included."""
EMBEDDED, COMPILED = 0.3, 0.35
"""Progress once the rows are embedded, and once the network is compiled."""


@dataclass(frozen=True, kw_only=True)
class DPMERF(Mechanism):
    """Add noise once to the mean of random Fourier features of the rows; train a generator whose rows have that mean.

    With a label, rows are averaged apart for each of its values, which costs no more. Training looks at the noisy mean
    only, so it may take any number of steps.
    """

    key: ClassVar[str] = "dp_merf"
    title: ClassVar[str] = "DP-MERF"
    summary: ClassVar[str] = (
        "Adds noise once to a mean of random features and trains a network whose rows have that mean."
    )
    good_for: ClassVar[str] = (
        "Comparison: rows to train a classifier with. Single columns come out more roughly than by other mechanisms."
    )
    beware: ClassVar[str] = (
        "The network sees a few thousand noisy numbers and nothing else: shares and ranges are only roughly right, and "
        "rare labels may be lost."
    )
    paper: ClassVar[str] = "Harder, Adamczewski & Park (2021), as compared by Kreačić et al. (2023)."
    needs_delta: ClassVar[bool] = True
    counts_cells: ClassVar[bool] = False
    comparator: ClassVar[bool] = True
    max_rows: ClassVar[int | None] = MAX_EMBEDDED_ROWS
    audit_runs: ClassVar[int] = 0

    label: str | None = setting(None, title="Label")
    """A column of labels that classifiers will be trained for: rows are averaged apart for each label. None: all rows
    are averaged together."""
    features: int = setting(1_000, title="Random features")
    """Numbers that the rows are averaged in, for each label. More come closer to the kernel and get more noise in
    all."""
    training_steps: int = setting(1_000, title="Steps of training")
    """They cost no privacy, but time."""
    width: float | None = setting(None, title="Kernel width", advanced=True)
    """Standard deviation of the kernel, where every declared range has length two. None: a tenth times the root of the
    number of columns."""
    batch: int = setting(256, title="Generated rows per step", advanced=True)
    """Rows whose mean is compared with the noisy one in each step."""
    hidden: int = setting(64, title="Nodes per hidden layer", advanced=True)
    """Size of the two hidden layers of the generator."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("label", self.label, optional=True)
        check_int("features", self.features, 2, 20_000)
        check_int("training_steps", self.training_steps, 1, 100_000)
        check_int("batch", self.batch, 2, 10_000)
        check_int("hidden", self.hidden, 1, 1_024)
        if self.width is not None:
            check_between("width", self.width, 0, 1e6)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  alike for all
        return cls(reason="1,000 random features of a kernel of the usual width; name a label to keep what tells it.")

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:  # noqa: ARG003
        """A small network for few steps, without a label and with the first one that there is."""
        small: dict[str, Any] = {"features": 10, "training_steps": 2, "batch": 4, "hidden": 4}
        found = {"without a label": cls(**small)}
        labels = [block.column.name for block in PointSpace.of(schema, None).layout.blocks if not block.number]
        return found | ({"with a label": cls(label=labels[0], **small)} if labels else {})

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        require_extra(self.title, "gan", "jax", "optax")
        size, labels = PointSpace.of(schema, self.width).size, self._labels(schema)
        training = self.training_steps * self.batch * (self.features * (2 + labels / 4) + size * 10)
        return Plan(
            stages=(Stage(label=MEAN, epsilon=budget.epsilon, scale=None, delta=budget.delta),),
            cuts=tuple(1 for _ in schema.columns),
            cells=self.features * labels,
            draws=self.features * labels,
            values=n * len(schema.columns),
            made=self.cells_made(schema, n),
            computing=n * self.features * 3e-8 + training * SECONDS_PER_FEATURE,
            starting=COMPILING_SECONDS,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> Generator:
        """Random features, their noisy mean over the rows of each label, and a generator with the same mean."""
        require_extra(self.title, "gan", "jax", "optax")
        progress("Choosing features", 0.0)
        space, labels = PointSpace.of(table.schema, self.width), self._labels(table.schema)
        rows = table.sample(self.rows_used(table.n), noise)
        omega = frequencies(-(-self.features // 2), space.size, noise)
        points = space.encode(rows)
        # Harder et al., Eq. 9: a row (x, y) becomes phi(x) times the unit vector of y, of norm one again.
        shape = labels, 2 * omega.shape[1]
        sums = embedded_sum(
            points, self._groups(rows), lambda some: fourier(some, omega), shape=shape, progress=progress
        )
        mean = noisy_mean(sums, rows.n, noise)
        progress("Compiling the network", EMBEDDED)
        from dpsynth_core.mechanisms.mean_embedding.matching import Matching  # noqa: PLC0415  JAX takes long to import

        key = int(noise.integers(2**31, 1)[0])
        matching = Matching(
            space, omega, mean, label=self._block(table.schema), batch=self.batch, hidden=self.hidden, key=key
        )
        for step in matching.train(self.training_steps):
            progress("Training", COMPILED + (1 - COMPILED) * step / self.training_steps)
        return Generator(layout=space.layout, layers=matching.layers())

    def _block(self, schema: Schema) -> int | None:
        """Index of the label's block."""
        if self.label is None:
            return None
        blocks = PointSpace.of(schema, self.width).layout.blocks
        names = [block.column.name for block in blocks if not block.number]
        if self.label not in names:
            allowed = ", ".join(names) or "nothing: no column has labels"
            raise ParameterError(
                "label", self.label, allowed=allowed, remedy="Leave it empty, or choose a column of labels."
            )
        return [block.column.name for block in blocks].index(self.label)

    def _labels(self, schema: Schema) -> int:
        index = self._block(schema)
        return 1 if index is None else PointSpace.of(schema, self.width).layout.blocks[index].levels

    def _groups(self, table: PrivateTable) -> IntArray:
        """For each row the index of its label; 0 where there is none."""
        if self.label is None:
            return np.zeros(table.n, dtype=np.int64)
        return to_levels(table.schema[self.label], table.positions(self.label))
