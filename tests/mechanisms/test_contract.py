"""The contract that every mechanism in the registry keeps; a new one is tested by being registered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.base import PositionedModel
from dpsynth_core.mechanisms.parameters import parameters
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.mechanisms.perturbed_histogram import MOST_CELLS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import Point
from dpsynth_core.table.encoding import moved_cells
from dpsynth_core.table.schema import Schema
from tests.tables.schemas import mixed_schema, mixed_table
from tests.tables.strategies import schema_and_table
from tests.tables.toy import Toy

ALL = {**MECHANISMS, "toy": Toy}
"""With one that is registered here and nowhere else: whoever adds a mechanism has nothing else to do."""
mechanisms = pytest.mark.parametrize("kind", ALL.values(), ids=ALL.keys())
PRIVATE = {key: kind for key, kind in ALL.items() if kind.status != "none"}
"""All but references that protect nothing."""
private_mechanisms = pytest.mark.parametrize("kind", PRIVATE.values(), ids=PRIVATE.keys())
DELTA = Fraction(1, 10**6)
"""Granted where a mechanism does not work without one."""
PARTITIONS = ("kd_tree", "kd_grid", "perturbed_histogram", "smoothed_histogram", "mwem")


@pytest.fixture(autouse=True)
def _toy() -> Iterator[None]:
    with MECHANISMS.register("toy", Toy):
        yield


def private(schema: Schema | None = None, rows: int = 300) -> dp.PrivateTable:
    return dp.PrivateTable(mixed_table(rows), schema or mixed_schema())


QUICK: dict[str, dict[str, Any]] = {
    "dp_gan": {"rounds": 4, "critic_steps": 4},
    "balog_features": {"points": 5, "features": 60},
    "dp_merf": {"features": 60, "training_steps": 10, "batch": 16},
}
"""What the contract does not depend on, and would only take long."""
FEWER_EXAMPLES = {"dp_gan": 4, "dp_merf": 4}
"""Where each shape of a table is compiled anew, which takes a second."""


def coarse(kind: type[Mechanism], schema: Schema, n: int, epsilon: float = 1.0) -> Mechanism:
    """Parameters that fit any table: what the mechanism itself suggests."""
    return replace(kind.suggest(schema, n, epsilon), **QUICK.get(kind.key, {}))


def granted(kind: type[Mechanism], epsilon: Any) -> Budget:
    return Budget.of(epsilon, DELTA if kind.needs_delta else 0)


def synthesize(table: dp.PrivateTable, mechanism: Mechanism, *, epsilon: Any, **rest: Any) -> dp.Release:
    """As a user would, with a delta for those who need one."""
    delta = DELTA if mechanism.needs_delta else 0
    return dp.synthesize(table, mechanism, epsilon=epsilon, delta=delta, **rest)


@mechanisms
def test_a_release_has_the_schemas_columns_types_and_values(kind: type[Mechanism]) -> None:
    table = private()
    release = synthesize(table, coarse(kind, table.schema, table.n), epsilon=1)
    for rows in (None, 1, 1000):
        synthetic = release.sample(rows)
        assert len(synthetic) == (rows or release.mechanism.rows or table.n)
        pd.testing.assert_series_equal(synthetic.dtypes, table.rows().dtypes)
        assert all(moved.total == 0 for moved in moved_cells(synthetic, table.schema).values())


@mechanisms
def test_rows_that_are_left_encoded_are_the_rows_that_are_sampled(kind: type[Mechanism]) -> None:
    table = private()
    first, second = (synthesize(table, coarse(kind, table.schema, table.n), epsilon=1, seed=5) for _ in range(2))
    if not isinstance(first.model, PositionedModel):
        assert kind.key not in (*PARTITIONS, "noisy_bayes", "bayes")
        return
    encoded = first.model.positions(700, first.noise)
    sampled = dp.PrivateTable(second.sample(700), table.schema)
    for column in table.schema:
        drawn, read = encoded[column.name], sampled.positions(column.name)
        assert (drawn.missing is None) == (read.missing is None)
        known = np.ones(700, dtype=np.bool_) if drawn.missing is None else ~drawn.missing
        np.testing.assert_array_equal(drawn.values[known], read.values[known])
        if read.missing is not None:
            np.testing.assert_array_equal(drawn.missing, read.missing)


@mechanisms
def test_without_a_number_of_rows_there_are_as_many_as_in_the_original(kind: type[Mechanism]) -> None:
    table = private()
    mechanism = replace(coarse(kind, table.schema, table.n), rows=None)
    assert len(synthesize(table, mechanism, epsilon=1).sample()) == 300
    assert len(synthesize(table, replace(mechanism, rows=7), epsilon=1).sample()) == 7


def check_any_schema(kind: type[Mechanism], examples: int) -> None:
    """Draw that many schemas with a table and an epsilon each, and release a table from all of them."""

    @given(drawn=schema_and_table(), epsilon=st.sampled_from([0.01, 1.0, 20.0]))
    @settings(max_examples=examples)
    def check(drawn: tuple[Schema, pd.DataFrame], epsilon: float) -> None:
        schema, frame = drawn
        table = dp.PrivateTable(frame, schema)
        mechanism = coarse(kind, schema, table.n, epsilon)
        if kind.key == "perturbed_histogram" and Grid.of(schema, mechanism.bins).cells > MOST_CELLS:  # type: ignore[attr-defined]
            with pytest.raises(dp.ParameterError, match="KD tree"):
                synthesize(table, mechanism, epsilon=epsilon)
            return
        release = synthesize(table, mechanism, epsilon=epsilon, seed=1)
        synthetic = release.sample(5)
        assert list(synthetic.columns) == list(schema.names)
        assert all(moved.total == 0 for moved in moved_cells(synthetic, schema).values())
        pd.testing.assert_series_equal(synthetic.dtypes, table.rows().dtypes)

    check()


@mechanisms
def test_any_schema_gives_a_release_that_respects_it(kind: type[Mechanism]) -> None:
    check_any_schema(kind, FEWER_EXAMPLES.get(kind.key, 30))


@pytest.mark.slow
@mechanisms
def test_any_of_many_schemas_gives_a_release_that_respects_it(kind: type[Mechanism]) -> None:
    check_any_schema(kind, 60)


@private_mechanisms
def test_epsilon_is_accounted_for_to_the_last_fraction(kind: type[Mechanism]) -> None:
    table = private()
    for epsilon in (0.3, "1/7", 2):
        release = synthesize(table, coarse(kind, table.schema, table.n), epsilon=epsilon)
        assert sum(charge.budget.epsilon for charge in release.charges) == Budget.of(epsilon).epsilon
        assert sum(charge.budget.delta for charge in release.charges) == granted(kind, epsilon).delta
        assert release.guarantee.status == "proven"
        assert release.guarantee.kind == ("approximate" if kind.needs_delta else "pure")
        assert release.guarantee.budget == granted(kind, epsilon)


@pytest.mark.parametrize("key", sorted(ALL.keys() - PRIVATE.keys()))
def test_a_reference_spends_nothing_and_claims_nothing(key: str) -> None:
    table = private()
    for seed in (None, 1):
        release = synthesize(table, MECHANISMS[key](), epsilon=1, seed=seed)
        assert release.charges == ()
        assert (release.guarantee.status, release.guarantee.kind) == ("none", "none")
        assert release.guarantee.epsilon == float("inf")
        assert "Not private" in release.guarantee.meaning
    assert MECHANISMS[key]().plan(table.schema, table.n, Budget.of(1)).stages == ()


@private_mechanisms
def test_several_rows_per_person_run_at_a_share_of_epsilon(kind: type[Mechanism]) -> None:
    table = private(mixed_schema(rows_per_person=4))
    release = synthesize(table, coarse(kind, table.schema, table.n), epsilon=1)
    assert sum(charge.budget.epsilon for charge in release.charges) == Budget.of("1/4").epsilon
    assert release.guarantee.epsilon == 1
    assert release.guarantee.rows_per_person == 4


@mechanisms
def test_a_seed_repeats_the_release_and_is_never_called_private(kind: type[Mechanism]) -> None:
    table = private()
    mechanism = coarse(kind, table.schema, table.n)

    def run(seed: int | None) -> dp.Release:
        return synthesize(table, mechanism, epsilon=1, seed=seed)

    pd.testing.assert_frame_equal(run(7).sample(), run(7).sample())
    assert not run(7).sample(200).equals(run(8).sample(200))
    assert not run(None).sample(200).equals(run(None).sample(200))
    assert run(7).guarantee.status == "none"
    assert run(7).guarantee.epsilon == (float("inf") if kind.status == "none" else 1)


@mechanisms
def test_a_fact_read_from_the_data_voids_the_release(kind: type[Mechanism]) -> None:
    facts = mixed_schema().to_dict()
    facts["columns"][0] |= {"public": False, "origin": "read from the data"}
    table = private(Schema.from_dict(facts))
    release = synthesize(table, coarse(kind, table.schema, table.n), epsilon=1)
    assert release.guarantee.status == ("none" if kind.status == "none" else "void")
    assert "'age'" in release.guarantee.caveats[0]


ONE = {"name": "x", "public": True}
EDGE_TABLES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "one row": ({**ONE, "kind": "integer", "lower": 0, "upper": 9}, [3]),
    "all equal": ({**ONE, "kind": "continuous", "lower": 0, "upper": 1}, [0.5] * 50),
    "all missing": ({**ONE, "kind": "continuous", "lower": 0, "upper": 1, "nullable": True}, [np.nan] * 50),
    "one category": ({**ONE, "kind": "categorical", "categories": ["only"]}, ["only"] * 50),
    "one value": ({**ONE, "kind": "integer", "lower": 4, "upper": 4}, [4] * 50),
    "one value or missing": ({**ONE, "kind": "integer", "lower": 4, "upper": 4, "nullable": True}, [4, None] * 25),
    "nothing fits": ({**ONE, "kind": "categorical", "categories": ["a", "b"]}, ["z"] * 50),
    "wide integers": ({**ONE, "kind": "integer", "lower": -(2**53), "upper": 2**53, "bins": 9}, [0, 2**40] * 20),
}


@mechanisms
@pytest.mark.parametrize("case", EDGE_TABLES.values(), ids=EDGE_TABLES.keys())
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 50.0])
def test_edge_tables(kind: type[Mechanism], case: tuple[dict[str, Any], list[Any]], epsilon: float) -> None:
    facts, values = case
    schema = Schema.from_dict({"columns": [facts]})
    table = dp.PrivateTable(pd.DataFrame({"x": values}), schema)
    for mechanism in (kind(**QUICK.get(kind.key, {})), coarse(kind, schema, table.n, epsilon)):
        synthetic = synthesize(table, mechanism, epsilon=epsilon).sample()
        assert len(synthetic) == (mechanism.rows or table.n)
        assert moved_cells(synthetic, schema)["x"].total == 0


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=key, marks=[pytest.mark.slow] * (key in QUICK)) for key, kind in ALL.items()]
)
def test_a_large_epsilon_gives_the_table_back(kind: type[Mechanism]) -> None:
    """With hardly any noise, what comes out has the distribution of what went in."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.choice(4, 4_000, p=[0.5, 0.3, 0.2, 0.0])})
    schema = Schema.from_dict({"columns": [{**ONE, "kind": "integer", "lower": 0, "upper": 3}]})
    release = synthesize(dp.PrivateTable(frame, schema), kind(rows=4_000), epsilon=500_000, seed=1)
    shares = release.sample()["x"].value_counts(normalize=True).reindex(range(4), fill_value=0)
    assert np.abs(shares - [0.5, 0.3, 0.2, 0.0]).max() < 0.03


