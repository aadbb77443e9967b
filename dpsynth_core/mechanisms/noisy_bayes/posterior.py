"""Posterior draws, from uniform numbers alone, so that one source of randomness serves for everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from dpsynth_core.arrays import FloatArray
from dpsynth_core.table.encoding import Uniform

PRIOR_ROWS = 0.01
"""Weight of the prior: a hundredth of a row, spread evenly over the declared range."""
_MIN_UNIFORM = 2.0**-54
"""Replaces a uniform zero, whose quantile is not finite."""


@dataclass(frozen=True, kw_only=True)
class NormalInverseWishart:
    """Law of a mean and a covariance: covariance ~ W^-1(scale, freedom), mean ~ N(centre, covariance / weight).

    Example:
        >>> prior = NormalInverseWishart.prior(2)
        >>> prior.updated(np.zeros(2), np.eye(2), 100).freedom
        104.0
    """

    centre: FloatArray
    weight: float
    """Of the mean, in rows (kappa)."""
    scale: FloatArray
    """Of the covariance (Psi)."""
    freedom: float
    """Degrees of freedom (nu)."""

    @classmethod
    def prior(cls, d: int) -> NormalInverseWishart:
        """Proper, and almost nothing: from the declared range alone, whose middle is 0 and ends are -1 and 1."""
        return cls(centre=np.zeros(d), weight=PRIOR_ROWS, scale=PRIOR_ROWS / 3 * np.eye(d), freedom=d + 2.0)

    def updated(self, mean: FloatArray, covariance: FloatArray, n: int) -> NormalInverseWishart:
        """After n rows with this mean and covariance (divisor n): Gelman et al. (2013), section 3.6."""
        weight = self.weight + n
        offset = mean - self.centre
        return NormalInverseWishart(
            centre=(self.weight * self.centre + n * mean) / weight,
            weight=weight,
            scale=self.scale + n * covariance + self.weight * n / weight * np.outer(offset, offset),
            freedom=self.freedom + n,
        )

    def draw(self, uniform: Uniform) -> tuple[FloatArray, FloatArray]:
        """A mean, and a lower triangle whose product with its transpose is the covariance."""
        d = len(self.centre)
        if not d:
            return np.zeros(0), np.zeros((0, 0))
        # Bartlett (1933): if A has chi on its diagonal and normals below, A A' ~ W(I, nu); its inverse is W^-1(I, nu).
        bartlett = np.zeros((d, d))
        bartlett[np.tril_indices(d, -1)] = normal(uniform, d * (d - 1) // 2)
        np.fill_diagonal(bartlett, np.sqrt([chi_square(uniform, self.freedom - i) for i in range(d)]))
        # L A'^-1 has the product L (A A')^-1 L': an upper triangle times itself, made lower by Cholesky.
        half = np.linalg.solve(bartlett, np.linalg.cholesky(self.scale).T).T
        root = np.linalg.cholesky(half @ half.T)
        return self.centre + root @ normal(uniform, d) / np.sqrt(self.weight), root


def normal(uniform: Uniform, size: int) -> FloatArray:
    return np.asarray(special.ndtri(np.maximum(uniform(size), _MIN_UNIFORM)))


def chi_square(uniform: Uniform, freedom: float) -> float:
    return 2 * float(special.gammaincinv(freedom / 2, max(uniform(1)[0], _MIN_UNIFORM)))


def dirichlet(uniform: Uniform, weights: FloatArray) -> FloatArray:
    gammas = special.gammaincinv(weights, np.maximum(uniform(len(weights)), _MIN_UNIFORM))
    total = gammas.sum()
    # With tiny weights all of them can underflow; use their mean then.
    return np.asarray(gammas / total if total > 0 else weights / weights.sum())
