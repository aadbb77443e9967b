"""The one-way flow of docs/architecture.md, enforced."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "dpsynth_core"

# Each layer may import itself and the layers above it.
LAYERS = [
    ("errors", "arrays", "progress", "jit"),
    ("privacy",),
    ("table", "ledger"),
    ("mechanisms", "trees"),
    ("runs", "diagnostics", "inference", "teaching", "audit"),
    ("charts", "review", "cli"),
    ("__main__",),
]
MAX_ENTRIES = 20
"""At the top of the core: a stranger must be able to take it in at a glance."""
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}
SOURCES = sorted(path for path in CORE.rglob("*.py") if path != CORE / "__init__.py")


def imported_modules(path: Path) -> set[str]:
    """Every module named by an import statement, wherever in the file it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def layer_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(CORE)))
def test_layers_import_only_the_layers_above_them(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"{own} has no place in the flow: add it to LAYERS and to docs/architecture.md"
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "dpsynth_core" and len(parts) > 1:
            assert RANK.get(parts[1], 99) <= RANK[own], f"{own} imports {module}"


def test_packages_of_one_layer_do_not_import_each_other_in_a_circle() -> None:
    imports: dict[str, set[str]] = {}
    for path in SOURCES:
        used = {module.split(".")[1] for module in imported_modules(path) if module.startswith("dpsynth_core.")}
        imports.setdefault(layer_of(path), set()).update(name for name in used if name in RANK)
    order = TopologicalSorter({name: used - {name} for name, used in imports.items()})
    order.prepare()  # raises CycleError, which names the circle


def test_the_top_of_the_core_can_be_taken_in_at_a_glance() -> None:
    entries = [path.name for path in CORE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MAX_ENTRIES, sorted(entries)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_knows_nothing_of_the_app(path: Path) -> None:
    roots = {module.split(".")[0] for module in imported_modules(path)}
    assert not roots & {"streamlit", "pages", "app"}


def test_every_layer_exists() -> None:
    present = {layer_of(path) for path in SOURCES}
    assert present == set(RANK)


def test_pages_hold_layout_only() -> None:
    for page in [ROOT / "app.py", *(ROOT / "pages").glob("*.py")]:
        text = page.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 150, f"{page.name} is long: move logic to the core or to pages/shared"
        assert not imported_modules(page) & {"pandas", "numpy", "scipy"}, f"{page.name} computes"


def test_nothing_from_a_file_can_become_html() -> None:
    for path in [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]:
        assert "unsafe_allow_html" not in path.read_text(encoding="utf-8"), path.name