@mechanisms
def test_suggestions_come_with_a_reason_and_public_facts_suffice(kind: type[Mechanism]) -> None:
    for example in dp.EXAMPLES.values():
        for epsilon in (0.01, 1, 10):
            suggestion = kind.suggest(example.schema, example.default_rows, epsilon)
            assert suggestion.reason.endswith(".")
            assert isinstance(suggestion, kind)


@mechanisms
def test_a_mechanism_documents_itself(kind: type[Mechanism]) -> None:
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for text in (kind.title, kind.summary, kind.good_for, kind.paper):
        assert text
    assert kind.key in MECHANISMS
    source = __import__("inspect").getsource(kind)
    for field in fields(kind):
        if field.name in kind.__annotations__:
            assert f"    {field.name}: " in source
            following = source.split(f"    {field.name}: ")[1].split("\n", 1)[1].lstrip()
            assert following.startswith('"""'), f"{kind.__name__}.{field.name} has no documentation"


@mechanisms
def test_wrong_parameters_are_refused_by_name(kind: type[Mechanism]) -> None:
    wrong: dict[str, list[Any]] = {
        "rows": [0, 1.5, True],
        "bins": [0, "many", 10**6],
        "placement": ["corner"],
        "rule": ["coin"],
        "smoothing": ["none"],
        "threshold": [0, -1],
        "leaf_threshold": [0],
        "free_levels": [-1, 63],
        "max_levels": [-1, 63],
        "split_share": [0, 1, float("nan")],
        "inner_share": [0, 1.0],
        "inner_levels": [-1],
        "split_threshold": [-1],
        "stand_out": [-1, float("inf")],
        "boxes_per_pass": [0, 2**31],
        "rounds": [0, 1.5],
        "workload": ["everything"],
        "order": [0],
        "columns": ["", 3],
        "passes": [-1],
        "step": ["long"],
        "estimate": ["first"],
        "sampler": ["coin"],
        "numbers": ["integers"],
        "criterion": ["oak"],
        "ratio": [0, 1.5],
        "chains": [1],
        "steps": [10],
        "datasets": [0],
        "second": ["third"],
        "relations_share": [0, 1, float("nan")],
        "strategy": ["forest"],
        "marginals": [" "],
        "pairs": [0],
        "groups": [0],
        "kind_of_noise": ["pink"],
        "rows_per_critic": [0],
        "noise_multiplier": [0, float("nan")],
        "batch": [0],
        "hidden": [0, 10**6],
        "critic_steps": [0],
        "points": [0, 1.5],
        "features": [1, 10**6],
        "training_steps": [0],
        "width": [0, -1.0, float("nan")],
    }
    for field in fields(kind):
        for value in wrong.get(field.name, []):
            with pytest.raises(dp.ParameterError, match=field.name):
                kind(**{field.name: value})
    with pytest.raises(dp.ParameterError, match="epsilon"):
        synthesize(private(), kind(), epsilon=0)
    with pytest.raises(dp.ParameterError, match="n is 0"):
        synthesize(private(), coarse(kind, mixed_schema(), 300), epsilon=1).sample(0)


