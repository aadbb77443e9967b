"""``python -m tests.faults --runs 100``: exit code 1 if a charge was lost or doubled, or a result shown without one."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

from tests.faults.run import provoke


def main() -> int:
    """Provoke, examine, print."""
    parser = argparse.ArgumentParser(description="Release runs while processes are killed and the ledger fails.")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no further server after these minutes")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = provoke(Path(folder), chosen.runs, chosen.seed, minutes=chosen.minutes)
    print("servers: " + ", ".join(f"{number} with fault {fault!r}" for fault, number in report.faults.items()))
    print(f"charges on record: {report.runs}, " + ", ".join(f"{n} {state}" for state, n in report.states.items()))
    print(f"results shown: {report.shown}, without a committed charge: {len(report.shown_without_charge)}")
    print(f"drawn but refunded: {len(report.drawn_but_refunded)}; charged twice: {report.doubled}")
    print(f"processes that outlived their server: {report.survivors}")
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
