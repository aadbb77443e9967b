"""The downstream task of Kreačić et al. (2023), Tables 1 and 2: train on synthetic rows, test on rows held out.

As in the paper, 80% of the rows are synthesized and the other 20% are for testing, so that no mechanism has seen them.
(The paper prints "remaining 80%".) Of the fraud table's training part, all frauds and 0.5% of the other rows are kept,
as the paper and Harder et al. (2021) do. The number of rows that remain is taken to be public, as they take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from dpsynth_core.diagnostics.classifiers import CLASSIFIERS, LabelledRows, roc_areas
from dpsynth_core.diagnostics.features import features
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.mean_embedding.balog_features import BalogFeatures
from dpsynth_core.mechanisms.mean_embedding.balog_points import BalogPoints
from dpsynth_core.mechanisms.mean_embedding.dp_merf import DPMERF
from dpsynth_core.mechanisms.private_pgm import PrivatePGM
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

EPSILONS = (10.0, 1.0, 0.1)
DELTA = "1e-6"
FRAUD_ROWS, FRAUD_SHARE, COMPONENTS = 284_807, 0.00173, 28
UNDERSAMPLING = 0.005
"""Share of the rows without fraud that are kept for training."""
CARDIO_ROWS = 10_000
"""Of 70,000, drawn anew for each repetition, so that twelve classifiers take seconds."""
MAX_TRAINING, MAX_TEST = 1_500, 5_000
"""Rows that a classifier learns from, and is tested on, at most."""
PAPER_TREE = {
    "Logistic regression": (0.705, 0.545, 0.481),
    "Gaussian naive Bayes": (0.562, 0.563, 0.479),
    "Bernoulli naive Bayes": (0.495, 0.564, 0.497),
    "Linear SVM": (0.758, 0.524, 0.508),
    "Decision tree": (0.676, 0.611, 0.519),
    "LDA": (0.518, 0.580, 0.480),
    "AdaBoost": (0.632, 0.572, 0.485),
    "Bagging": (0.673, 0.579, 0.518),
    "Random forest": (0.663, 0.594, 0.530),
    "Gradient boosting": (0.631, 0.582, 0.521),
    "Multi-layer perceptron": (0.625, 0.553, 0.486),
    "Hist. boosting (for XGBoost)": (0.588, 0.598, 0.527),
}
"""Table 1 at epsilon 10, 1 and 0.1, on the fraud table itself; XGBoost's own in the last line."""
PAPER_MEANS = {"KD tree (Table 1)": (0.627, 0.572, 0.503), "DP-MERF (Table 2)": (0.880, 0.792, 0.564)}
BASELINE = "training part itself, not private"


@dataclass(frozen=True, kw_only=True)
class LabelledTable:
    """A table with a label, and what is known of it."""

    name: str
    label: str
    schema: Schema
    rows: Callable[[RunOptions, np.random.Generator], pd.DataFrame]
    """All rows, or as many as the experiment uses."""
    kept: float = 1.0
    """Share of the rows with the frequent label that are kept for training."""
    published: bool = False
    """Whether the papers' figures are for this table."""


def classification_task(options: RunOptions) -> Iterator[ResultTable]:
    """Tables 1 and 2 of the KD-tree paper: twelve classifiers trained on synthetic rows, AUC on rows held out."""
    for table in _tables(options):
        methods = _methods(table.label)
        found: dict[tuple[str, float], list[dict[str, list[float]]]] = {}
        for rep in range(options.reps):
            for name, epsilon in [(BASELINE, 0.0), *((name, epsilon) for name in methods for epsilon in EPSILONS)]:
                options.report(f"{table.name}, repetition {rep + 1} of {options.reps}: {name}, epsilon {epsilon:g}")
                key = f"classification_task/{table.name}/{options.shrink}/{name}/{epsilon:g}/{rep}/{options.secure}"
                run = partial(_run, table, methods.get(name), epsilon, rep, options)
                found.setdefault((name, epsilon), []).append(options.store.once(key, run))
        yield _means(table, methods, found, options)
        yield _by_classifier(table, found, options)


def _methods(label: str) -> dict[str, Callable[[Schema, int, float], Mechanism]]:
    return {
        "kd_tree": KDTree.suggest,
        "kd_grid": KDGrid.suggest,
        "private_pgm": lambda schema, n, epsilon: replace(PrivatePGM.suggest(schema, n, epsilon, DELTA), target=label),
        "dp_merf": lambda *_: DPMERF(label=label),
        "balog_points": BalogPoints.suggest,
        "balog_features": BalogFeatures.suggest,
    }


