"""Pictures for reviewers say the same as a table and in words, and nothing is lost at the ends of a scale."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsynth_core.charts.checklist import MARKS, MeasuredClaim, claims_chart, epsilon_chart, flow_chart
from dpsynth_core.charts.theme import FONT_SIZE, Chart

HOSTILE = "<b>age</b>"
CLAIMS = [
    MeasuredClaim(
        title="One", asked="0.1", measured=f"0.05 ({HOSTILE})", state="pass", limit=0.1, value=0.05, low=0.0, high=0.2
    ),
    MeasuredClaim(title="Two", asked="0.1", measured="1e9", state="fail", limit=0.1, value=1e9, low=1e8, high=1e10),
    MeasuredClaim(title="Three", asked="0.1", measured="0", state="warn", limit=0.1, value=0.0),
    MeasuredClaim(title="Four", asked="0.1", measured="not looked at", state="open", limit=0.1),
    MeasuredClaim(title="Five", asked="proven", measured="proven", state="pass"),
]
CHARTS: dict[str, Chart] = {
    "claims": claims_chart(CLAIMS),
    "epsilon": epsilon_chart(earlier=Fraction(1, 3), this=Fraction(1), policy=Fraction(1), total=Fraction(3)),
    "free": epsilon_chart(earlier=Fraction(0), this=Fraction(1), policy=Fraction(2), total=None),
    "flow": flow_chart(),
}


@pytest.mark.parametrize("name", CHARTS)
def test_words_table_and_letters(name: str) -> None:
    chart = CHARTS[name]
    assert chart.alt.endswith(".")
    assert len(chart.table)
    assert chart.figure.layout.font.size == FONT_SIZE
    assert "<b>" not in chart.figure.to_json().replace("\\u003c", "<")


def test_every_claim_is_in_the_table_and_every_measured_one_in_the_picture() -> None:
    chart = CHARTS["claims"]
    assert list(chart.table["claim"]) == [claim.title for claim in CLAIMS]
    drawn = [x for trace in chart.figure.data for x in trace.x]
    assert len(drawn) == 3
    assert all(0.01 < x < 100 for x in drawn)
    assert "Failed: two." in chart.alt
    assert "1 not looked at" in chart.alt


def test_verdicts_differ_by_colour_and_by_shape() -> None:
    assert len({colour for colour, _ in MARKS.values()}) == len({shape for _, shape in MARKS.values()}) == len(MARKS)


def test_the_policy_is_on_the_sum() -> None:
    assert "above the policy" in CHARTS["epsilon"].alt
    assert "within the policy" in CHARTS["free"].alt
    left = CHARTS["epsilon"].table.set_index("what")["epsilon"]["left of the policy"]
    assert left == pytest.approx(-1 / 3)


def test_what_the_comparison_takes_in_stays() -> None:
    table = CHARTS["flow"].table
    stays = table["where"] == "stays inside"
    assert set(table["to"][stays]) == {"Comparison", "Review report"}
    assert not (table["from"][~stays] == "Comparison").any()
