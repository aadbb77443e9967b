"""Every mechanism on tables and budgets at the edge: a result or a refusal in words, and the CPU seconds it took.

python -m benchmarks.extremes_core [--mechanisms kd_tree,mwem] [--cases one_row,one_column]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class EdgeCase:
    """A table with its schema, and the epsilon of a run."""

    name: str
    table: pd.DataFrame
    schema: Schema
    epsilon: str = "1"


@dataclass(frozen=True, kw_only=True)
class EdgeOutcome:
    """What a mechanism made of a case."""

    case: str
    mechanism: str
    cpu_seconds: float
    refusal: str = ""
    """In words; empty where there is a result."""
    defect: str = ""
    """The type of an error that is no refusal."""


def edge_cases() -> Iterator[EdgeCase]:
    """Tables of one row, one column, many columns, many categories and no variety, and budgets far from one."""
    rng = np.random.default_rng(0)
    age = {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "bins": 10, "public": True}
    sex = {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True}
    plain = pd.DataFrame({"age": rng.integers(0, 100, 500), "sex": rng.choice(["f", "m"], 500)})
    two = Schema.from_dict({"columns": [age, sex]})
    yield EdgeCase(name="one_row", table=plain.head(1), schema=two)
    yield EdgeCase(name="one_column", table=plain[["age"]], schema=Schema.from_dict({"columns": [age]}))
    names = [f"c{i}" for i in range(300)]
    wide = [{"name": name, "kind": "integer", "lower": 0, "upper": 3, "public": True} for name in names]
    yield EdgeCase(
        name="300_columns",
        table=pd.DataFrame(rng.integers(0, 4, (500, 300)), columns=names),
        schema=Schema.from_dict({"columns": wide}),
    )
    codes = [f"k{i}" for i in range(1_000)]
    code = {"name": "code", "kind": "categorical", "categories": codes, "public": True}
    yield EdgeCase(
        name="1000_categories",
        table=pd.DataFrame({"code": rng.choice(codes, 5_000), "sex": rng.choice(["f", "m"], 5_000)}),
        schema=Schema.from_dict({"columns": [code, sex]}),
    )
    yield EdgeCase(name="constant", table=pd.DataFrame({"age": [50] * 500, "sex": ["f"] * 500}), schema=two)
    yield EdgeCase(name="epsilon_1e-6", table=plain, schema=two, epsilon="1e-6")
    yield EdgeCase(name="epsilon_1e6", table=plain, schema=two, epsilon="1e6")


def try_out(case: EdgeCase, key: str) -> EdgeOutcome:
    """Run a mechanism as suggested for the case."""
    began = time.process_time()
    refusal = defect = ""
    kind = MECHANISMS[key]
    try:
        mechanism = kind.suggest(case.schema, len(case.table), case.epsilon)
        config = RunConfig(mechanism=mechanism, epsilon=case.epsilon, delta="1e-6" if kind.needs_delta else "0", seed=1)
        mechanism.plan(case.schema, len(case.table), config.each)
        (table,) = execute(case.table, case.schema, config).tables
        if list(table.columns) != list(case.schema.names) or not len(table):
            defect = "a table without rows or columns"
    except DPSynthError as error:
        refusal = str(error)
    except Exception as error:  # noqa: BLE001  what is looked for here
        defect = type(error).__name__
    seconds = time.process_time() - began
    return EdgeOutcome(case=case.name, mechanism=key, cpu_seconds=seconds, refusal=refusal, defect=defect)


def main() -> None:
    """Try everything out and print."""
    parser = argparse.ArgumentParser(description="Mechanisms at the edge.")
    parser.add_argument("--mechanisms", default=",".join(MECHANISMS))
    parser.add_argument("--cases", default="")
    chosen = parser.parse_args()
    for case in edge_cases():
        if chosen.cases and case.name not in chosen.cases.split(","):
            continue
        for key in chosen.mechanisms.split(","):
            found = try_out(case, key)
            what = (
                f"DEFECT {found.defect}" if found.defect else f"refused: {found.refusal}" if found.refusal else "result"
            )
            print(f"{case.name:16} {key:20} {found.cpu_seconds:7.1f} s cpu  {what}", flush=True)


if __name__ == "__main__":
    main()
