"""What a person says about a table when publishing it; nothing here is read from data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from dpsynth_core.errors import ParameterError

MAX_CHARACTERS = 2_000


@dataclass(frozen=True, kw_only=True)
class Publication:
    """Words and facts that accompany a release, all of them typed by a person and meant for everybody.

    Example:
        >>> Publication(title="Visits to a clinic, synthetic").title
        'Visits to a clinic, synthetic'
    """

    title: str = "Synthetic table"
    description: str = ""
    """What its rows are about, in a few sentences."""
    publisher: str = ""
    license: str = ""
    """Under which terms: the address of a licence, or its name."""
    original_rows: int | None = None
    """Rows of the original, which are public; analysts need them to judge a test. None: not stated."""
    published: date | None = None
    """When; None: not stated."""

    def __post_init__(self) -> None:
        for name in ("title", "description", "publisher", "license"):
            value = getattr(self, name)
            if type(value) is not str or len(value) > MAX_CHARACTERS:
                shown = value[:50] + "…" if type(value) is str else type(value).__name__
                raise ParameterError(name, shown, allowed=f"text of up to {MAX_CHARACTERS:,} characters")
        if not self.title.strip():
            raise ParameterError("title", self.title, allowed="text that is not empty")
        if self.original_rows is not None and (type(self.original_rows) is not int or self.original_rows < 1):
            raise ParameterError("original_rows", type(self.original_rows).__name__, allowed="a whole number above 0")
        if self.published is not None and type(self.published) is not date:
            raise ParameterError("published", type(self.published).__name__, allowed="a date")
