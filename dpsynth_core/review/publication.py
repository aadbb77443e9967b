"""What a person says about a table when publishing it; nothing here is read from data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeAlias, get_args

from dpsynth_core.errors import ParameterError

MAX_CHARACTERS = 2_000
ChosenBy: TypeAlias = Literal["private diagnostics", "public facts only"]
PRIVATE_DIAGNOSTICS: ChosenBy = "private diagnostics"
PUBLIC_FACTS: ChosenBy = "public facts only"


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
    chosen_by: ChosenBy | None = None
    """What those who chose this release had seen; None: not stated."""
    chosen_from: int | None = None
    """How many releases of the same original it was chosen from; None: not stated."""

    def __post_init__(self) -> None:
        for name in ("title", "description", "publisher", "license"):
            value = getattr(self, name)
            if type(value) is not str or len(value) > MAX_CHARACTERS:
                shown = value[:50] + "…" if type(value) is str else type(value).__name__
                raise ParameterError(name, shown, allowed=f"text of up to {MAX_CHARACTERS:,} characters")
        if not self.title.strip():
            raise ParameterError("title", self.title, allowed="text that is not empty")
        for name in ("original_rows", "chosen_from"):
            count = getattr(self, name)
            if count is not None and (type(count) is not int or count < 1):
                raise ParameterError(name, type(count).__name__, allowed="a whole number above 0")
        if self.chosen_by not in (None, *get_args(ChosenBy)):
            raise ParameterError("chosen_by", type(self.chosen_by).__name__, allowed=" or ".join(get_args(ChosenBy)))
        if self.published is not None and type(self.published) is not date:
            raise ParameterError("published", type(self.published).__name__, allowed="a date")
