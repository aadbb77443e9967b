"""Classes by key, each imported when it is first asked for: listing what there is loads neither JAX nor Numba."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, type[T]], Generic[T]):
    """A read-only mapping from keys to classes that imports a class on first access.

    Example:
        >>> numbers: Registry[object] = Registry("collections", {"counter": ":Counter", "mapping": "abc:Mapping"})
        >>> list(numbers)
        ['counter', 'mapping']
        >>> numbers["counter"].__name__
        'Counter'
    """

    def __init__(self, package: str, classes: Mapping[str, str]) -> None:
        """Register classes without importing them.

        Args:
            package: The package that holds the modules.
            classes: For each key, ``module:class`` with the module's name inside the package.
        """
        self._package = package
        self._classes: dict[str, str | type[T]] = dict(classes)

    def __getitem__(self, key: str) -> type[T]:
        entry = self._classes[key]
        if not isinstance(entry, str):
            return entry
        module, name = entry.split(":")
        loaded: type[T] = getattr(import_module(f"{self._package}.{module}".rstrip(".")), name)
        self._classes[key] = loaded
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __contains__(self, key: object) -> bool:
        return key in self._classes  # Mapping's own would import the class

    @contextmanager
    def register(self, key: str, kind: type[T]) -> Iterator[None]:
        """One more class for the length of a ``with`` block, for tests and experiments."""
        if key in self:
            raise ValueError(f"{key} is registered already")
        self._classes[key] = kind
        try:
            yield
        finally:
            del self._classes[key]
