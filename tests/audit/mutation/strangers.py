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
        before="return measurer.histogram(counts, allocation.look, FIND_BINS)",
        after="return counts, measurer.histogram(counts, allocation.look, FIND_BINS)[1]",
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
}
"""By name."""
