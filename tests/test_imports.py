"""What is loaded when: a process pays only for what it uses."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dpsynth_core as dp
from dpsynth_core.mechanisms.registry import Registry

ROOT = Path(__file__).parents[1]
HEAVY = {"jax", "numba", "sklearn", "optax", "plotly", "scipy.stats", "scipy.optimize", "scipy.sparse"}


def loaded_by(program: str) -> set[str]:
    code = f"import sys; {program}; print(' '.join(sys.modules))"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split()
    )


def test_importing_the_core_loads_nothing_else() -> None:
    assert not loaded_by("import dpsynth_core") & {*HEAVY, "scipy", "opendp", "pandas", "numpy"}


@pytest.mark.parametrize(
    "program",
    [
        "import dpsynth_core.runs.configuration",
        "import dpsynth_core as dp; list(dp.MECHANISMS); 'pmse' in dp.MECHANISMS; len(dp.MECHANISMS)",
        "import dpsynth_core as dp; dp.MECHANISMS['kd_tree']",
    ],
)
def test_listing_mechanisms_and_using_a_light_one_loads_no_heavy_library(program: str) -> None:
    assert not loaded_by(program) & HEAVY


def test_every_public_name_can_be_imported() -> None:
    for name in dp.__all__:
        assert getattr(dp, name) is not None
        assert name in dir(dp)
    assert dp._MODULES.keys() == set(dp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'sythesize'"):
        dp.sythesize  # noqa: B018


def test_a_registry_holds_what_is_registered_as_long_as_it_is() -> None:
    registry: Registry[object] = Registry("collections", {"mapping": "abc:Mapping"})
    with registry.register("list", list):
        assert list(registry) == ["mapping", "list"]
        assert registry["list"] is list
        with pytest.raises(ValueError, match="list is registered already"), registry.register("list", dict):
            pass
    assert list(registry) == ["mapping"]
    assert "list" not in registry
    with pytest.raises(KeyError):
        registry["list"]


def test_names_that_notebooks_rely_on_stay_where_they_are() -> None:
    from dpsynth_core.diagnostics.mmd import mmd
    from dpsynth_core.inference import calibrated_mann_whitney, dp_mann_whitney, error_rates, mann_whitney
    from dpsynth_core.trees.cart import cart_pmse
    from dpsynth_core.trees.optimal import optimal_tree_pmse

    functions = (mmd, calibrated_mann_whitney, dp_mann_whitney, error_rates, mann_whitney, cart_pmse, optimal_tree_pmse)
    assert all(inspect.isfunction(function) for function in functions)
