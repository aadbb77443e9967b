"""What to sweep, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth_core.errors import ParameterError, check_choice, check_int
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import exact
from dpsynth_core.runs.synthesize import MAX_EPSILON, MIN_EPSILON

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MAX_ANALYSTS = 1_000
MECHANISM_KEYS = ("kd_tree", "perturbed_histogram", "smoothed_histogram")


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """What to sweep, as plain values that can be sent to a worker."""

    mechanisms: tuple[str, ...] = MECHANISM_KEYS
    """Registry keys; at each epsilon, every mechanism runs with the parameters that it suggests."""
    epsilons: tuple[float, ...] = EPSILONS
    """In increasing order."""
    repetitions: int = 3
    """Runs at each point; their spread is the band."""
    delta: float = 1e-6
    discoveries: bool = True
    analysts: int = 30
    """Maximum number of simulated analysts of each kind where each needs a table of its own; 0 leaves such mechanisms
    out. Histograms have hundreds at no cost."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.mechanisms or len(set(self.mechanisms)) < len(self.mechanisms):
            raise ParameterError("mechanisms", list(self.mechanisms), allowed="one or more mechanisms, each once")
        for key in self.mechanisms:
            check_choice("mechanisms", key, tuple(MECHANISMS))
        inside = all(MIN_EPSILON <= exact(e, parameter="epsilons") <= MAX_EPSILON for e in self.epsilons)
        if not self.epsilons or not inside or list(self.epsilons) != sorted(set(self.epsilons)):
            ends = f"{float(MIN_EPSILON):g} to {MAX_EPSILON:,}"
            raise ParameterError("epsilons", list(self.epsilons), allowed=f"increasing numbers from {ends}")
        check_int("repetitions", self.repetitions, 1, 1_000)
        check_int("analysts", self.analysts, 0, MAX_ANALYSTS)
        check_int("seed", self.seed, 0, 2**63)

    @property
    def runs(self) -> int:
        return len(self.mechanisms) * len(self.epsilons) * self.repetitions
