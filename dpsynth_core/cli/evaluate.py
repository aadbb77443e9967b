"""Compare a synthetic table with its original, for internal review: the numbers are computed from private rows."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import pandas as pd

from dpsynth_core.cli.terminal import Bar, new_file, read_schema, say
from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.diagnostics.base import INTERNAL
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.wording import VERDICT_WORDS, statement
from dpsynth_core.errors import IntakeError
from dpsynth_core.review import review_report
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.readers.read import file_content, read_cells, read_table
from dpsynth_core.table.schema import Schema


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of ``evaluate``."""
    command.add_argument("synthetic", type=Path, help="the synthetic table: CSV, Excel or Parquet")
    command.add_argument(
        "--diagnostic",
        action="append",
        metavar="NAME",
        dest="diagnostics",
        help=f"one of {', '.join(DIAGNOSTICS)}; may be repeated; default: all of them",
    )
    command.add_argument("--out", type=Path, help="the internal review report, an HTML file; must not exist yet")


def run(chosen: argparse.Namespace) -> None:
    """Examine and print; nothing is charged, because the output is for internal review only."""
    schema = read_schema(chosen.schema)
    private = PrivateTable(read_table(chosen.data, schema), schema)
    synthetic = _read_synthetic(chosen.synthetic, schema)
    bar = Bar()
    with contextlib.ExitStack() as stack:
        stack.callback(bar.close)
        file = stack.enter_context(new_file(chosen.out)) if chosen.out else None
        evaluation = evaluate(private, synthetic, chosen.diagnostics, progress=bar)
        if file is not None:
            file.write(review_report(private, synthetic, evaluation))
    _print(evaluation)
    if chosen.out:
        say(f"Report with figures, for internal review only: {chosen.out}")


def _read_synthetic(path: Path, schema: Schema) -> pd.DataFrame:
    """A synthetic table as this package exports it; by the layout that it seems to have if it came from elsewhere."""
    content = file_content(path)
    with contextlib.suppress(IntakeError):
        exported = read_cells(content, FileLayout())
        if set(schema.names) & set(exported.columns):
            return exported
    return read_cells(content, None)


def _print(evaluation: Evaluation) -> None:
    say(INTERNAL)
    say(f"Verdict: {VERDICT_WORDS[evaluation.verdict]}. {evaluation.summary}")
    for result in evaluation.culprits:
        say(f"  {VERDICT_WORDS[result.verdict]}. {result.title}: {statement(result)}. {result.headline.reading}")
