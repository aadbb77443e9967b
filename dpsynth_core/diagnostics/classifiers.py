"""The twelve classifiers of Kreačić et al. (2023), Table 1, and the area under the ROC curve that they are judged by.

All of them weigh rare labels as much as frequent ones. XGBoost is represented by scikit-learn's own gradient boosting
on histograms, which grows the same kind of trees (docs/dependencies.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray

SECONDS: dict[str, float] = {
    "Logistic regression": 0.01,
    "Gaussian naive Bayes": 0.003,
    "Bernoulli naive Bayes": 0.004,
    "Linear SVM": 0.004,
    "Decision tree": 0.01,
    "LDA": 0.004,
    "AdaBoost": 0.13,
    "Bagging": 0.06,
    "Random forest": 0.27,
    "Gradient boosting": 0.28,
    "Multi-layer perceptron": 0.45,
    "Hist. boosting (for XGBoost)": 0.15,
}
"""By name, in the order of Table 1: CPU seconds to learn from 1,000 rows of ten coordinates, roughly."""
CLASSIFIERS = tuple(SECONDS)
QUICK = CLASSIFIERS[:6]
"""Those that take hundredths of a second."""
MAX_ITERATIONS = 1_000
WEIGHED_BY_ROW = ("AdaBoost", "Gradient boosting", "Multi-layer perceptron")
"""They have no option for it, so that their rows get weights instead."""


@dataclass(frozen=True, kw_only=True)
class LabelledRows:
    """Coordinates and label of every row."""

    X: FloatArray
    y: IntArray
    """From 0."""

    def take(self, rows: IntArray) -> LabelledRows:
        return LabelledRows(X=self.X[rows], y=self.y[rows])


@dataclass(frozen=True, kw_only=True)
class RocAreas:
    """Areas under the ROC curve on the same test rows; one half for a guess."""

    scores: float
    """By the classifier's scores: how well it ranks rows."""
    labels: float
    """By the labels that it predicts: for two labels, the mean share of each that is right."""


def roc_areas(name: str, training: LabelledRows, test: LabelledRows, labels: int, seed: int) -> RocAreas:
    """Learn from some rows and judge by others; the mean over the labels if there are more than two.

    Coordinates are standardised by the training rows. Rows of a single label teach nothing, so that every test row
    gets the same score and the areas are one half.
    """
    known = np.unique(training.y)
    if len(known) < 2:
        return RocAreas(scores=0.5, labels=0.5)
    mean, std = training.X.mean(axis=0), training.X.std(axis=0)
    std = np.where(std > 1e-12, std, 1.0)
    X, X_test = (training.X - mean) / std, (test.X - mean) / std
    classifier = _untrained(name, len(known), seed)
    weights = {"sample_weight": _balanced(training.y)} if name in WEIGHED_BY_ROW else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fit has not converged is part of how good it is
        classifier.fit(X, training.y, **weights)
        scores = _scores(classifier, X_test, known, labels)
        predicted = np.asarray(classifier.predict(X_test))
    hits = (predicted[:, None] == np.arange(labels)[None, :]).astype(np.float64)
    return RocAreas(scores=mean_area(scores, test.y), labels=mean_area(hits, test.y))


def mean_area(scores: FloatArray, y: IntArray) -> float:
    """Mean over the labels of the area under the curve of that label against all others (ties count half).

    Args:
        scores: One column for each label.
        y: The labels, from 0; those that no row has are left out.

    Example:
        >>> mean_area(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 1, 1]))
        1.0
    """
    from scipy.stats import rankdata  # noqa: PLC0415  slow to import, and whoever compares columns waits for it

    areas = []
    for label in np.unique(y):
        own = y == label
        n1, n0 = int(own.sum()), int((~own).sum())
        if n0:
            # Mann & Whitney: U / (n1 n0) is the chance that a row with this label scores higher than one without it.
            areas.append((rankdata(scores[:, label])[own].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))
    return float(np.mean(areas))


def _scores(classifier: Any, X: FloatArray, known: IntArray, labels: int) -> FloatArray:
    """One column for each label; a label that was not learned has the same score everywhere."""
    if hasattr(classifier, "predict_proba"):
        found = np.asarray(classifier.predict_proba(X))
    else:
        found = np.asarray(classifier.decision_function(X))
        found = np.column_stack([-found, found]) if found.ndim == 1 else found
    scores = np.zeros((len(X), labels))
    scores[:, known] = np.nan_to_num(found)
    return scores


def _balanced(y: IntArray) -> FloatArray:
    counts = np.bincount(y)
    return np.asarray(len(y) / (np.count_nonzero(counts) * counts[y]), dtype=np.float64)


def _untrained(name: str, labels: int, seed: int) -> Any:
    """With scikit-learn's settings, but for what balances the labels and bounds the time."""
    # Slow to import.
    from sklearn import discriminant_analysis, ensemble, linear_model, naive_bayes, neural_network, svm, tree  # noqa: PLC0415

    seeded: dict[str, Any] = {"random_state": seed}
    balanced: dict[str, Any] = {"class_weight": "balanced", **seeded}
    alike = np.full(labels, 1 / labels)
    made: dict[str, Callable[[], Any]] = {
        "Logistic regression": lambda: linear_model.LogisticRegression(max_iter=MAX_ITERATIONS, **balanced),
        "Gaussian naive Bayes": lambda: naive_bayes.GaussianNB(priors=alike),
        # Each coordinate as above or below its mean.
        "Bernoulli naive Bayes": lambda: naive_bayes.BernoulliNB(fit_prior=False),
        "Linear SVM": lambda: svm.LinearSVC(max_iter=MAX_ITERATIONS, **balanced),
        "Decision tree": lambda: tree.DecisionTreeClassifier(**balanced),
        # Shrinkage, because the coordinates of a column of labels add up to one.
        "LDA": lambda: discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=alike),
        "AdaBoost": lambda: ensemble.AdaBoostClassifier(**seeded),
        "Bagging": lambda: ensemble.BaggingClassifier(tree.DecisionTreeClassifier(class_weight="balanced"), **seeded),
        "Random forest": lambda: ensemble.RandomForestClassifier(**balanced),
        "Gradient boosting": lambda: ensemble.GradientBoostingClassifier(**seeded),
        "Multi-layer perceptron": lambda: neural_network.MLPClassifier(**seeded),
        "Hist. boosting (for XGBoost)": lambda: ensemble.HistGradientBoostingClassifier(**balanced),
    }
    return made[name]()
