"""A run's result as bytes and back: its rows, public facts, configuration and guarantee, as a bundle has them.

What a bundle never holds is not saved either: how long the run took, the partition behind the rows, who declared the
facts, and anything that was computed from the original afterwards.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.runs.configuration import RunConfig, RunResult
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.schema import Schema

_FACTS = "run.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_run(result: RunResult) -> bytes:
    """A result as one file."""
    if result.config.seed is not None or result.comparisons:
        raise DPSynthError("Only a release as its run has made it can be saved: without a seed, without private tests.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_FACTS, date_time=_EPOCH), json.dumps(_facts(result)).encode())
        for at, table in enumerate(result.tables, start=1):
            archive.writestr(zipfile.ZipInfo(f"table_{at}.parquet", date_time=_EPOCH), _rows(table))
    return buffer.getvalue()


def load_run(content: bytes) -> RunResult:
    """A result from what was saved of it.

    Raises:
        DPSynthError: It was saved by another version, which this one does not understand.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            facts = read_json(archive.read(_FACTS))
            names = (f"table_{at}.parquet" for at in range(1, facts["tables"] + 1))
            tables = tuple(pd.read_parquet(io.BytesIO(archive.read(name))) for name in names)
        return _result(facts, tables)
    except (DPSynthError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise DPSynthError(
            f"This release was saved by another version of the program, which wrote it differently ({error})."
        ) from error


def _rows(table: pd.DataFrame) -> bytes:
    plain = table.copy(deep=False)
    plain.attrs = {}
    buffer = io.BytesIO()
    plain.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _facts(result: RunResult) -> dict[str, Any]:
    error = result.expected_error
    return {
        "configuration": read_json(result.config.to_json()),
        "schema": result.schema.unsigned().to_dict(),
        "guarantee": _claim(result.guarantee),
        "estimates": [[each.to_dict(), _claim(each.guarantee)] for each in result.estimates],
        "charges": [[c.label, c.primitive, str(c.sensitivity), *_amounts(c.budget)] for c in result.charges],
        "expected_error": None if error is None else [error.columns, error.pairs, error.repetitions],
        "tables": len(result.tables),
    }


def _result(facts: Mapping[str, Any], tables: tuple[pd.DataFrame, ...]) -> RunResult:
    error = facts["expected_error"]
    return RunResult(
        config=RunConfig.from_json(json.dumps(facts["configuration"])),
        schema=Schema.from_dict(facts["schema"]),
        tables=tables,
        guarantee=_guarantee(facts["guarantee"]),
        estimates=tuple(_estimate(found, claim) for found, claim in facts["estimates"]),
        charges=tuple(
            Charge(label=label, primitive=primitive, sensitivity=Fraction(sensitivity), budget=_budget(amounts))
            for label, primitive, sensitivity, *amounts in facts["charges"]
        ),
        leaves=None,
        seconds=0.0,
        expected_error=None if error is None else _expected_error(*error),
    )


def _amounts(budget: Budget) -> list[str]:
    return [str(budget.epsilon), str(budget.delta)]


def _budget(amounts: list[str]) -> Budget:
    epsilon, delta = map(Fraction, amounts)
    return Budget(epsilon=epsilon, delta=delta)


def _claim(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "status": guarantee.status,
        "parts": [[part.label, *_amounts(part.budget)] for part in guarantee.parts],
        "rows_per_person": guarantee.rows_per_person,
        "caveats": list(guarantee.caveats),
    }


def _guarantee(claim: Mapping[str, Any]) -> Guarantee:
    return Guarantee(
        status=claim["status"],
        parts=tuple(Cost(label=label, budget=_budget(amounts)) for label, *amounts in claim["parts"]),
        rows_per_person=claim["rows_per_person"],
        caveats=tuple(claim["caveats"]),
    )


def _estimate(found: Mapping[str, Any], claim: Mapping[str, Any]) -> PaidEstimate:
    guarantee = _guarantee(claim)
    if guarantee.budget is None:
        raise ValueError("an estimate without a cost")
    made = PaidEstimate.from_dict(found, guarantee.budget, guarantee.rows_per_person)
    return replace(made, guarantee=guarantee)


def _expected_error(columns: list[Any], pairs: list[Any], repetitions: int) -> ExpectedError:
    return ExpectedError(
        columns=tuple((name, error) for name, error in columns),
        pairs=tuple((first, second, error) for first, second, error in pairs),
        repetitions=repetitions,
    )
