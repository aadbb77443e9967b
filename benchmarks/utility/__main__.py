"""The command line: ``python -m benchmarks.utility [--data FOLDER] [--rivals FILE.py] [--out FILE.csv] ...``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.utility.measures import marginal_errors, model_scores
from benchmarks.utility.methods import REAL, REFERENCES, RIVALS, Method, methods
from benchmarks.utility.results import Line, append_line, read_lines, rising_errors, summary
from benchmarks.utility.tables import KEYS, BenchmarkTable, load_table
from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.private_table import PrivateTable

EPSILONS = ("0.3", "1", "3", "10")
DELTAS = ("0", "1e-6")
OURS = ("private_pgm",)


class Case(NamedTuple):
    """One release to make."""

    epsilon: str
    delta: str
    method: str
    rep: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the results file does not have yet, then print all of it as one table."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        available = methods(given.rivals)
        unknown = [name for name in given.methods or () if name not in available]
        if unknown:
            parser.error(f"There is no method {unknown[0]!r}. Choose from: {', '.join(available)}.")
        chosen = given.methods or [*REFERENCES, *OURS, *(name for name in RIVALS if name in available)]
        for key in given.tables:
            table = load_table(key, given.data)
            if table is None:
                print(f"{key} is left out: there is no folder {key} in the one given by --data.", file=sys.stderr)
                continue
            done = {line.key for line in read_lines(given.out)}
            for case in _cases(given.epsilons, given.deltas, chosen, given.reps):
                if (key, *case) not in done:
                    append_line(given.out, _measured(table, case, available[case.method]))
    except DPSynthError as error:
        parser.error(str(error))
    lines = read_lines(given.out)
    text = "\n\n".join([summary(lines), *(f"Rises with epsilon: {each}" for each in rising_errors(lines))])
    given.out.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def _cases(epsilons: Sequence[str], deltas: Sequence[str], chosen: Sequence[str], reps: int) -> Iterator[Case]:
    for rep in range(reps):
        for method in chosen:
            if method in REFERENCES:
                yield Case("", "", method, rep)
        for delta in sorted(deltas, key=float, reverse=True):
            for epsilon in epsilons:
                for method in chosen:
                    # MST and AIM draw Gaussian noise, which has no pure epsilon.
                    if method not in REFERENCES and (method not in RIVALS or float(delta)):
                        yield Case(epsilon, delta, method, rep)


def _measured(table: BenchmarkTable, case: Case, method: Method) -> Line:
    print(f"{table.key}: {' '.join(map(str, case))}", file=sys.stderr, flush=True)
    rows, test = table.split(case.rep)
    original = PrivateTable(rows, table.schema)
    budget = Budget.of(case.epsilon or 1, case.delta or 0)
    warm = PrivateTable(rows.head(200), table.schema)
    if case.method not in RIVALS:
        method(warm, budget, 0)  # imports and compiling are not what is measured
    start = time.process_time()
    made, note = method(original, budget, case.rep)
    spent = time.process_time() - start
    training = rows if case.method == REAL else made
    return Line(
        table=table.key,
        rows=len(rows),
        columns=len(table.schema.columns),
        epsilon=case.epsilon,
        delta=case.delta,
        method=case.method,
        rep=case.rep,
        **marginal_errors(original, made),
        **model_scores(table, training, test),
        cpu_seconds=spent,
        note=note,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.utility",
        description="Measure how near releases come to their originals, beside other methods.",
        epilog="A file of rivals defines mst(codes, sizes, rho, rng) or aim(codes, sizes, rho, rng), or both: codes is "
        "an (n, d) integer array, sizes the number of codes of each column, rho a budget of zero-concentrated privacy "
        "for adding or removing a row, rng a numpy Generator. Each returns synthetic codes and a dict of remarks "
        "('cut': True if it was cut short).",
    )
    parser.add_argument("--data", type=Path, help="folder with nist_acs and cardio; without it, they are left out")
    parser.add_argument("--rivals", type=Path, help="a Python file that defines mst, aim or both")
    parser.add_argument("--out", type=Path, default=Path("utility.csv"), help="results; what it has is not run again")
    parser.add_argument("--tables", nargs="+", choices=KEYS, default=KEYS, metavar="TABLE", help=", ".join(KEYS))
    parser.add_argument("--epsilons", nargs="+", default=EPSILONS, metavar="EPS")
    parser.add_argument("--deltas", nargs="+", default=DELTAS, metavar="DELTA", help="0 for pure privacy")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="references, keys of mechanisms, mst, aim")
    parser.add_argument("--reps", type=int, default=3, help="repetitions, each with its own rows kept aside")
    return parser


if __name__ == "__main__":
    sys.exit(main())
