"""Sizes of the networks, and what training in JAX and drawing in NumPy must agree on."""

from __future__ import annotations

from dataclasses import dataclass

SLOPE = 0.2
"""Of the leaky ReLU below zero."""
LOGIT_BOUND = 10.0
"""Logits of labels stay below this."""
TEMPERATURE = 0.66
"""Of the soft choice between labels that critics see."""


@dataclass(frozen=True, kw_only=True)
class NetworkShape:
    width: int
    """Coordinates of a row, rounded up."""
    hidden: int
    """Nodes of each of the two hidden layers, in both networks."""
    batch: int
    """Generated rows whose gradients are released in one step."""
    critic_steps: int
    part: int
    """Maximum rows of a part; smaller parts are padded, so that tables of all sizes share compiled code."""
    critic_batch: int = 16
    """Rows of each of a critic's steps."""
    latent: int = 16
    """Random numbers that a generated row is made from."""

    @property
    def generator(self) -> tuple[int, ...]:
        return self.latent, self.hidden, self.hidden, self.width

    @property
    def critic(self) -> tuple[int, ...]:
        return self.width, self.hidden, self.hidden, 1
