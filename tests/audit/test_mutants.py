"""The audit can fail: whatever is broken on purpose is caught."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import pytest

from dpsynth_core.audit.checks import QUICK
from dpsynth_core.mechanisms import MECHANISMS
from tests.audit import broken
from tests.audit.mutants import MUTANTS, Mutant

SEED = 20_261_116


LONG = {"half noise on gradients", "per batch clipping", "pmse bound halved"}
"""Ten seconds each, for whole runs of a mechanism that is slow by itself."""


def _marks(mutant: Mutant) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if mutant.name in LONG else []


@pytest.mark.parametrize("mutant", [pytest.param(each, id=each.name, marks=_marks(each)) for each in MUTANTS])
def test_no_mutant_survives(mutant: Mutant) -> None:
    assert mutant.caught_by(QUICK, SEED), f"{mutant.mistake} Nothing noticed."


def test_mutants_have_names_of_their_own_and_are_not_registered() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert set(names) >= LONG
    assert not any("broken" in kind.__module__ for kind in MECHANISMS.values())


def _broken_classes() -> list[type]:
    modules = [import_module(f"tests.audit.broken.{each.name}") for each in iter_modules(broken.__path__)]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if getattr(kind, "__module__", "") == module.__name__
    ]


def test_what_is_broken_overrides_something_that_is_there() -> None:
    """A method that the sound class has lost breaks nothing, and its mutant would be sound without anybody noticing."""
    for kind in _broken_classes():
        source = inspect.getsource(kind)
        for name, own in vars(kind).items():
            if inspect.isfunction(own) and not any(hasattr(base, name) for base in kind.__mro__[1:]):
                assert source.count(name) > 1 or len(kind.__mro__) == 2, f"{kind.__name__}.{name} is never called"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("sensitivity halved", "enumeration"),
        ("empty bins skipped", "enumeration"),
        ("budget not split", "enumeration"),
        ("smoothed for one row", "enumeration"),
        ("factor two forgotten", "enumeration"),
        ("half noise", "noise law"),
        ("half noise", "stage attack"),
        ("factor two missing", "noise law"),
        ("empty never pass", "noise law"),
        ("raw decision", "enumeration"),
    ],
)
def test_layers_do_not_depend_on_each_other(name: str, layer: str) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    assert layer in mutant.caught_by(QUICK, SEED, every=True)


@pytest.mark.parametrize("name", ["reselect until new", "mwem reselects"])
def test_every_layer_comes_to_an_end_where_nothing_new_can_be_selected(name: str) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    assert mutant.caught_by(replace(QUICK, run_share=0.1), SEED, every=True)
