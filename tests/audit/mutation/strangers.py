"""Mistakes as a stranger would make them, who has not seen what the audit asks."""

from __future__ import annotations

from dataclasses import dataclass

from tests.audit.mutation.edits import ROOT, Edit

CORE = "dpsynth_core"


@dataclass(frozen=True, kw_only=True)
class Stranger:
    mistake: str
    """In a sentence."""
    path: str
    before: str
    """A piece of the file that occurs once."""
    after: str

    @property
    def edit(self) -> Edit:
        source = (ROOT / self.path).read_text(encoding="utf-8")
        if source.count(self.before) != 1:
            raise ValueError(f"{self.path} does not hold this once: {self.before}")
        start = source.index(self.before)
        return Edit(
            path=self.path,
            line=source[:start].count("\n") + 1,
            family="planted by hand",
            kind=self.mistake,
            start=start,
            end=start + len(self.before),
            text=self.after,
        )


STRANGERS: dict[str, Stranger] = {
    "count in a progress text": Stranger(
        mistake="The progress of a run names the number of rows in the fullest cell.",
        path=f"{CORE}/mechanisms/perturbed_histogram.py",
        before='progress("Counting the cells", 0.0)',
        after='progress(f"Counting the cells, up to {grid.count(table)[1].max()} rows each", 0.0)',
    ),
    "raw point": Stranger(
        mistake="A point that depends on raw rows is marked as releasable.",
        path=f"{CORE}/mechanisms/perturbed_histogram.py",
        before='progress("Counting the cells", 0.0)',
        after="import dpsynth_core.progress as reported\n        "
        'point = reported.Point(series="rows", x=0, y=float(grid.count(table)[1].max()), releasable=True)\n        '
        'progress("Counting the cells", 0.0, point)',
    ),
    "parents by raw dependence": Stranger(
        mistake="Which columns predict a column is decided by raw dependences, and nothing is charged for it.",
        path=f"{CORE}/mechanisms/pmse/parents.py",
        before="best = noise.permute_and_flip(\n                "
        "dependences, sensitivity=Fraction(DEPENDENCE_SENSITIVITY, table.n), epsilon=price, label=CHOOSING\n"
        "            )",
        after="best = int(np.argmax(dependences))",
    ),
    "bins by raw counts": Stranger(
        mistake="The noisy histogram is paid for, and bins are cut by the raw one.",
        path=f"{CORE}/mechanisms/private_pgm/binned_columns.py",
        before="return measurer.histogram(counts, next(shares), FIND_BINS)",
        after="return counts, measurer.histogram(counts, next(shares), FIND_BINS)[1]",
    ),
    "one vector of noise for all": Stranger(
        mistake="Within a run, one vector of noise serves every draw of as many values.",
        path=f"{CORE}/privacy/noise.py",
        before="return values + samplers.seeded_laplace(self._generator, scale, values.shape)",
        after='kept = self.__dict__.setdefault("_kept", {})\n        '
        "return values + kept.setdefault(\n            "
        "(values.shape, scale), samplers.seeded_laplace(self._generator, scale, values.shape)\n        )",
    ),
    "secure noise for all": Stranger(
        mistake="The same in the source of releases.",
        path=f"{CORE}/privacy/noise.py",
        before="            return samplers.over_cores(samplers.opendp_laplace(scale), values)\n        prefetched,",
        after='            kept = self.__dict__.setdefault("_kept", {})\n            '
        "fresh = samplers.over_cores(samplers.opendp_laplace(scale), np.zeros_like(values))\n            "
        "return values + kept.setdefault((values.shape, scale), fresh)\n        prefetched,",
    ),
    "drawn ahead, handed out twice": Stranger(
        mistake="Noise that was drawn ahead stays in stock after it was used.",
        path=f"{CORE}/privacy/noise.py",
        before="prefetched, self._prefetched = self._prefetched, None\n        return prefetched.add_to(values)",
        after="fresh = self._prefetched.add_to(np.zeros_like(values))\n        "
        'return values + np.resize(self.__dict__.setdefault("_stock", fresh), values.shape)',
    ),
    "product sensitivity from three columns on": Stranger(
        mistake="The sensitivity of products is right for two numeric columns and too small for more.",
        path=f"{CORE}/mechanisms/noisy_bayes/moment_layout.py",
        before="2 * (d * d // 4)",
        after="2 * (d // 2)",
    ),
    "dependence score": Stranger(
        mistake="A score of dependence is declared to move by 2/n, where it moves by more.",
        path=f"{CORE}/mechanisms/pmse/parents.py",
        before="DEPENDENCE_SENSITIVITY = 3",
        after="DEPENDENCE_SENSITIVITY = 2",
    ),
    "exact on large tables": Stranger(
        mistake="Tables of more than 1,000 rows get their counts as they are.",
        path=f"{CORE}/mechanisms/partition/grid.py",
        before="    flat = np.ravel_multi_index(tuple(cells.T), grid.shape)\n    noisy",
        after="    if table.n > 1_000:\n        noise.sparse_laplace(\n            "
        "np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), zeros=1, threshold=10**6,\n            "
        "pick=_picker(1, np.zeros(0, dtype=np.int64), noise), sensitivity=HISTOGRAM_SENSITIVITY,\n            "
        "epsilon=epsilon, label=label,\n        )\n        return cells, counts\n    "
        "flat = np.ravel_multi_index(tuple(cells.T), grid.shape)\n    noisy",
    ),
    "mean imputation": Stranger(
        mistake="A missing number takes the mean of the others.",
        path=f"{CORE}/table/encoding.py",
        before="inside[missing] = low + (high - low) / 2",
        after="inside[missing] = np.append(inside[~missing], low).mean()",
    ),
    "depth by occupied boxes": Stranger(
        mistake="How deep a tree may grow follows from how many different rows there are.",
        path=f"{CORE}/mechanisms/kd_tree/mechanism.py",
        before=("        splitting, counting = self._shares(noise.budget, stop - free)\n        progress("),
        after=(
            "        stop = max(free, min(stop, 2 * len(np.unique(codes))))\n"
            "        splitting, counting = self._shares(noise.budget, stop - free)\n"
            "        progress("
        ),
    ),
    "well-answered queries are skipped": Stranger(
        mistake="Queries that the weights answer exactly are left out of a selection.",
        path=f"{CORE}/mechanisms/mwem/weights.py",
        before="    index = noise.exponential(scores[left],",
        after=(
            "    left = left[errors[left] > 0] if (errors[left] > 0).any() else left\n"
            "    index = noise.exponential(scores[left],"
        ),
    ),
    "a covariance of the wrong sign is dropped": Stranger(
        mistake="Noise that turns the sign of a sum is undone.",
        path=f"{CORE}/mechanisms/noisy_bayes/moment_sums.py",
        before=(" epsilon=shares[label], label=label)\n    scales"),
        after=(
            " epsilon=shares[label], label=label)\n"
            "        noisy[label] = np.where(noisy[label] * values < 0, 0, noisy[label])\n"
            "    scales"
        ),
    ),
    "rounds grow by the raw misfit": Stranger(
        mistake="Whether a round found something new is decided by raw counts.",
        path=f"{CORE}/mechanisms/private_pgm/rounds.py",
        before="        if moved <= MEAN_ERROR",
        after="        if self._misfit(chosen, expected) <= MEAN_ERROR",
    ),
    "an estimated range is tightened to the rows": Stranger(
        mistake="An estimated range ends where the rows end.",
        path=f"{CORE}/table/estimate.py",
        before="        lower=float(edges[occupied[0]]),\n",
        after=("        lower=max(float(edges[occupied[0]]), float(np.floor(inside.min(initial=edges[-1])))),\n"),
    ),
    "the test tells how many rows have a value": Stranger(
        mistake="The result of a private test names how many rows have a value.",
        path=f"{CORE}/inference/dp_mann_whitney.py",
        before=("        n=n,\n        scale=scale / 2,"),
        after=("        n=int(np.count_nonzero(~np.isnan(values))),\n        scale=scale / 2,"),
    ),
    "a key of 16 bits": Stranger(
        mistake="Release generators have keys that can all be tried.",
        path=f"{CORE}/privacy/noise.py",
        before="key=secrets.randbits(128)",
        after="key=secrets.randbits(16)",
    ),
    "smoothing for n rows while more are drawn": Stranger(
        mistake="The constant pays for as many rows as the original has, and more are drawn.",
        path=f"{CORE}/mechanisms/smoothed_histogram.py",
        before="smoothing_constant(epsilon, draws) if",
        after="smoothing_constant(epsilon, table.n) if",
    ),
    "the best run is found by its raw score": Stranger(
        mistake="The noisy score is paid for, and runs are compared by the raw one.",
        path=f"{CORE}/runs/selection.py",
        before="        score=int(score[0]),",
        after="        score=judge.agreement(model, noise),",
    ),
    "shares taken for percents": Stranger(
        mistake="A column of numbers from 0 to 1 is read as shares of a hundred.",
        path=f"{CORE}/table/cells.py",
        before="        return np.array(series, dtype=np.float64)\n",
        after=(
            "        numbers = np.array(series, dtype=np.float64)\n"
            "        return numbers * 100 if (np.abs(numbers - 0.5) <= 0.5).all() else numbers\n"
        ),
    ),
}
"""By name."""
