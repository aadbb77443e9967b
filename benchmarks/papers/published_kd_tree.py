"""The KD tree of Kreačić et al. (2023) as printed: Algorithm 3 finds the boxes, Algorithm 1 counts them from line 9 on.

No count is used twice and none is made to agree with another; every leaf must reach the threshold, and the boxes are
split at Lemma 10's tau. Two things are not as printed: bounds are declared (Algorithm 2 reads them from the rows, which
is not private), and empty boxes take part exactly (the paper rules out, up to a small probability, that one is split).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpsynth_core.mechanisms.kd_tree.growth import grow
from dpsynth_core.mechanisms.kd_tree.interleaving import Coding
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree, box_ranges
from dpsynth_core.mechanisms.kd_tree.ranked_codes import RankedCodes
from dpsynth_core.mechanisms.kd_tree.split_rules import LevelRule
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows

FAILURE = 1e-4
"""Probability that an empty box is split (delta in Lemma 10)."""


@dataclass(frozen=True, kw_only=True)
class PublishedKDTree(KDTree):
    """Algorithms 3 and 1, with ``free_levels`` (h) and ``max_levels`` (h') as given."""

    key: ClassVar[str] = "published_kd_tree"
    title: ClassVar[str] = "KD tree as published"
    paper: ClassVar[str] = "Kreačić et al. (2023), Algorithms 1, 3 and 5."

    rule: Literal["privtree", "levels"] = "levels"
    inner_levels: int = 0
    placement: Literal["uniform", "centre"] = "centre"

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Recursive binning, then noise and threshold on every leaf."""
        progress("Deciding which boxes to split", 0.2)
        coding = Coding.of(table.schema)
        free, stop = self._depths(table.schema, coding)
        splitting, counting = self._shares(noise.budget, stop - free)
        rule = None
        if splitting is not None:
            epsilon = splitting.epsilon / (stop - free)
            # Lemma 10: 2 (h' - h) / eps' log((2^h + n (h' - h)) / delta).
            boxes = coding.boxes(free) + table.n * (stop - free)
            tau = math.ceil(float(HISTOGRAM_SENSITIVITY / epsilon) * math.log(boxes / FAILURE))
            rule = LevelRule(epsilon=epsilon, threshold=tau)
        leaves = grow(coding, RankedCodes(coding, table, free), free=free, stop=stop, rule=rule, noise=noise)
        progress("Counting the boxes", 0.6)
        threshold, noisy = self._count_leaves(leaves, noise, counting, table.n)
        kept = noisy.values >= threshold
        depth, prefix = leaves.boxes
        depth = np.append(depth[kept], np.full(len(noisy.extra_keys), free))
        prefix = np.append(prefix[kept], noisy.extra_keys ^ (np.int64(1) << free))
        low, high = box_ranges(coding, depth, prefix)
        weights = np.append(noisy.values[kept], noisy.extra_values).astype(np.float64)
        axes = tuple(halving.axis for halving in coding.halvings)
        return PartitionModel.of(axes, low, high, weights, rows=table.n, centre=self.placement == "centre")
