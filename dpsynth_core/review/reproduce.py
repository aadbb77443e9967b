"""Run the pipeline behind this bundle again: the same schema, mechanism, parameters and budget, with fresh noise.

    python reproduce.py                      on rows simulated from schema.json
    python reproduce.py my_table.csv         on a table of yours with the same columns and layout

Needs the package dpsynth_core. The synthetic rows will differ from those in the bundle: release noise has no seed.
This script keeps no account of what is spent; for private data use ``python -m dpsynth_core synthesize``, which does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    from dpsynth_core.errors import DPSynthError
    from dpsynth_core.progress import Point, RunProgress
    from dpsynth_core.review.export import safe_csv
    from dpsynth_core.runs.configuration import RunConfig, execute
    from dpsynth_core.table.readers.read import read_table
    from dpsynth_core.table.schema import Schema
    from dpsynth_core.table.simulate import simulate_table
except ModuleNotFoundError as missing:
    sys.exit(
        f"Error: this script needs the package {missing.name}. Install DPSynth as its README says, then run the script "
        "with DPSynth's Python and its folder on PYTHONPATH."
    )


class StagePrinter(RunProgress):
    """Prints each stage as it begins."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:  # noqa: ARG002  the interface's
        """How far it is."""
        if stage != self._stage:
            self._stage = stage
            print(stage, file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and write the first synthetic table."""
    parser = argparse.ArgumentParser(description="Run the pipeline behind this bundle again.")
    parser.add_argument("table", nargs="?", help="a table with the schema's columns; none: simulated rows")
    parser.add_argument("--rows", type=int, default=1_000, help="rows to simulate where no table is given")
    parser.add_argument("--out", type=Path, default=Path("again.csv"), help="where the synthetic rows go")
    chosen = parser.parse_args(arguments)
    here = Path(__file__).parent
    try:
        schema = Schema.from_json((here / "schema.json").read_bytes())
        order = RunConfig.from_json((here / "configuration.json").read_bytes())
        table = read_table(chosen.table, schema) if chosen.table else simulate_table(schema, chosen.rows, seed=0)
        outcome = execute(table, schema, order, progress=StagePrinter())
        chosen.out.write_bytes(safe_csv(outcome.tables[0]))
    except (DPSynthError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(f"{len(outcome.tables[0]):,} synthetic rows in {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
