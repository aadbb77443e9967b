"""How long the server takes to show Diagnostics to somebody with a table of their own.

python -m benchmarks.diagnostics_waits [--shapes 5000x16,70000x12] [--visitors 3] [--pause 20]

Two thirds of the columns are numbers, the others labels of six levels, and they depend on each other. Measured from the
click on the page's link, for a release that nobody has looked at: until single columns and pairs are there, and until
everything is. The visitor speaks the app's protocol and draws nothing: a browser draws on a machine of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.page_waits import serving
from benchmarks.visitor import Visitor
from dpsynth_core.diagnostics import DIAGNOSTICS

PROMISED = {"5000x16": "2 and 10 s", "70000x12": "2 and 30 s"}
LEVELS = 6
READING = 4.0
"""Seconds that somebody looks at the synthetic table."""


def csv_of(rows: int, columns: int) -> bytes:
    """Numbers that share one cause, and labels cut from such numbers."""
    rng = np.random.default_rng(21)
    cause = rng.normal(size=rows)
    table = pd.DataFrame()
    for i in range(columns):
        values = cause * rng.uniform(-1, 1) + rng.normal(size=rows)
        if i % 3 == 2:
            table[f"label{i}"] = pd.cut(values, LEVELS, labels=[f"level {level}" for level in range(LEVELS)])
        else:
            table[f"number{i}"] = values.round(3)
    return table.to_csv(index=False).encode()


async def waited(url: str, content: bytes) -> tuple[float, float]:
    """One visitor's seconds until columns and pairs are there, and until everything is."""
    async with Visitor(url=url, canaries=re.compile(rb"$^")) as visitor:
        await visitor.go("Data")
        await visitor.choose("Source", "My own file")
        await visitor.tick("This file holds only public or simulated data.")
        await visitor.upload("table.csv", content)
        await visitor.press("Use this file")
        await visitor.until(lambda: "The table" in visitor.headings)
        await visitor.press("All of these are public knowledge")
        await visitor.quiet()
        await visitor.go("Synthesize")
        await visitor.press("Synthesize")
        await visitor.until(lambda: "The synthetic table" in visitor.headings)
        await visitor.quiet()
        await asyncio.sleep(READING)
        began, there = time.perf_counter(), {}
        await visitor.go("Diagnostics")
        for key, diagnostic in DIAGNOSTICS.items():
            title = diagnostic.title
            await visitor.until(lambda title=title: title in visitor.headings)
            there[key] = time.perf_counter() - began
        return there["pairs"], max(there.values())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(PROMISED))
    parser.add_argument("--visitors", type=int, default=3, help="one after the other")
    parser.add_argument("--pause", type=float, default=20.0, help="seconds before each of them")
    chosen = parser.parse_args()
    with serving() as url:
        for shape, number in product(chosen.shapes.split(","), range(chosen.visitors)):
            time.sleep(chosen.pause)  # a fresh server compiles, and work of whoever left ends
            rows, columns = map(int, shape.split("x"))
            first, everything = asyncio.run(waited(url, csv_of(rows, columns)))
            seen = f"columns and pairs {first:.1f} s, all {everything:.1f} s"
            promised, load = PROMISED.get(shape, "nothing"), os.getloadavg()[0]
            print(f"{shape}, visitor {number + 1}: {seen}; promised: {promised} (load {load:.1f})", flush=True)


if __name__ == "__main__":
    main()
