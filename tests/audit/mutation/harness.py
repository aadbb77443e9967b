"""One mistake at a time: the package with one edited file, in a process of its own, and the audit on what it concerns.

The process that starts the others has the libraries loaded but nothing of the package, so that every child imports the
package afresh, with one file edited on its way in. Nothing is written.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.audit.mutation.edits import ROOT, Edit

if TYPE_CHECKING:
    from dpsynth_core.audit.checks import AuditCheck
    from dpsynth_core.audit.subject import Subject

Question: TypeAlias = "Callable[[], Iterator[AuditCheck]]"

MAX_SECONDS = 180
"""Of computing, for one mistake."""
SEED = 20_261_117
CRASH, AFTER_A_CRASH = "crash: ", 12
"""How a run that does not end is told of, and after how many such findings nothing else is looked for."""
ASKED: dict[str, tuple[str, ...]] = {
    "mechanisms/kd_tree": ("kd_tree",),
    "mechanisms/kd_grid": ("kd_grid",),
    "mechanisms/perturbed_histogram": ("perturbed_histogram",),
    "mechanisms/smoothed_histogram": ("smoothed_histogram",),
    "mechanisms/partition/resolution": ("kd_grid",),
    "mechanisms/partition": ("perturbed_histogram", "kd_grid", "kd_tree"),
    "mechanisms/mwem": ("mwem",),
    "mechanisms/simplex": ("noisy_bayes", "mwem"),
    "mechanisms/numbers_and_labels": ("noisy_bayes", "pmse"),
    "mechanisms/noisy_bayes": ("noisy_bayes",),
    "mechanisms/private_pgm": ("private_pgm", "private_pgm with delta"),
    "mechanisms/pmse": ("pmse",),
    "mechanisms/dp_gan": ("probe: gradients", "dp_gan"),
    "mechanisms/mean_embedding/balog_points": ("balog_points",),
    "mechanisms/mean_embedding/balog_features": ("balog_features",),
    "mechanisms/mean_embedding/dp_merf": ("dp_merf",),
    "mechanisms/mean_embedding": ("balog_points", "balog_features", "dp_merf"),
    "mechanisms": ("perturbed_histogram", "kd_tree"),
    "privacy/accounting": ("private_pgm with delta", "probe: gradients", "balog_points"),
    "privacy/noise": (
        *("probe: counts", "probe: selection", "smoothed_histogram", "kd_grid", "mwem", "probe: gradients"),
        *("private_pgm with delta", "kd_tree"),
    ),
    "privacy/budget": ("probe: counts", "kd_grid", "mwem", "private_pgm with delta"),
    "privacy": ("probe: counts", "probe: selection", "smoothed_histogram", "kd_grid", "balog_points"),
    "inference": ("probe: counts",),
    "runs": ("probe: counts",),
    "table": ("probe: counts", "perturbed_histogram", "noisy_bayes", "private_pgm", "kd_tree", "pmse"),
}
"""The subjects that a file concerns: the first line that fits its path."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one mistake."""

    name: str
    family: str
    outcome: str
    """"caught", "survived", "does not run", "too slow"."""
    layer: str = ""
    detail: str = ""
    seconds: float = 0.0