def _run(
    table: LabelledTable,
    choose: Callable[[Schema, int, float], Mechanism] | None,
    epsilon: float,
    rep: int,
    options: RunOptions,
) -> dict[str, list[float]]:
    """For each classifier its areas from scores and from labels; nothing where the mechanism refuses the table."""
    rng = np.random.default_rng(rep)
    rows = table.rows(options, rng)
    training, test = _divided(table, rows, rng)
    original = PrivateTable(training, table.schema)
    if choose is None:
        learned = training
    else:
        try:
            mechanism = choose(table.schema, original.n, epsilon)
            delta = DELTA if mechanism.needs_delta or mechanism.takes_delta else 0
            seed = None if options.secure else rep
            learned = synthesize(original, mechanism, epsilon=epsilon, delta=delta, seed=seed).sample()
        except DPSynthError:
            return {}
    parts = [_labelled(table, part, limit, rng) for part, limit in ((learned, MAX_TRAINING), (test, MAX_TEST))]
    areas = {name: roc_areas(name, parts[0], parts[1], 2, seed=rep) for name in CLASSIFIERS}
    return {name: [each.scores, each.labels] for name, each in areas.items()}


def _divided(table: LabelledTable, rows: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """80% of the rows of either label for training, less the rows that are undersampled; the rest for testing."""
    label = rows[table.label].to_numpy()
    training = np.zeros(len(rows), dtype=bool)
    for value in np.unique(label):
        own = rng.permutation(np.flatnonzero(label == value))
        training[own[: int(0.8 * len(own))]] = True
    kept = training & ((label == 1) | (rng.random(len(rows)) < table.kept))
    return rows[kept].reset_index(drop=True), rows[~training].reset_index(drop=True)


def _labelled(table: LabelledTable, rows: pd.DataFrame, limit: int, rng: np.random.Generator) -> LabelledRows:
    """Rows as coordinates; where they are too many, those of the frequent label are left out first."""
    label = rows[table.label].to_numpy()
    rare = [np.flatnonzero(label == value) for value in (0, 1)]
    rare.sort(key=len)
    some = rng.permutation(rare[0])[: max(limit // 2, limit - len(rare[1]))]
    chosen = np.concatenate([some, rng.permutation(rare[1])[: limit - len(some)]])
    others = table.schema.select([name for name in table.schema.names if name != table.label])
    X = features(PrivateTable(rows.iloc[chosen][list(others.names)], others)).values
    return LabelledRows(X=X, y=label[chosen].astype(np.int64))


def _means(
    table: LabelledTable,
    methods: dict[str, Callable[[Schema, int, float], Mechanism]],
    found: dict[tuple[str, float], list[dict[str, list[float]]]],
    options: RunOptions,
) -> ResultTable:
    rows: list[tuple[CellValue, ...]] = []
    for kind, index in (("scores", 0), ("labels", 1)):
        baseline = _mean(found[BASELINE, 0.0], index)
        rows.append((BASELINE, kind, baseline, *[None] * (len(EPSILONS) - 1)))
        rows += [(name, kind, *(_mean(found[name, epsilon], index) for epsilon in EPSILONS)) for name in methods]
    if table.published:
        rows += [(f"published: {name}", "not stated", *values) for name, values in PAPER_MEANS.items()]
    return ResultTable(
        title=f"Mean AUC of twelve classifiers, trained on synthetic rows: {table.name}",
        notes=(
            f"{options.reps} repetition(s), each with a split of its own; mean ± standard error. 0.5 is a guess. "
            f"Delta {DELTA} where a mechanism takes one. '-': the mechanism refuses the table at this epsilon.",
        ),
        columns=("method", "AUC from", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(rows),
    )


def _mean(repeated: list[dict[str, list[float]]], index: int) -> CellValue:
    """Over classifiers, and then over repetitions."""
    values = [float(np.mean([areas[index] for areas in each.values()])) for each in repeated if each]
    return Estimate.of(values) if values else None


def _by_classifier(
    table: LabelledTable, found: dict[tuple[str, float], list[dict[str, list[float]]]], options: RunOptions
) -> ResultTable:
    """Table 1: the KD tree, classifier by classifier."""
    rows: list[tuple[CellValue, ...]] = []
    for name in CLASSIFIERS:
        cells: list[CellValue] = []
        for epsilon in EPSILONS:
            cells += [_one([each[name][index] for each in found["kd_tree", epsilon] if each]) for index in (0, 1)]
        published: tuple[CellValue, ...] = PAPER_TREE[name] if table.published else ()
        rows.append((name, _one([each[name][0] for each in found[BASELINE, 0.0]]), *cells, *published))
    measured = [f"eps {epsilon:g}, {kind}" for epsilon in EPSILONS for kind in ("scores", "labels")]
    printed = [f"paper, eps {epsilon:g}" for epsilon in EPSILONS] if table.published else []
    return ResultTable(
        title=f"KD tree, classifier by classifier (Table 1): {table.name}",
        notes=(f"AUC from scores and from predicted labels; {options.reps} repetition(s).",),
        columns=("classifier", "trained on the original", *measured, *printed),
        rows=tuple(rows),
    )


def _one(values: list[float]) -> CellValue:
    return Estimate.of(values) if values else None


# ------------------------------------------------------------------------------------------------------------- tables


def _tables(options: RunOptions) -> Iterator[LabelledTable]:
    file = None if options.data is None else options.data / "creditcard" / "creditcard.csv"
    if file is not None and file.exists():
        published = pd.read_csv(file).drop(columns="Time")
        yield _fraud("credit-card fraud", lambda *_: published, published=True)
    else:
        yield _fraud("simulated rows of the fraud table's shape", simulated_fraud, published=False)
    heart = None if options.data is None else options.data / "cardio" / "cardio_train.csv.gz"
    if heart is not None and heart.exists():
        people = pd.read_csv(heart, sep=";").drop(columns="id")

        def some(options: RunOptions, rng: np.random.Generator) -> pd.DataFrame:
            return people.sample(options.rows(CARDIO_ROWS), random_state=rng).reset_index(drop=True)

        yield LabelledTable(name="cardiovascular disease", label="cardio", schema=_cardio_schema(), rows=some)


def _fraud(
    name: str, rows: Callable[[RunOptions, np.random.Generator], pd.DataFrame], *, published: bool
) -> LabelledTable:
    columns = [{"name": f"V{i}", "kind": "continuous", "lower": -20, "upper": 20} for i in range(1, COMPONENTS + 1)]
    columns += [
        {"name": "Amount", "kind": "continuous", "lower": 0, "upper": 2_500},
        {"name": "Class", "kind": "integer", "lower": 0, "upper": 1},
    ]
    schema = Schema.from_dict({"columns": [{**column, "public": True} for column in columns]})
    return LabelledTable(name=name, label="Class", schema=schema, rows=rows, kept=UNDERSAMPLING, published=published)


def simulated_fraud(options: RunOptions, rng: np.random.Generator) -> pd.DataFrame:
    """Uncorrelated components with the published table's falling spread; frauds lie elsewhere in seven of them."""
    n = options.rows(FRAUD_ROWS)
    fraud = rng.permutation(n) < max(20, round(FRAUD_SHARE * n))
    spread = 1.96 * (0.33 / 1.96) ** (np.arange(COMPONENTS) / (COMPONENTS - 1))
    values = rng.standard_t(5, (n, COMPONENTS)) * np.sqrt(3 / 5)
    shift = np.zeros(COMPONENTS)
    shift[[2, 9, 11, 13, 16]], shift[[3, 10]] = -2.5, 2.0
    values = (values * np.where(fraud, 1.8, 1.0)[:, None] + np.outer(fraud, shift)) * spread
    amount = np.exp(rng.normal(3.2, 1.6, n))
    names = [f"V{i}" for i in range(1, COMPONENTS + 1)]
    return pd.DataFrame(values, columns=names).assign(Amount=amount, Class=fraud.astype(np.int64))


def _cardio_schema() -> Schema:
    def whole(name: str, lower: int, upper: int) -> dict[str, object]:
        return {"name": name, "kind": "integer", "lower": lower, "upper": upper, "public": True}

    weight = {"name": "weight", "kind": "continuous", "lower": 30, "upper": 200, "public": True}
    columns = [whole("age", 10_000, 25_000), whole("gender", 1, 2), whole("height", 130, 210), weight]
    columns += [whole("sbp", 70, 230), whole("dbp", 40, 140), whole("cholesterol", 1, 3), whole("gluc", 1, 3)]
    columns += [whole(name, 0, 1) for name in ("smoke", "alco", "active", "cardio")]
    return Schema.from_dict({"columns": columns})