def wide_table(columns: int = 30, rows: int = 400) -> dp.PrivateTable:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{i}": rng.choice(["a", "b", "c"], rows) for i in range(columns // 3)})
    for i in range(columns // 3, columns):
        frame[f"c{i}"] = rng.normal(0, 1, rows)
    facts = [
        {"name": name, "public": True, "kind": "categorical", "categories": ["a", "b", "c"]}
        if frame[name].dtype.kind == "O" or frame[name].dtype == "str"
        else {"name": name, "public": True, "kind": "continuous", "lower": -6, "upper": 6}
        for name in frame
    ]
    return dp.PrivateTable(frame, Schema.from_dict({"columns": facts}))


@pytest.mark.parametrize("key", ["kd_tree", "smoothed_histogram", "private_pgm"])
def test_thirty_columns_are_no_obstacle(key: str) -> None:
    table = wide_table()
    assert table.schema.domain_size() > 2**63
    release = synthesize(table, MECHANISMS[key](), epsilon=1)
    assert release.sample().shape == (400, 30)
    assert release.guarantee.status == "proven"


@pytest.mark.parametrize("key", ["perturbed_histogram", "kd_grid"])
def test_a_grid_that_cannot_be_is_refused_with_its_size_and_an_alternative(key: str) -> None:
    table = wide_table()
    with pytest.raises(dp.ParameterError) as caught:
        synthesize(table, MECHANISMS[key](), epsilon=1)
    assert str(table.schema.domain_size()) in str(caught.value)
    assert MECHANISMS["kd_tree"].title in str(caught.value)


@pytest.mark.parametrize("key", ALL)
def test_progress_is_told_and_can_cancel(key: str) -> None:
    table = private()
    heard: list[tuple[str, float]] = []
    mechanism = coarse(MECHANISMS[key], table.schema, table.n)
    synthesize(table, mechanism, epsilon=1, progress=lambda stage, done, *_: heard.append((stage, done)))
    assert heard
    assert all(0 <= done <= 1 for _, done in heard)
    assert [done for _, done in heard] == sorted(done for _, done in heard)

    class StopError(Exception):
        pass

    def stop(stage: str, done: float, /, *points: Point) -> None:
        raise StopError

    noise = SeededNoise(granted(type(mechanism), 1), seed=0)
    with pytest.raises(StopError):
        mechanism.fit(table, noise, stop)
    assert noise.charges == ()


@pytest.mark.parametrize("key", PARTITIONS)
def test_the_partition_can_be_looked_at(key: str) -> None:
    example = dp.EXAMPLES["mixture"]
    table = dp.PrivateTable(example.load(2_000), example.schema)
    release = synthesize(table, MECHANISMS[key].suggest(table.schema, table.n, 1), epsilon=1)
    leaves = release.model.leaves()  # type: ignore[attr-defined]
    assert list(leaves.columns) == ["x1 from", "x1 to", "x2 from", "x2 to", "rows"]
    assert (leaves["rows"] > 0).all()
    assert leaves["rows"].sum() == pytest.approx(2_000)
    assert leaves["x1 from"].min() >= -700
    assert leaves["x1 to"].max() <= 900
    assert (leaves["x1 from"] < leaves["x1 to"]).all()


@pytest.mark.parametrize("rule", ["privtree", "levels"])
@pytest.mark.parametrize("free", [0, 1, 5, 12])
@pytest.mark.parametrize("deepest", [None, 0, 12, 62])
def test_every_shape_of_tree_keeps_the_contract(rule: str, free: int, deepest: int | None) -> None:
    table = private()
    mechanism = MECHANISMS["kd_tree"](rule=rule, free_levels=free, max_levels=deepest)  # type: ignore[call-arg]
    release = synthesize(table, mechanism, epsilon=1)
    assert sum(charge.budget.epsilon for charge in release.charges) == 1
    assert all(moved.total == 0 for moved in moved_cells(release.sample(), table.schema).values())


def test_more_free_levels_than_memory_can_hold_are_refused() -> None:
    with pytest.raises(dp.ParameterError, match="free_levels"):
        synthesize(wide_table(), MECHANISMS["kd_tree"](free_levels=40), epsilon=1)  # type: ignore[call-arg]


@private_mechanisms
def test_a_plan_needs_no_data_and_its_shares_add_up(kind: type[Mechanism]) -> None:
    for example in dp.EXAMPLES.values():
        mechanism = kind.suggest(example.schema, example.default_rows, 1)
        plan = mechanism.plan(example.schema, example.default_rows, granted(kind, "1/3"))
        assert sum(stage.epsilon for stage in plan.stages) == Budget.of("1/3").epsilon
        assert plan.cells >= 1
        assert 0 < plan.seconds < 60


@mechanisms
def test_the_stages_of_a_plan_are_those_that_are_charged(kind: type[Mechanism]) -> None:
    example = dp.EXAMPLES["mixture"]
    table = dp.PrivateTable(example.load(), example.schema)
    mechanism = coarse(kind, example.schema, table.n)
    release = synthesize(table, mechanism, epsilon=1, seed=1)
    planned = [stage.epsilon for stage in mechanism.plan(table.schema, table.n, granted(kind, 1)).stages]
    charged: dict[str, Any] = {}
    for charge in release.charges:
        charged[charge.label] = charged.get(charge.label, 0) + charge.budget.epsilon
    assert list(charged.values()) == planned


@mechanisms
def test_every_parameter_can_be_put_into_a_form(kind: type[Mechanism]) -> None:
    found = {parameter.name: parameter for parameter in parameters(kind)}
    assert set(found) == {field.name for field in fields(kind)} - {"reason"}
    for parameter in found.values():
        assert parameter.help.endswith(".")
        assert parameter.title
        assert (parameter.kind == "choice") == bool(parameter.choices)
        assert set(parameter.labels) <= set(parameter.choices)
    titles = [parameter.title for parameter in found.values()]
    assert len(set(titles)) == len(titles)
    assert 1 <= sum(not parameter.advanced for parameter in found.values()) <= 6
    assert not found["rows"].advanced
    assert found["rows"].optional
    if kind.key in PARTITIONS:
        assert found["placement"].choices == ("uniform", "centre")


@mechanisms
def test_a_choice_takes_nothing_but_its_values(kind: type[Mechanism]) -> None:
    for parameter in parameters(kind):
        if parameter.choices:
            assert all(getattr(kind(**{parameter.name: choice}), parameter.name) for choice in parameter.choices)
            with pytest.raises(dp.ParameterError, match=", ".join(parameter.choices)):
                kind(**{parameter.name: "no such choice"})


@pytest.mark.parametrize("epsilon", ["1e-17", "1e8"])
def test_an_epsilon_beyond_all_use_is_refused(epsilon: str) -> None:
    with pytest.raises(dp.ParameterError, match="epsilon"):
        synthesize(private(), MECHANISMS["kd_tree"](), epsilon=epsilon)


NUMBERS = Schema.from_dict(
    {"columns": [{"name": name, "kind": "continuous", "lower": 0, "upper": 1, "public": True} for name in "ab"]}
)


def another(parameter: Any, value: Any) -> Any:
    """A value of a parameter that it does not have."""
    if parameter.kind == "choice":
        return next(choice for choice in parameter.choices if choice != value)
    if parameter.kind == "int":
        return 3 if value is None else value - 1 if value > 1 else 2
    return {"float": 0.3, "bool": not value, "text": "a"}[parameter.kind]


@mechanisms
def test_what_a_form_hides_has_no_effect(kind: type[Mechanism]) -> None:
    """A parameter that applies beside some choices only makes no difference beside the others."""
    by_name = {parameter.name: parameter for parameter in parameters(kind)}
    for parameter in by_name.values():
        for controlling, choices in parameter.only.items():
            assert set(choices) < set(by_name[controlling].choices)
            for choice in set(by_name[controlling].choices) - set(choices):
                mechanism = kind(**{controlling: choice})
                other = replace(mechanism, **{parameter.name: another(parameter, getattr(mechanism, parameter.name))})
                assert not parameter.applies(vars(mechanism))
                plans = [each.plan(NUMBERS, 500, Budget.of(1)) for each in (mechanism, other)]
                assert plans[0] == plans[1]