class _Edited(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.get_filename(fullname), "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Gives one module of the package another source."""

    def __init__(self, module: str, source: str) -> None:
        self._module, self._source = module, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        del target
        if name != self._module:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found is None or found.origin is None:
            return None
        loader = _Edited(name, found.origin, self._source)
        return importlib.util.spec_from_file_location(
            name, found.origin, loader=loader, submodule_search_locations=found.submodule_search_locations
        )


def module_of(path: str) -> str:
    """The module that a file holds."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def subjects_for(path: str) -> tuple[str, ...]:
    """What is audited after a mistake in this file."""
    inside = path.removeprefix("dpsynth_core/")
    return next(names for folder, names in ASKED.items() if inside.startswith(folder))


def try_edit(edit: Edit, *, thorough: bool = False) -> Verdict:
    """Whether the audit notices; in a child process, which is all that sees the mistake."""
    source = edit.applied((ROOT / edit.path).read_text(encoding="utf-8"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(_in_child(edit, source, thorough=thorough)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    if not said:
        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        outcome = "too slow" if slow else "does not run"
        return Verdict(name=edit.name, family=edit.family, outcome=outcome, detail=f"status {status}")
    return Verdict(name=edit.name, family=edit.family, **json.loads(said))


def _in_child(edit: Edit, source: str, *, thorough: bool) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 5))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    with tempfile.TemporaryDirectory() as compiled:
        if "@compiled" in source:
            os.environ["NUMBA_CACHE_DIR"] = compiled  # what was compiled before is of the file without the mistake
        sys.meta_path.insert(0, _Finder(module_of(edit.path), source))
        began = _seconds()
        try:
            asked = findings(subjects_for(edit.path), edit.path, thorough=thorough)
            found = list(islice(asked, 1))
            if found and found[0].detail.startswith(CRASH):
                # Where it crashes always, nothing is released; where it crashes for some rows only, that tells.
                found += islice(asked, AFTER_A_CRASH)
            told = next((check for check in found if not check.detail.startswith(CRASH)), None)
            outcome = "caught" if told else "does not run" if found else "survived"
            shown = told or next(iter(found), None)
            layer = shown.layer if told else ""
            detail = f"{shown.subject}; {shown.case}: {shown.detail}" if shown else ""
        except Exception as error:  # noqa: BLE001  that it does not run at all is the finding
            outcome, layer, detail = "does not run", "", f"{type(error).__name__}: {error}"[:300]
    return {"outcome": outcome, "layer": layer, "detail": detail[:300], "seconds": round(_seconds() - began, 1)}


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def findings(subjects: tuple[str, ...], path: str, *, thorough: bool) -> Iterator[AuditCheck]:
    """Whatever the audit has against the package as it is imported here.

    Cheap questions, which find most, and the others where those have found nothing.
    """
    for ask in _others(subjects, path) if thorough else _cheap(subjects, path):
        for check in ask():
            if check.verdict == "failed":
                yield check


def _subjects(names: tuple[str, ...], path: str) -> list[Subject]:
    from dpsynth_core.audit.subject import registered

    known = registered()
    # What all mechanisms share is asked about with one setting of each.
    whole = "/mechanisms/" in path
    return [known[name] if whole or name.startswith("probe") else known[name].suggested for name in names]


def _cheap(names: tuple[str, ...], path: str) -> Iterator[Question]:
    from dpsynth_core.audit.checks import QUICK
    from dpsynth_core.audit.enumeration import enumeration_checks
    from dpsynth_core.audit.guards import guard_checks, price_checks
    from dpsynth_core.audit.joint_law import joint_checks
    from dpsynth_core.audit.locality import locality_checks
    from dpsynth_core.audit.procedures import procedure_checks, walk_price_checks
    from dpsynth_core.audit.replay import replay_checks
    from dpsynth_core.audit.selection import selection_checks

    if "/privacy/" in path:
        yield from (guard_checks, price_checks, partial(joint_checks, QUICK, SEED))
    if "/table/" in path:
        yield locality_checks
    if "/mechanisms/" not in path:
        yield from (partial(procedure_checks, QUICK, SEED), partial(selection_checks, QUICK, SEED))
    if "/mechanisms/pmse/" in path:
        yield partial(walk_price_checks, SEED)
    for subject in _subjects(names, path):
        yield partial(replay_checks, subject, QUICK, SEED)
        yield partial(enumeration_checks, subject, QUICK)


def _others(names: tuple[str, ...], path: str) -> Iterator[Question]:
    from dpsynth_core.audit.checks import QUICK
    from dpsynth_core.audit.claims import claim_checks
    from dpsynth_core.audit.joint_law import secrecy_checks
    from dpsynth_core.audit.leaving import OTHER_ENTRIES, leaving_checks
    from dpsynth_core.audit.noise_law import law_checks
    from dpsynth_core.audit.reading import reading_checks
    from dpsynth_core.audit.sensitivity_search import score_checks, search_checks
    from dpsynth_core.audit.stage_attack import stage_checks
    from dpsynth_core.mechanisms import MECHANISMS
    from tests.audit.published import published

    for subject in _subjects(names, path):
        yield partial(stage_checks, subject, QUICK, SEED)
        yield partial(search_checks, subject, QUICK, SEED)
    if "/privacy/" in path:
        yield from (secrecy_checks, partial(law_checks, QUICK, SEED))
    if "/table/" in path:
        yield reading_checks
    if "/pmse/" in path:
        yield partial(score_checks, QUICK, SEED)
    shared = "/mechanisms/" not in path
    keys = ("perturbed_histogram",) if shared else tuple(name for name in names if name in MECHANISMS)
    yield partial(claim_checks, kinds={key: MECHANISMS[key] for key in keys})
    entries = {*keys, *OTHER_ENTRIES} if shared else {*names}
    yield partial(leaving_checks, QUICK, SEED, files=published, only=entries)
