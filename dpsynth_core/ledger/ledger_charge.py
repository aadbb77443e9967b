"""A charge in the hands of whoever made it: what may still become of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.accounts import ChargeState, Details, Entry

if TYPE_CHECKING:
    from dpsynth_core.ledger.ledger import Ledger


class LedgerCharge:
    """A charge that is on record and counts as spent, until it is refunded."""

    def __init__(self, ledger: Ledger, entry: Entry, *, fresh: bool) -> None:
        """Wrap a charge; ``fresh`` is False if it was on record before, so that its run must not draw again."""
        self.entry, self.fresh, self.has_drawn = entry, fresh, False
        self.state: ChargeState = entry.state
        self._ledger = ledger

    @property
    def id(self) -> int:
        """Its number in the ledger."""
        return self.entry.id

    def drawn(self) -> None:
        """Say that noise is about to be drawn, so that the charge cannot be refunded by a failure from now on.

        Call it before private rows can influence anything that can be seen, a failure included.
        """
        if self.state == "refunded":
            raise LedgerError(f"Charge {self.id} was refunded, so nothing may be drawn for it. Make a new charge.")
        self.has_drawn = True

    def commit(self, *, result: Details | None = None) -> None:
        """Record that it was used, and what for if ``result`` says more; repeating it changes nothing."""
        self._ledger.commit(self.id, result=result)
        self.state = "committed"

    def refund(self, reason: str) -> None:
        """Give it back because nothing was drawn; it stays on record. Repeating it changes nothing."""
        if self.has_drawn:
            raise LedgerError(f"Noise was drawn for charge {self.id}, so it cannot be refunded. Commit it.")
        self._ledger.refund(self.id, reason)
        self.state = "refunded"
