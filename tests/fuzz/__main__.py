"""``python -m tests.fuzz --files 10000``: exit code 1 if anything happened that must not."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.run import MAX_SECONDS, fuzz


def main() -> int:
    """Read, count, print."""
    parser = argparse.ArgumentParser(description="Read damaged files as the app reads uploads.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file; each number makes one file")
    chosen = parser.parse_args()
    report = fuzz(chosen.files, chosen.first)
    print(f"{report.files:,} damaged files: " + ", ".join(f"{n:,} {what}" for what, n in report.outcomes.most_common()))
    print(f"crashes: {len(report.crashes)} {report.crashes[:20]}")
    print(f"over {MAX_SECONDS:g} s: {len(report.hangs)} {report.hangs[:20]}; slowest {report.longest:.2f} CPU s")
    print(f"cells in messages: {len(report.leaks)} {report.leaks[:20]}")
    print(f"most memory of a reading process: {report.peak_bytes / 1024**2:,.0f} MiB")
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
