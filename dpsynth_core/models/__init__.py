"""Generative models g(theta; z): tables as a fixed function of parameters and of randomness drawn beforehand."""
