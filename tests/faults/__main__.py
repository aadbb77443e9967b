"""``python -m tests.faults --runs 100``: exit code 1 if a charge was lost or doubled, or a result shown without one."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

from tests.faults.run import FaultReport, provoke
from tests.waiting.postgresql import MISSING, postgresql


def main() -> int:
    """Provoke, examine, print."""
    parser = argparse.ArgumentParser(description="Release runs while processes are killed and the ledger fails.")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no further server after these minutes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgresql", type=int, default=25, help="as many charges with a ledger in PostgreSQL")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clean = show("SQLite", provoke(Path(folder), chosen.runs, chosen.seed, minutes=chosen.minutes))
    if MISSING:
        print(f"PostgreSQL: not tried, {MISSING}")
    elif chosen.postgresql:
        with tempfile.TemporaryDirectory() as folder, postgresql() as database:
            runs, seed, minutes = chosen.postgresql, chosen.seed, chosen.minutes
            report = provoke(Path(folder), runs, seed, minutes=minutes, database=database)
            clean = show("PostgreSQL", report) and clean
    return 0 if clean else 1


def show(what: str, report: FaultReport) -> bool:
    """Print what happened; whether nothing did that must not."""
    print(f"{what}: servers: " + ", ".join(f"{number} with fault {fault!r}" for fault, number in report.faults.items()))
    print(f"charges on record: {report.runs}, " + ", ".join(f"{n} {state}" for state, n in report.states.items()))
    print(f"results shown: {report.shown}, without a committed charge: {len(report.shown_without_charge)}")
    print(f"drawn but refunded: {len(report.drawn_but_refunded)}; charged twice: {report.doubled}")
    print(f"processes that outlived their server: {report.survivors}", flush=True)
    return report.clean


if __name__ == "__main__":
    sys.exit(main())
