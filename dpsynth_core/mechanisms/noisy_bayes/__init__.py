"""Means, variances and dependence between columns, with noise or without, and a posterior draw from them."""

from dpsynth_core.mechanisms.noisy_bayes.mechanism import Bayes, NoisyBayes

__all__ = ["Bayes", "NoisyBayes"]
