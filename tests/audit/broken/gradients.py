"""GANs that are broken on purpose. Critics are canaries, so that what clipping allows is used up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import IntArray
from dpsynth_core.audit.canary import CanaryGame, CanaryGradients
from dpsynth_core.mechanisms.dp_gan.sanitise import CLIP, STEPS, clipped_sum
from dpsynth_core.mechanisms.dp_gan.training import Game
from dpsynth_core.privacy.accounting import SampledDraw
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Charge, SampledGaussian
from tests.audit.broken.sources import HalfNoise


class _ClipsBatches(CanaryGame):
    def sanitise(self, gradients: NDArray[Any], noise: Noise, draw: SampledDraw, charge: Charge) -> IntArray:
        mean = np.linalg.norm(gradients.mean(axis=1, keepdims=True), axis=2, keepdims=True)
        whole = np.trunc(gradients / np.maximum(mean, CLIP) * STEPS).astype(np.int64)
        return noise.gaussian(whole.sum(axis=0), draw, charge)


class PerBatchClipping(CanaryGradients):
    """Clips the mean gradient of a batch, and not the gradient at each generated row."""

    game: ClassVar[type[Game]] = _ClipsBatches


class _ListensTwice(CanaryGame):
    def sanitise(self, gradients: NDArray[Any], noise: Noise, draw: SampledDraw, charge: Charge) -> IntArray:
        noisy = super().sanitise(gradients, noise, draw, charge)
        call = SampledGaussian(values=clipped_sum(gradients), draw=draw, charge=charge)
        return (noisy + noise._perform(call)) // 2


class CriticStepsUncounted(CanaryGradients):
    """Listens to the critics twice in every round and pays for once."""

    game: ClassVar[type[Game]] = _ListensTwice


class _HalvesDistance(CanaryGame):
    def draw(self, multiplier: float) -> SampledDraw:
        draw = super().draw(multiplier)
        return replace(draw, scale=draw.scale / 2, squared=draw.squared // 4)


class OneClipForTwo(CanaryGradients):
    """Takes a replaced row to move a gradient by the clipping norm, where it can turn it around."""

    game: ClassVar[type[Game]] = _HalvesDistance


class _ForgetsBatch(CanaryGame):
    def draw(self, multiplier: float) -> SampledDraw:
        draw, batch = super().draw(multiplier), self.shape.batch
        return replace(draw, scale=draw.scale / batch**0.5, squared=draw.squared // batch)


class BatchForgotten(CanaryGradients):
    """Takes a row to move the gradient at one generated row of a batch, where a critic speaks of them all."""

    game: ClassVar[type[Game]] = _ForgetsBatch


class _HalvesNoise(CanaryGame):
    def sanitise(self, gradients: NDArray[Any], noise: Noise, draw: SampledDraw, charge: Charge) -> IntArray:
        half = replace(draw, scale=draw.scale / 2)
        call = SampledGaussian(values=clipped_sum(gradients), draw=half, charge=charge)
        return noise._perform(call)


class HalfTheGradientNoise(CanaryGradients):
    """Pays for noise of one scale and draws gradients at half of it."""

    game: ClassVar[type[Game]] = _HalvesNoise


class HalfNoiseOnGradients(HalfNoise):
    """A source with half the noise that was asked for, where only gradients are drawn."""
