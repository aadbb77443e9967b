"""Tables and budgets at the edge, through the running app: a result or a clear refusal, and how long it took.

python -m benchmarks.extremes
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.load import CANARY, serving
from benchmarks.visitor import Visitor

REFUSED = re.compile(r"(cannot be used|Before this can run|does not fit|was not started|failed)[^\n]*(\n[^\n]*){0,2}")


@dataclass(frozen=True, kw_only=True)
class Extreme:
    """A table, and the epsilon it is released at."""

    name: str
    table: pd.DataFrame
    epsilon: str = "1"


def extremes() -> list[Extreme]:
    """Of every kind."""
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"group": rng.choice(["a", "b"], 500), "age": rng.integers(18, 90, 500)})
    wide = pd.DataFrame(rng.integers(0, 5, (500, 300)), columns=[f"c{i}" for i in range(300)])
    many = pd.DataFrame({"code": rng.integers(0, 1000, 5000).astype(str), "age": rng.integers(18, 90, 5000)})
    many["code"] = "k" + many["code"]
    constant = pd.DataFrame({"word": ["same"] * 500, "number": [7] * 500, "age": rng.integers(18, 90, 500)})
    large = pd.DataFrame(rng.integers(0, 100, (10**6, 10)), columns=[f"c{i}" for i in range(10)])
    return [
        Extreme(name="one row", table=plain[:1]),
        Extreme(name="one column", table=plain[["age"]]),
        Extreme(name="300 columns", table=wide),
        Extreme(name="1,000 categories", table=many),
        Extreme(name="constant columns", table=constant),
        Extreme(name="epsilon 0.000001", table=plain, epsilon="0.000001"),
        Extreme(name="epsilon 1,000,000", table=plain, epsilon="1000000"),
        Extreme(name="a million rows, ten columns", table=large),
    ]


async def tried(url: str, extreme: Extreme) -> tuple[str, dict[str, float]]:
    """What came of it, and the seconds that each step took."""
    seconds: dict[str, float] = {}

    async with Visitor(url=url, canaries=CANARY, problems=()) as visitor:

        def ended(heading: str) -> str | None:
            refusal = REFUSED.search(visitor.text)
            return "a result" if heading in visitor.headings else refusal and " ".join(refusal[0].split())

        began = time.monotonic()
        await visitor.go("Data")
        await visitor.choose("Source", "My own file")
        await visitor.tick("This file holds only public or simulated data.")
        await visitor.upload("extreme.csv", extreme.table.to_csv(index=False).encode())
        await visitor.press("Use this file")
        outcome = await visitor.until(lambda: ended("The table"))
        if outcome != "a result":
            return outcome, {"upload": time.monotonic() - began}
        await visitor.press("All of these are public knowledge")
        await visitor.quiet()
        seconds["upload"] = time.monotonic() - began

        began = time.monotonic()
        await visitor.go("Mechanism")
        if extreme.epsilon != "1":
            asked = json.loads(await visitor.download("Save configuration"))
            asked["epsilon"] = extreme.epsilon
            await visitor.upload("c.json", json.dumps(asked).encode(), label="Configuration")
            await visitor.press("Use this configuration")
        seconds["mechanism"] = time.monotonic() - began

        began = time.monotonic()
        await visitor.go("Synthesize")
        if visitor.usable("Synthesize"):
            await visitor.press("Synthesize")
        outcome = await visitor.until(lambda: ended("The synthetic table"))
        seconds["run"] = time.monotonic() - began
        if outcome == "a result":
            began = time.monotonic()
            await visitor.download("Download CSV")
            seconds["download"] = time.monotonic() - began
    return outcome, seconds


def main() -> None:
    """Try and print."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (url, _):
        for extreme in extremes():
            outcome, seconds = asyncio.run(tried(url, extreme))
            times = ", ".join(f"{step} {value:.1f} s" for step, value in seconds.items())
            print(f"  {extreme.name:28} {outcome}; {times}", flush=True)
        log = (Path(folder) / "log").read_text(encoding="utf-8")
        print(f"  errors in the log: {log.count('Traceback')}")
        print(*re.findall(r"Traceback.*?\n(?=\S)[^\n]*", log, re.DOTALL), sep="\n")


if __name__ == "__main__":
    main()
