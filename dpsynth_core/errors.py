"""Errors written for people.

Every message says what was wrong, what is allowed and what to do about it. None ever contains a cell of a
private table: a value that appears in a message is one that a person typed (a parameter, a bound, a column
name), so messages may be shown, logged and stored.
"""

from __future__ import annotations

import reprlib
from typing import Any

MAX_SHOWN = 100
"""Characters of a value that a message repeats."""
MAX_MESSAGE = 2_000
"""Characters of a message: a file or an address can hold names of any length."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = MAX_SHOWN
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxdict = 10


def shown(value: object) -> str:
    """A value as a message repeats it: as Python writes it, with the middle left out where that is long.

    Example:
        >>> shown(1.5), shown("epsilon"), shown(10**400)
        ('1.5', "'epsilon'", 'a number of about 401 digits')
        >>> len(shown("x" * 10**6))
        100
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 300:
        return f"a number of about {value.bit_length() * 30103 // 100_000 + 1} digits"  # log10(2) = 0.30103
    return _SHORT.repr(value)


class DPSynthError(Exception):
    """Base of every error that the core raises on purpose; its text can be shown to a user unchanged."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 4]} ...")

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel home from worker processes; the default would call __init__ with the finished text.
        return _rebuild, (type(self), str(self), self.__dict__)


def _rebuild(kind: type[DPSynthError], message: str, attributes: dict[str, Any]) -> DPSynthError:
    error = kind.__new__(kind)
    error.args = (message,)
    error.__dict__.update(attributes)
    return error


class EngineError(DPSynthError):
    """The place where the rows are cannot be reached, was changed, or cannot do what is asked of it."""


class ParameterError(DPSynthError, ValueError):
    """A parameter is outside its allowed range.

    Example:
        >>> raise ParameterError("epsilon", -1, allowed="greater than 0", remedy="Choose for instance 1.")
        Traceback (most recent call last):
        ...
        dpsynth_core.errors.ParameterError: epsilon is -1; allowed: greater than 0. Choose for instance 1.
    """

    def __init__(self, parameter: str, value: object, *, allowed: str, remedy: str = "") -> None:
        self.parameter = parameter
        self.value = value
        self.allowed = allowed
        super().__init__(f"{parameter} is {shown(value)}; allowed: {allowed}. {remedy}".rstrip())


class SchemaError(DPSynthError, ValueError):
    """A declared fact about a column is missing, impossible or contradictory."""

    def __init__(self, column: str | None, field: str, value: object, *, allowed: str, remedy: str = "") -> None:
        self.column = column
        self.field = field
        self.value = value
        self.allowed = allowed
        where = "Schema" if column is None else f"Column {shown(column)}"
        super().__init__(f"{where}: {field} is {shown(value)}; allowed: {allowed}. {remedy}".rstrip())


class IntakeError(DPSynthError, ValueError):
    """A file cannot be read as a table; the text says why in one sentence and what to do."""


class BudgetError(DPSynthError):
    """A charge would exceed what is left; nothing was drawn and nothing was shown."""


class LedgerError(DPSynthError):
    """The ledger was asked for something that its records do not allow."""


class RoleError(LedgerError):
    """Somebody was about to do what their roles do not let them do; nothing was recorded."""


def check_int(parameter: str, value: object, low: int, high: int, *, optional: bool = False) -> None:
    """Refuse anything but a whole number in a range (or, where that means "choose for me", None)."""
    if value is None and optional:
        return
    if not is_int(value, low, high):
        raise ParameterError(parameter, value, allowed=f"a whole number from {low} to {high}")


def is_int(value: object, low: int, high: int) -> bool:
    """Whether a value is a whole number in a range; true and false are not numbers."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def check_between(parameter: str, value: object, low: float, high: float) -> None:
    """Refuse anything but a number strictly between two others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
        raise ParameterError(parameter, value, allowed=f"a number greater than {low:g} and less than {high:g}")


def check_choice(parameter: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of the choices."""
    if value not in choices:
        raise ParameterError(parameter, value, allowed=", ".join(choices))


def check_text(parameter: str, value: object, *, optional: bool = False) -> None:
    """Refuse anything but text (or, where that means "choose for me", None)."""
    if value is None and optional:
        return
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(parameter, value, allowed="text that is not empty")
