from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.errors import ParameterError
from dpsynth_core.table.encoding import moved_cells
from dpsynth_core.table.examples import EXAMPLES, Example
from dpsynth_core.table.examples.mixture import simulate_mixture
from dpsynth_core.table.private_table import PrivateTable

examples = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())


@examples
def test_an_example_fits_its_public_schema(example: Example) -> None:
    table, schema = example.load(), example.schema
    assert schema.is_public
    assert list(table.columns) == list(schema.names)
    assert len(table) == example.default_rows
    # Simulated normals may leave five standard deviations about once in two million rows.
    assert sum(moved.total for moved in moved_cells(table, schema).values()) == 0
    pd.testing.assert_series_equal(PrivateTable(table, schema).rows().dtypes, table.dtypes)


@examples
def test_an_example_is_the_same_every_time_and_says_where_it_comes_from(example: Example) -> None:
    pd.testing.assert_frame_equal(example.load(), example.load())
    assert example.title
    assert example.summary.endswith(".")
    assert example.source.endswith(".")


@examples
def test_simulators_take_any_number_of_rows(example: Example) -> None:
    if example.is_simulated:
        assert len(example.load(rows=17, seed=1)) == 17
        assert not example.load(rows=17, seed=1).equals(example.load(rows=17, seed=2))
        with pytest.raises(ParameterError, match="rows"):
            example.load(rows=0)


def test_the_simulators_have_the_papers_parameters() -> None:
    pair = EXAMPLES["bivariate_normal"].load(rows=200_000, seed=1)
    assert pair["x1"].mean() == pytest.approx(2, abs=0.1)
    assert pair["x1"].std() == pytest.approx(10, rel=0.01)
    residual = pair["x2"] - (-2.5 + 0.5 * pair["x1"])
    assert (residual.mean(), residual.std()) == pytest.approx((0, 3), abs=0.05)

    signal = EXAMPLES["two_groups_signal"].load(rows=100_000, seed=1).groupby("group")["value"]
    assert signal.mean()["case"] == pytest.approx(51, abs=0.03)
    assert signal.mean()["control"] == pytest.approx(50, abs=0.03)
    assert signal.size()["case"] == 50_000
    nothing = EXAMPLES["two_groups_no_signal"].load(rows=100_000, seed=1).groupby("group")["value"]
    assert nothing.mean()["case"] == pytest.approx(50, abs=0.05)
    assert nothing.std()["case"] == pytest.approx(2, rel=0.02)

    clusters = simulate_mixture(50_000, np.random.default_rng(1), dimensions=5)
    assert clusters.shape == (50_000, 5)
