"""Edits of the source that a slip of the pen could be: generated from what the code says about privacy."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("dpsynth_core/privacy", "dpsynth_core/mechanisms", "dpsynth_core/table")
NOISY = ("laplace", "gaussian", "_add_laplace", "_add_gaussian")
"""Draws that return their input with noise."""
SELECTIONS = ("exponential", "permute_and_flip")
CLIPS = ("clip", "minimum", "maximum", "nextafter")


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One place of one file, and what stands there instead."""

    path: str
    """From the project's root."""
    line: int
    kind: str
    """What was done to it, in a few words."""
    start: int
    """First character that is replaced, and one past the last."""
    end: int
    text: str

    @property
    def name(self) -> str:
        """The same in every run, as long as the file is."""
        return f"{self.path}:{self.line}:{self.start}: {self.kind}"

    def applied(self, source: str) -> str:
        """The file with the mistake in it."""
        return source[: self.start] + self.text + source[self.end :]


@dataclass(frozen=True)
class _File:
    path: str
    source: str
    offsets: list[int]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        start = self.offsets[line - 1]
        text = self.source[start:].split("\n", 1)[0]
        return start + len(text.encode()[:column].decode())

    def said(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def edit(self, node: ast.expr | ast.stmt, kind: str, text: str) -> Edit:
        start, end = self.span(node)
        return Edit(path=self.path, line=node.lineno, kind=kind, start=start, end=end, text=text)


def edits(folders: tuple[str, ...] = FOLDERS) -> Iterator[Edit]:
    """Every mistake that the generators can think of, file by file."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            offsets = [0]
            for line in source.split("\n"):
                offsets.append(offsets[-1] + len(line) + 1)
            file = _File(str(path.relative_to(ROOT)), source, offsets)
            for node in ast.walk(ast.parse(source)):
                for generator in GENERATORS:
                    yield from generator(file, node)


def _callee(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _halved_arguments(file: _File, node: ast.AST) -> Iterator[Edit]:
    """``sensitivity=``, ``scale=`` and the like at half their value; epsilon at twice."""
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        value = keyword.value
        if isinstance(value, ast.Constant) and value.value is None:
            continue
        said = file.said(value)
        if keyword.arg == "sensitivity":
            yield file.edit(value, "sensitivity halved", f"max(1, ({said}) // 2) if ({said}) > 1 else ({said}) / 2")
        elif keyword.arg == "scale" and _callee(node) not in ("Stage", "replace"):
            yield file.edit(value, "scale halved", f"({said}) / 2")
        elif keyword.arg == "epsilon" and _callee(node) not in ("Stage", "Cost"):
            yield file.edit(value, "epsilon doubled", f"2 * ({said})")
        elif keyword.arg == "threshold" and _callee(node) in ("sparse_laplace", "decisions"):
            yield file.edit(value, "threshold lowered", f"({said}) - 2")


def _raw_for_noisy(file: _File, node: ast.AST) -> Iterator[Edit]:
    """The input itself instead of the input with noise; the best score instead of a drawn one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return
    first = file.said(node.args[0])
    if node.func.attr in NOISY:
        yield file.edit(node, "raw for noisy", f"__import__('numpy').asarray({first})")
        yield file.edit(node, "drawn once more", f"({file.said(node)} + {file.said(node)}) // 2")
    if node.func.attr in SELECTIONS:
        yield file.edit(node, "the best instead of a draw", f"int(__import__('numpy').argmax({first}))")


def _no_clipping(file: _File, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Call) and _callee(node) in CLIPS and len(node.args) >= 2:
        yield file.edit(node, "not clipped", f"({file.said(node.args[0])})")


def _constants(file: _File, node: ast.AST) -> Iterator[Edit]:
    """Constants that are about privacy by their name."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return
    name = node.targets[0].id
    if any(word in name for word in ("SENSITIVITY", "LOSS", "SCALE", "STEPS")) and not name.startswith("SECONDS"):
        yield file.edit(node.value, f"{name} halved", f"({file.said(node.value)}) / 2")


def _budget(file: _File, node: ast.AST) -> Iterator[Edit]:
    """Shares of the budget that are not split, guards that never refuse, charges that are not written down."""
    if isinstance(node, ast.Call) and _callee(node) == "split" and isinstance(node.func, ast.Attribute):
        whole = file.said(node.func.value)
        if "budget" in whole or "granted" in whole or whole in ("rest", "inner", "share"):
            parts = file.said(node)
            yield file.edit(node, "budget not split", f"tuple({whole} for _ in {parts})")
    if isinstance(node, ast.If) and node.body and isinstance(node.body[-1], ast.Raise):
        words = file.said(node.body[-1])
        if "BudgetError" in words:
            yield file.edit(node.test, "budget not guarded", "False")
    if isinstance(node, ast.Expr) and file.said(node).startswith("self._charges.append"):
        yield file.edit(node, "charge not written down", "pass")
    if isinstance(node, ast.Return) and node.value is not None and "per_row" in file.said(node.value):
        yield file.edit(node.value, "rows of a person forgotten", file.said(node.value).split(".per_row")[0])


def _boundaries(file: _File, node: ast.AST) -> Iterator[Edit]:
    """Signs and comparisons in the code that decides about noise and cells, off by one."""
    if "privacy" not in file.path and "cells" not in file.path and "encoding" not in file.path:
        return
    one_more = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    if one_more and isinstance(node.right, ast.Constant) and node.right.value == 1:
        yield file.edit(node, "off by one", f"({file.said(node.left)})")
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        turned = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}.get(type(node.ops[0]))
        if turned is not None:
            left, right = file.said(node.left), file.said(node.comparators[0])
            yield file.edit(node, "boundary moved", f"({left}) {turned} ({right})")


def _data_for_facts(file: _File, node: ast.AST) -> Iterator[Edit]:
    """What was declared is replaced by what the rows say."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    said = file.said(node)
    if node.func.attr == "bincount" and "minlength" in said:
        kept = [file.said(argument) for argument in node.args]
        yield file.edit(node, "only the cells that occur", f"__import__('numpy').bincount({', '.join(kept)})")


def _telling_progress(file: _File, node: ast.AST) -> Iterator[Edit]:
    """A report that names a number from the rows."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "progress"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and "/mechanisms/" in file.path
    ):
        words = node.args[0].value
        raw = "{hash(tuple(map(str, table.rows().iloc[-1]))) if 'table' in dir() else ''}"
        yield file.edit(node.args[0], "raw rows in a report", f'f"{words}{raw}"')


GENERATORS: tuple[Callable[[_File, ast.AST], Iterator[Edit]], ...] = (
    _halved_arguments,
    _raw_for_noisy,
    _no_clipping,
    _constants,
    _budget,
    _boundaries,
    _data_for_facts,
    _telling_progress,
)
