"""Edits of the source that a slip of the pen could be: generated from what the code says about privacy."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("dpsynth_core/privacy", "dpsynth_core/mechanisms", "dpsynth_core/table")
LEFT_OUT = {
    "dpsynth_core/privacy/recording.py": "the audit's own instrument, which releases never load",
    "dpsynth_core/mechanisms/partition/theorem_bounds.py": "bounds for readers, from public facts",
    "dpsynth_core/table/examples": "public tables",
    "dpsynth_core/table/simulate.py": "public tables",
    "dpsynth_core/table/suggest.py": "a proposal, which voids the guarantee until a person has called it public",
}
"""Files of these folders in which no mistake can break a guarantee, and why."""
NOISY = ("laplace", "gaussian", "_add_laplace", "_add_gaussian")
"""Draws that return their input with noise."""
PAID = (
    *("laplace", "sparse_laplace", "smoothed", "exponential", "permute_and_flip", "metropolis"),
    *("open_gaussian", "open_charge", "open_sampled"),
)
"""Where a charge is written down."""
DRAWS = (
    *("decisions", "prefetch_laplace", "Charge", "Laplace", "SparseLaplace", "Decisions", "Exponential"),
    *("SharedExponential", "PermuteAndFlip", "Metropolis", "GaussianDraw", "SampledDraw", "SelectionDraw"),
)
"""Further draws, and what describes one."""
SELECTIONS = ("exponential", "permute_and_flip")
CLIPS = ("clip", "minimum", "maximum", "nextafter")
DEPTHS = frozenset({"free", "stop", "depth", "level", "levels", "rounds", "stages", "queries", "datasets"})
"""Names of numbers that say how often a run spends, or how deep it goes."""
DECIDING = ("/privacy/", "/kd_tree/", "table/encoding.py", "table/counts.py", "table/estimate.py")
"""Where a boundary decides about noise, charges or which cell a row is in. (Elsewhere it is about a single cell's
spelling, which is the same for every row.)"""
SLIPS = "__import__('tests.audit.mutation.slips', fromlist=['slips'])"
NUMPY = "__import__('numpy')"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One place of one file, and what stands there instead."""

    path: str
    """From the project's root."""
    line: int
    family: str
    """What kind of mistake it is."""
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
class SourceFile:
    """A file as the generators see it."""

    path: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def _offsets(self) -> list[int]:
        offsets = [0]
        for line in self.source.split("\n"):
            offsets.append(offsets[-1] + len(line) + 1)
        return offsets

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        start = self._offsets[line - 1]
        text = self.source[start:].split("\n", 1)[0]
        return start + len(text.encode()[:column].decode())

    def said(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def edit(self, node: ast.expr | ast.stmt, family: str, kind: str, text: str) -> Edit:
        start, end = self.span(node)
        return Edit(path=self.path, line=node.lineno, family=family, kind=kind, start=start, end=end, text=text)


Generator = Callable[[SourceFile, ast.AST], Iterator[Edit]]


def edits(folders: tuple[str, ...] = FOLDERS) -> Iterator[Edit]:
    """Every mistake that the generators can think of, file by file; none twice."""
    seen: set[tuple[str, int, int, str]] = set()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if any(name.startswith(left_out) for left_out in LEFT_OUT):
                continue
            file = SourceFile(name, path.read_text(encoding="utf-8"))
            for node in ast.walk(file.tree):
                for generator in GENERATORS:
                    for edit in generator(file, node):
                        key = edit.path, edit.start, edit.end, edit.text
                        if key not in seen:
                            seen.add(key)
                            yield edit


def _callee(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _halved(said: str) -> str:
    return f"max(1, ({said}) // 2) if ({said}) > 1 else ({said}) / 2"


def _source_of_noise(file: SourceFile, node: ast.Call) -> str | None:
    """The expression before the dot, where that is a source of noise."""
    if not isinstance(node.func, ast.Attribute):
        return None
    owner = file.said(node.func.value)
    return owner if owner.split(".")[-1].removeprefix("_").endswith("noise") else None


def _is_draw(file: SourceFile, node: ast.Call) -> bool:
    """Whether a call draws, describes a draw, or hands on the source that draws."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    handed = any(file.said(value).split(".")[-1].removeprefix("_") == "noise" for value in given)
    return handed or _callee(node) in (*PAID, *NOISY, *DRAWS)


def sensitivities(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """Half of what a row can do: where a draw declares it, where a constant or a function says it."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords if _is_draw(file, node) else ():
            if keyword.arg == "sensitivity":
                said = file.said(keyword.value)
                yield file.edit(keyword.value, "sensitivity", "sensitivity halved", _halved(said))
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        if any(word in name for word in ("SENSITIVITY", "LOSS")):
            yield file.edit(node.value, "sensitivity", f"{name} halved", f"({file.said(node.value)}) / 2")
    if isinstance(node, ast.FunctionDef) and "sensitiv" in node.name:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value is not None and not isinstance(inner.value, ast.DictComp):
                said = file.said(inner.value)
                yield file.edit(inner.value, "sensitivity", "what a row can do, halved", f"({said}) / 2")
            if isinstance(inner, ast.Dict):
                for value in inner.values:
                    yield file.edit(value, "sensitivity", "a stage's sensitivity halved", f"({file.said(value)}) / 2")


def noise_and_price(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """Half the noise, twice the epsilon, a lower threshold, constants of lattices and scales."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords if _is_draw(file, node) else ():
            value = keyword.value
            if isinstance(value, ast.Constant) and value.value is None:
                continue
            said = file.said(value)
            if keyword.arg == "scale":
                yield file.edit(value, "noise and price", "scale halved", f"({said}) / 2")
            elif keyword.arg == "epsilon":
                yield file.edit(value, "noise and price", "epsilon doubled", f"2 * ({said})")
            elif keyword.arg == "threshold" and _callee(node) in ("sparse_laplace", "decisions"):
                yield file.edit(value, "noise and price", "threshold lowered", f"({said}) - 2")
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        if name in ("MIN_SCALE", "MIN_SAMPLED_SCALE", "STEPS", "ROUNDING", "LN2_UP"):
            yield file.edit(node.value, "noise and price", f"{name} halved", f"({file.said(node.value)}) / 2")


def charges(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """Charges that are not written down, guards that never refuse, shares that are not split."""
    if isinstance(node, ast.Call) and _callee(node) in PAID and (owner := _source_of_noise(file, node)):
        yield file.edit(node, "charge", "charge dropped", f"{SLIPS}.unpaid({owner}, lambda: {file.said(node)})")
    if isinstance(node, ast.Call) and _callee(node) == "split" and isinstance(node.func, ast.Attribute):
        whole = file.said(node.func.value)
        if "budget" in whole or "granted" in whole or whole in ("rest", "inner", "share"):
            yield file.edit(node, "charge", "budget not split", f"tuple({whole} for _ in {file.said(node)})")
    refuses = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)
    if isinstance(node, ast.If) and refuses and "BudgetError" in file.said(node.body[-1]):
        yield file.edit(node.test, "charge", "budget not guarded", "False")
    if isinstance(node, ast.Expr) and file.said(node).startswith("self._charges.append"):
        yield file.edit(node, "charge", "charge not written down", "pass")
    if isinstance(node, ast.Call) and _callee(node) == "per_row" and isinstance(node.func, ast.Attribute):
        yield file.edit(node, "charge", "rows of a person forgotten", file.said(node.func.value))


def raw_for_noisy(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """The input itself instead of the input with noise; the best score instead of a drawn one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return
    first = file.said(node.args[0])
    if node.func.attr in NOISY:
        yield file.edit(node, "raw for noisy", "raw for noisy", f"{NUMPY}.asarray({first})")
    if node.func.attr in SELECTIONS:
        yield file.edit(node, "raw for noisy", "the best instead of a draw", f"int({NUMPY}.argmax({first}))")


def raw_after_the_draw(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """The draw is made and paid for, and a later line looks at its input."""
    if not isinstance(node, ast.FunctionDef):
        return
    for statement in ast.walk(node):
        drawn = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(drawn, ast.Call) or not drawn.args or not isinstance(statement, ast.Assign):
            continue
        target, callee = statement.targets[0], _callee(drawn)
        if isinstance(target, ast.Tuple):
            target = target.elts[0]
        if not isinstance(target, ast.Name) or callee not in (*NOISY, "sparse_laplace", "decisions", "histogram"):
            continue
        listed = callee in ("sparse_laplace", "decisions")
        raw = file.said(drawn.args[1 if listed else 0])
        raw = f"({raw} > 0)" if callee == "decisions" else f"({raw})"
        wanted = f"{target.id}.values" if callee == "sparse_laplace" else target.id
        for use in ast.walk(node):
            if not isinstance(use, ast.Attribute | ast.Name) or not isinstance(use.ctx, ast.Load):
                continue
            if use.lineno > (statement.end_lineno or 0) and file.said(use) == wanted:
                yield file.edit(use, "raw for noisy", "raw after the draw", raw)


def reused_draws(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """The noise of an earlier draw once more, or two draws for one."""
    if not isinstance(node, ast.Call) or _callee(node) not in NOISY or not node.args:
        return
    first, said = file.said(node.args[0]), file.said(node)
    yield file.edit(node, "reused draw", "drawn twice, averaged", f"({said} + {said}) // 2")
    owner = _source_of_noise(file, node) or ("self" if _callee(node).startswith("_add") else None)
    if owner is None:
        return
    start, _ = file.span(node)
    inner, end = file.span(node.args[0])
    again = said[: inner - start] + "given" + said[end - start :]
    yield file.edit(node, "reused draw", "noise used again", f"{SLIPS}.reused({owner}, {first}, lambda given: {again})")


def off_by_one(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """Ranges and differences of depths, levels and rounds; ones and boundaries where cells and noise are decided."""
    mechanism = "/mechanisms/" in file.path
    if mechanism and isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Call):
        call = node.iter
        if _callee(call) == "range" and call.args and _about_depth(file, call.args[-1]):
            said = file.said(call.args[-1])
            yield file.edit(call.args[-1], "off by one", "one more", f"({said}) + 1")
            yield file.edit(call.args[-1], "off by one", "one less", f"({said}) - 1")
    if mechanism and isinstance(node, ast.BinOp) and not isinstance(node.right, ast.Constant):
        said, left, right = (file.said(part) for part in (node, node.left, node.right))
        if isinstance(node.op, ast.Sub) and (_about_depth(file, node.left) or _about_depth(file, node.right)):
            yield file.edit(node, "off by one", "one less", f"max(({said}) - 1, 1)")
        elif isinstance(node.op, ast.Div | ast.Mult) and _about_depth(file, node.right):
            sign = "/" if isinstance(node.op, ast.Div) else "*"
            yield file.edit(node, "off by one", "one less", f"({left} {sign} max({right} - 1, 1))")
    if not any(part in file.path for part in DECIDING):
        return
    one_more = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    if one_more and isinstance(node.right, ast.Constant) and node.right.value == 1:
        yield file.edit(node, "off by one", "one forgotten", f"({file.said(node.left)})")
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        turned = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}.get(type(node.ops[0]))
        if turned is not None:
            left, right = file.said(node.left), file.said(node.comparators[0])
            yield file.edit(node, "off by one", "boundary moved", f"({left}) {turned} ({right})")


def _about_depth(file: SourceFile, node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and file.said(node).split(".")[-1].lstrip("_") in DEPTHS


def clipping(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """Values that are not moved into their range, and what is no number let through."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        inner = node.args[0] if len(node.args) == 2 else None
        if isinstance(inner, ast.Call) and _callee(inner) in ("min", "max") and len(inner.args) == 2:
            yield file.edit(node, "clipping", "not clipped", f"({file.said(inner.args[0])})")
    if isinstance(node, ast.Call) and _callee(node) in CLIPS and len(node.args) >= 2:
        yield file.edit(node, "clipping", "not clipped", f"({file.said(node.args[0])})")
    if isinstance(node, ast.Call) and _callee(node) == "nan_to_num" and node.args:
        yield file.edit(node, "clipping", "what is no number stays", f"({file.said(node.args[0])})")


def data_for_facts(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """What was declared is replaced by what the rows say: cells that occur, types, ranges."""
    counts = isinstance(node, ast.Call) and _callee(node) == "bincount"
    if isinstance(node, ast.Call) and counts and any(keyword.arg == "minlength" for keyword in node.keywords):
        kept = ", ".join(file.said(argument) for argument in node.args)
        yield file.edit(node, "data for facts", "only the cells that occur", f"{NUMPY}.bincount({kept})")
    if isinstance(node, ast.FunctionDef) and "/table/" in file.path:
        columns = {a.arg for a in node.args.args if a.annotation and "pd.Series" in file.said(a.annotation)}
        for call in ast.walk(node):
            for use in call.args if isinstance(call, ast.Call) else ():
                if isinstance(use, ast.Name) and use.id in columns:
                    yield file.edit(use, "data for facts", "kind guessed", f"{SLIPS}.guessed({use.id})")
                    yield file.edit(use, "data for facts", "dtype read", f"{SLIPS}.inferred({use.id})")
    if isinstance(node, ast.FunctionDef) and file.path.endswith("encoding.py") and node.name in ("codes", "_levels"):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value is not None:
                ranks = f"{NUMPY}.unique({file.said(inner.value)}, return_inverse=True)[1]"
                yield file.edit(inner.value, "data for facts", "codes by rank", ranks)


def telling_progress(file: SourceFile, node: ast.AST) -> Iterator[Edit]:
    """A report that names a number from the rows, wherever they are at hand."""
    if not isinstance(node, ast.FunctionDef) or "/mechanisms/" not in file.path:
        return
    if "table" not in {argument.arg for argument in node.args.args}:
        return
    for call in ast.walk(node):
        told = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "progress"
        if isinstance(call, ast.Call) and told and call.args and isinstance(call.args[0], ast.Constant):
            raw = "{hash(tuple(map(str, table.rows().iloc[-1])))}"
            words = f'f"{call.args[0].value}{raw}"'
            yield file.edit(call.args[0], "rows in a report", "raw rows in a report", words)


GENERATORS: tuple[Generator, ...] = (
    sensitivities,
    noise_and_price,
    charges,
    raw_for_noisy,
    raw_after_the_draw,
    reused_draws,
    off_by_one,
    clipping,
    data_for_facts,
    telling_progress,
)
