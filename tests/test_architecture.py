"""The rules of docs/architecture.md, enforced."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE, TESTS, PAGES = (ROOT / folder for folder in ("dpsynth_core", "tests", "pages"))

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
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}
MAX_ENTRIES = 20
"""At the top of the core: a stranger must be able to take it in at a glance."""
SHARED_BY_TESTS = (
    "tests.tables",
    "tests.waiting",
    "tests.audit.mutants",
    "tests.audit.broken",
    "tests.audit.mutation",
    "tests.audit.published",
    "tests.runs.job_tasks",
    "tests.runs.reading_tasks",
    "tests.ledger.crashing",
    "tests.fuzz",
    "tests.faults",
)
"""What tests may import from tests: helpers, mechanisms broken on purpose, and tasks that workers import by name."""
SOURCES = sorted(path for path in CORE.rglob("*.py") if path != CORE / "__init__.py")
APP = [ROOT / "app.py", *sorted(PAGES.rglob("*.py"))]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_modules(path: Path) -> frozenset[str]:
    """Every module and every name that an import statement mentions, wherever in the file it is."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return frozenset(found)


def layer_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def test_layers_import_only_the_layers_above_them() -> None:
    upward = []
    for path in SOURCES:
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "dpsynth_core" and len(parts) > 1 and RANK.get(parts[1], 99) > RANK[layer_of(path)]:
                upward.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not upward


def test_packages_of_one_layer_do_not_import_each_other_in_a_circle() -> None:
    imports: dict[str, set[str]] = {}
    for path in SOURCES:
        used = {module.split(".")[1] for module in imported_modules(path) if module.startswith("dpsynth_core.")}
        imports.setdefault(layer_of(path), set()).update(name for name in used if name in RANK)
    order = TopologicalSorter({name: used - {name} for name, used in imports.items()})
    order.prepare()  # raises CycleError, which names the circle


def test_every_package_of_the_core_has_its_layer() -> None:
    present = {layer_of(path) for path in SOURCES}
    assert present == set(RANK), "list it in LAYERS and in docs/architecture.md"


def test_the_top_of_the_core_can_be_taken_in_at_a_glance() -> None:
    entries = [path.name for path in CORE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MAX_ENTRIES, sorted(entries)


def test_the_core_knows_nothing_of_the_app() -> None:
    for path in SOURCES:
        roots = {module.split(".")[0] for module in imported_modules(path)}
        assert not roots & {"streamlit", "pages", "app"}, path


# One name, one thing


def type_names(path: Path) -> Iterator[str]:
    """Classes, and aliases of types, at the top level of a module."""
    for node in parsed(path).body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_alias(name, value):
                yield name
            case _ if type(node).__name__ == "TypeAlias":  # "type X = ...", which this Python may not know yet
                yield node.name.id  # type: ignore[attr-defined]


def is_alias(name: str, value: ast.expr) -> bool:
    """Whether an assignment such as ``Row = tuple[int, ...]`` names a type; constants are all capitals."""
    camel_case = name.lstrip("_")[:1].isupper() and not name.isupper()
    return camel_case and isinstance(value, ast.Subscript | ast.BinOp | ast.Name | ast.Attribute)


def test_no_type_name_means_two_things() -> None:
    counted = Counter(name for path in sorted(CORE.rglob("*.py")) for name in type_names(path))
    assert {name for name, times in counted.items() if times > 1} == set(), "give one of them a name of its own"


# The formatter


def test_the_formatter_is_never_told_to_look_away() -> None:
    marker = "# fmt: " + "skip"
    folders = (CORE, TESTS, PAGES, ROOT / "benchmarks", ROOT / "docs")
    assert not [path for folder in folders for path in folder.rglob("*.py") if marker in path.read_text()]


# The app


def test_pages_hold_layout_only() -> None:
    for page in [ROOT / "app.py", *PAGES.glob("*.py")]:
        lines = page.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 150, f"{page.name} is long: move logic to the core or to pages/shared"
        assert not imported_modules(page) & {"pandas", "numpy", "scipy"}, f"{page.name} computes"


def fixed_texts(path: Path) -> set[str]:
    """Names that a module gives to plain text at its top level."""
    assignments = [node for node in parsed(path).body if isinstance(node, ast.Assign)]
    return {
        target.id
        for node in assignments
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant)
    }


def test_nothing_from_a_file_can_become_html() -> None:
    for path in APP:
        fixed = fixed_texts(path)
        for call in (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)):
            assert "unsafe_allow_html" not in {keyword.arg for keyword in call.keywords}, path
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("html", "iframe"):
                for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                    written_here = isinstance(argument, ast.Constant) or getattr(argument, "id", None) in fixed
                    assert written_here, f"{path}: HTML may only be a text that is written in the same file"


# The tests


def test_test_modules_do_not_import_each_other() -> None:
    allowed = tuple(f"{module}." for module in SHARED_BY_TESTS)
    parents = {module.rpartition(".")[0] for module in SHARED_BY_TESTS}
    for path in TESTS.rglob("*.py"):
        used = {module for module in imported_modules(path) - parents if module.startswith("tests.")}
        if path.name == "__main__.py":  # a program finds itself under its importable name
            used = {module for module in used if "__main__" not in module}
        foreign = {module for module in used if not f"{module}.".startswith(allowed)}
        assert not foreign, f"{path.relative_to(ROOT)}: move what several tests use to tests/tables or tests/waiting"


# The documents

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:dpsynth_core|tests|pages|benchmarks|docs)/[\w./-]*")
DOTTED = re.compile(r"[a-z_]+(?:\.\w+)+")


def quoted(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Every quoted piece of the documents that has this form, with the name of its document."""
    for document in DOCUMENTS:
        for piece in QUOTED.findall(document.read_text(encoding="utf-8")):
            if pattern.fullmatch(piece):
                yield document.name, piece


def defined(path: Path, names: list[str]) -> bool:
    """Whether a module defines a name, or a class in it the name after that."""
    body: list[ast.stmt] = parsed(path).body
    for name in names:
        named = [node for node in body if name in (getattr(node, "name", None), *assigned(node))]
        if not named:
            return False
        body = getattr(named[0], "body", [])
    return True


def assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def exists_in_core(dotted: str) -> bool:
    parts = dotted.split(".")
    for i in range(len(parts), 0, -1):
        module = CORE.joinpath(*parts[:i])
        if module.with_suffix(".py").is_file():
            return defined(module.with_suffix(".py"), parts[i:])
        if module.is_dir():
            return i == len(parts) or defined(module / "__init__.py", parts[i:])
    return False


def test_every_path_in_the_documents_exists() -> None:
    missing = [(name, path) for name, path in quoted(PATH) if "NAME" not in path and not (ROOT / path).exists()]
    assert not missing


def test_every_name_in_the_documents_exists() -> None:
    packages = {path.stem for path in CORE.iterdir()}
    named = [(name, piece) for name, piece in quoted(DOTTED) if piece.split(".")[0] in packages]
    missing = [(name, piece) for name, piece in named if not piece.endswith(".py") and not exists_in_core(piece)]
    assert len(named) > 20
    assert not missing
