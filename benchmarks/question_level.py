"""Type I error of calibrated shares, correlations and slopes: how often unrelated columns get a low p-value.

    python -m benchmarks.question_level --results level.csv [--repetitions 100]

Every line of the file is one release of a table whose columns have nothing to do with each other. Most releases are
decided by a few simulations of the estimated null: where its p-value is high, that of the full figure, which is the
largest over several nulls, is higher. Only the others get the full figure, the one that the page ends with. Settings
are taken in turn, so that a run that is ended early has as many repetitions of each; it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.correlation_test import CorrelationTest
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.question import Question
from dpsynth_core.inference.question_risk import question_risk
from dpsynth_core.inference.share_test import ShareTest
from dpsynth_core.inference.simulated_pvalues import ALPHA, simulated_pvalues
from dpsynth_core.inference.slope_test import SlopeTest
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

GATES = ((19, 0.3), (99, 0.12))
"""Simulations of the estimated null, and the p-value above which the full figure cannot be expected to reach 0.05."""
MAX_LEVEL = 0.07
SEED = 77


def skewed(n: int, rng: np.random.Generator) -> FloatArray:
    return np.minimum(rng.exponential(8, n), 100.0)


def bimodal(n: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(np.clip(rng.normal(np.where(rng.random(n) < 0.3, 25, 75), 6), 0, 100))


SHAPES: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {"skewed": skewed, "bimodal": bimodal}


@dataclass(frozen=True, kw_only=True)
class LevelSetting:
    """What is asked, of which release."""

    kind: str
    mechanism: str
    shape: str
    n: int
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class LevelResult(LevelSetting):
    """One release."""

    repetition: int
    answered: bool
    """Whether there is a calibrated p-value."""
    low: bool
    """Whether it is 0.05 or less: a false discovery."""
    gate: str
    """What decided: the p-value after a few simulations, or the full figure."""
    verdict: str
    """On the ordinary test; empty where a few simulations decided."""


SETTINGS = (
    LevelSetting(kind="correlation", mechanism="smoothed_histogram", shape="skewed", n=300, epsilon=1.0),
    LevelSetting(kind="correlation", mechanism="perturbed_histogram", shape="bimodal", n=1_000, epsilon=5.0),
    LevelSetting(kind="correlation", mechanism="kd_tree", shape="bimodal", n=1_000, epsilon=5.0),
    LevelSetting(kind="slope", mechanism="noisy_bayes", shape="bimodal", n=1_000, epsilon=5.0),
    LevelSetting(kind="slope", mechanism="smoothed_histogram", shape="bimodal", n=300, epsilon=1.0),
    LevelSetting(kind="share", mechanism="perturbed_histogram", shape="rare", n=300, epsilon=0.2),
    LevelSetting(kind="share", mechanism="kd_grid", shape="rare", n=300, epsilon=1.0),
    LevelSetting(kind="share", mechanism="noisy_bayes", shape="rare", n=300, epsilon=1.0),
)


RARE, OUTCOME = 0.05, 0.2
"""Rows in the smaller group, and rows with the outcome, as shares."""
SHARE_SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "group", "kind": "categorical", "categories": ["a", "b"], "public": True},
            {"name": "outcome", "kind": "boolean", "public": True},
        ]
    }
)


def schema(columns: int) -> Schema:
    return Schema.from_dict(
        {
            "columns": [
                {"name": name, "kind": "continuous", "lower": 0, "upper": 100, "bins": 12, "public": True}
                for name in ("x", "y", "z")[:columns]
            ]
        }
    )


def question_of(setting: LevelSetting) -> tuple[Schema, Question]:
    if setting.kind == "share":
        return SHARE_SCHEMA, ShareTest.of(SHARE_SCHEMA, value="outcome", group="group", outcome=True)
    if setting.kind == "correlation":
        return schema(2), CorrelationTest.of(schema(2), value="y", other="x")
    return schema(3), SlopeTest.of(schema(3), value="y", predictor="x", others=("z",))


def table_of(setting: LevelSetting, columns: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Columns that have nothing to do with each other."""
    if setting.kind == "share":
        group = np.where(rng.permutation(setting.n) < RARE * setting.n, "a", "b")
        return pd.DataFrame({"group": group, "outcome": rng.random(setting.n) < OUTCOME})
    return pd.DataFrame({column.name: SHAPES[setting.shape](setting.n, rng) for column in columns})


def run(setting: LevelSetting, repetition: int) -> LevelResult:
    """One release of unrelated columns."""
    rng = np.random.default_rng([SEED, SETTINGS.index(setting), repetition])
    columns, question = question_of(setting)
    table = table_of(setting, columns, rng)
    mechanism = MECHANISMS[setting.mechanism].suggest(columns, setting.n, setting.epsilon)
    seed = int(rng.integers(2**62))
    release = synthesize(PrivateTable(table, columns), mechanism, epsilon=str(setting.epsilon), seed=seed)
    synthetic = release.sample()
    simulator = simulator_of(release, question, synthetic, workers=1)
    estimate = simulator.estimate(rng)
    for simulations, enough in GATES if simulator.found.tested.all() else ():
        drawn = simulator.run(estimate, simulations, rng).found.tested_statistics(0)
        if simulated_pvalues(simulator.statistics, drawn[None])[0] > enough:
            gate = f"p above {enough:g}"
            return LevelResult(
                **asdict(setting), repetition=repetition, answered=True, low=False, gate=gate, verdict=""
            )
    risk = question_risk(release, question, table=synthetic, seed=repetition, workers=1)
    return LevelResult(
        **asdict(setting),
        repetition=repetition,
        answered=risk.calibrated is not None,
        low=risk.calibrated is not None and risk.calibrated <= ALPHA,
        gate="full",
        verdict=risk.verdict,
    )


def finished(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict[str, str]]) -> Iterator[str]:
    """False discoveries of each setting, with the interval that its repetitions leave."""
    for setting in SETTINGS:
        own = [row for row in rows if all(row[name] == str(value) for name, value in asdict(setting).items())]
        if not own:
            continue
        low = sum(row["low"] == "True" for row in own)
        held = sum(row["answered"] == "False" for row in own)
        share = Proportion(count=low, reps=len(own) - held)
        yield (
            f"{setting.kind}, {setting.mechanism}, {setting.shape}, {setting.n:,} rows, epsilon {setting.epsilon:g}: "
            f"{low} of {share.reps} ({share.low:.3f} to {share.high:.3f}; at most {MAX_LEVEL:g} wanted), "
            f"{held} without an answer"
        )


def main() -> None:
    """Run what is not finished yet, then say what holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="a CSV file; what is in it is not run again")
    parser.add_argument("--kinds", default="correlation,slope,share")
    parser.add_argument("--repetitions", type=int, default=100, help="of each setting")
    chosen = parser.parse_args()
    names = [one.name for one in fields(LevelResult)]
    done = {tuple(row[name] for name in names[:6]) for row in finished(chosen.results)}
    for repetition in range(chosen.repetitions):
        for setting in SETTINGS:
            if setting.kind not in chosen.kinds.split(","):
                continue
            if (*map(str, asdict(setting).values()), str(repetition)) in done:
                continue
            result = run(setting, repetition)
            new = not chosen.results.exists()
            with chosen.results.open("a", newline="") as file:
                writer = csv.DictWriter(file, names)
                if new:
                    writer.writeheader()
                writer.writerow(asdict(result))
    print("\n".join(summary(finished(chosen.results))))


if __name__ == "__main__":
    main()
