"""Compare a synthetic table with its original, for internal review: the numbers are computed from private rows."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from dpsynth_core.cli.terminal import Bar, new_file, read_schema, say
from dpsynth_core.diagnostics import DIAGNOSTICS, Measure, Result
from dpsynth_core.diagnostics.base import INTERNAL
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.review import review_report
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.readers.read import read_table


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What ``evaluate`` understands."""
    command.add_argument("synthetic", type=Path, help="the synthetic table: CSV, Excel or Parquet")
    command.add_argument(
        "--diagnostic", action="append", metavar="NAME", dest="diagnostics",
        help=f"one of {', '.join(DIAGNOSTICS)}; may be repeated; all of them unless given",
    )  # fmt: skip
    command.add_argument("--out", type=Path, help="the internal review report, an HTML file that is not there yet")


def run(chosen: argparse.Namespace) -> None:
    """Examine and print; nothing is charged, because what is printed must not leave the building."""
    private = PrivateTable(read_table(chosen.data), read_schema(chosen.schema))
    synthetic = read_table(chosen.synthetic)
    bar = Bar()
    with contextlib.ExitStack() as stack:
        stack.callback(bar.close)
        file = stack.enter_context(new_file(chosen.out)) if chosen.out else None
        found = evaluate(private, synthetic, chosen.diagnostics, progress=bar)
        if file is not None:
            file.write(review_report(private, synthetic, found))
    _print(found)
    if chosen.out:
        say(f"The report with figures, also internal: {chosen.out}")


def _print(found: Evaluation) -> None:
    say(INTERNAL)
    say(f"Verdict: {found.verdict}. {found.summary}")
    for result in found.culprits:
        say(f"  {result.verdict:9} {result.title}: {_number(result, result.headline)} {result.headline.reading}")


def _number(result: Result, item: Measure) -> str:
    if item.value is None:
        return "could not be computed."
    where = f" for {item.name}" if item.name != result.title else ""
    fresh = "" if item.reference is None else f" (a fresh sample: about {item.reference:.2g})"
    return f"{result.scale.name} {item.value:.3g}{where}{fresh}."
