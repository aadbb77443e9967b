"""Short lessons: a question, an answer to reveal, and a picture to play with. All of it is simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dpsynth_core.charts.lessons import bin_width_chart, row_moves_chart
from dpsynth_core.charts.p_values import replay_chart
from dpsynth_core.charts.theme import Chart
from dpsynth_core.charts.tradeoffs import attacker_chart, noisy_counts_chart, partition_chart, true_positive_rate
from dpsynth_core.inference.experiments import error_rates
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.teaching.bin_width import BinWidths, bin_widths
from dpsynth_core.teaching.false_discovery import FalseDiscoveryReplay, replay_false_discovery
from dpsynth_core.teaching.noise_examples import NoisyHistogram, grown_tree, noisy_histogram
from dpsynth_core.teaching.one_row import BEST, PAPER_BOUND, RowMoves, one_row_moves
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.tradeoffs.state import Lesson

CROWD, CLUSTERS = EXAMPLES["bivariate_normal"], EXAMPLES["mixture"]
FALSE_ALARMS = 0.05
FEW_ROWS, MANY_ROWS, CLUSTER_ROWS = 500, 5_000, 2_000
ANALYSTS, ANALYST_ROWS = 200, 500
SIMULATIONS = 99
WIDTH_ROWS = 500
TREE_ROWS, TREE_SIMULATIONS = 1_000, 150
MAX_SEED = 10**6


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One lesson."""

    title: str
    """What it is about."""
    story: str
    """What there is to know before the question."""
    question: str
    """To be answered before anything is shown."""
    options: tuple[str, ...]
    """Possible answers."""
    right: int
    """Index of the right one."""
    explain: Callable[[Lesson], str]
    """Why, with numbers computed for the epsilon chosen."""
    picture: Callable[[Lesson], Chart]
    """What it looks like."""
    reading: Callable[[Lesson], str] | None = None
    """What this draw came to, in a sentence under the picture."""
    redraws: bool = True
    """Whether the picture has noise that can be drawn again."""


# Simulated people only, and seeded: what was drawn once may be shown to every visitor.


@lru_cache(maxsize=64)
def _counts(rows: int, epsilon: str, seed: int) -> NoisyHistogram:
    return noisy_histogram(CROWD.load(rows), CROWD.schema, CROWD.schema.names[0], epsilon=epsilon, seed=seed)


@lru_cache(maxsize=64)
def _boxes(epsilon: str, seed: int) -> PartitionModel:
    names = CLUSTERS.schema.names
    return grown_tree(CLUSTERS.load(CLUSTER_ROWS), CLUSTERS.schema, names, epsilon=epsilon, seed=seed)


@lru_cache(maxsize=64)
def _replayed(epsilon: str, seed: int) -> FalseDiscoveryReplay:
    return replay_false_discovery(epsilon=epsilon, seed=seed, simulations=SIMULATIONS)


@lru_cache(maxsize=64)
def _false_share(epsilon: str) -> float:
    rates = error_rates(PerturbedHistogram(placement="centre"), epsilon=epsilon, n=ANALYST_ROWS, reps=ANALYSTS)
    return rates.type_one.estimate


def _certain(lesson: Lesson) -> str:
    epsilon = float(lesson.epsilon)
    caught = true_positive_rate(FALSE_ALARMS, epsilon)
    return (
        f"At ε = {epsilon:g}, whoever accepts {FALSE_ALARMS:.0%} false alarms recognises you at most **{caught:.1%}** "
        "of the time, with any method and any knowledge. At ε = 0 the line is the diagonal: pure guessing."
    )


def _rows_off(lesson: Lesson, rows: int) -> str:
    drawn = _counts(rows, lesson.epsilon, lesson.seed)
    off, fullest, n = float(abs(drawn.noisy - drawn.true).mean()), int(drawn.true.max()), int(drawn.true.sum())
    return (
        f"With {n:,} people and ε = {lesson.epsilon}, counts came out wrong by **{off:.1f} people** on average, in "
        f"tall and in short bars alike. The tallest bar holds {fullest:,}, so there that is "
        f"**{off / max(fullest, 1):.1%}**; for a bar of five people it would be **{off / 5:.0%}**."
    )


def _histogram(lesson: Lesson, rows: int) -> Chart:
    drawn = _counts(rows, lesson.epsilon, lesson.seed)
    return noisy_counts_chart(drawn.true, drawn.noisy, drawn.column, float(lesson.epsilon))


def _cuts(lesson: Lesson) -> str:
    boxes = len(_boxes(lesson.epsilon, lesson.seed).weights)
    return (
        f"At ε = {lesson.epsilon} the tree kept **{boxes:,} boxes**. It cuts a box in two only where enough people "
        "show through the noise, so with less epsilon fewer cuts can be trusted, and fine detail is lost."
    )


def _tree(lesson: Lesson) -> Chart:
    boxes = _boxes(lesson.epsilon, lesson.seed)
    return partition_chart(boxes, float(lesson.epsilon), CLUSTERS.load(CLUSTER_ROWS))


def _from_nothing(lesson: Lesson) -> str:
    share = _false_share(lesson.epsilon)
    return (
        f"At ε = {lesson.epsilon} and {ANALYST_ROWS} people, about **{100 * share:.0f} of 100** analysts report a "
        "difference that does not exist; 5 would be acceptable. The test does not know about the privacy noise and "
        "takes it for a finding. The calibrated test on the Diagnostics page does know."
    )


@lru_cache(maxsize=64)
def _widths(epsilon: str) -> BinWidths:
    return bin_widths(epsilon=float(epsilon), rows=WIDTH_ROWS)


@lru_cache(maxsize=16)
def _moves(seed: int) -> RowMoves:
    return one_row_moves(rows=TREE_ROWS, simulations=TREE_SIMULATIONS, seed=seed)


def _width(lesson: Lesson) -> str:
    found = _widths(lesson.epsilon)
    return (
        f"At ε = {lesson.epsilon} and {WIDTH_ROWS} people, bins of about **{found.best:.2f} standard deviations** are "
        f"best ({float(found.noisy.min()):.3f} away in MMD). Narrower bins hold fewer people each, and noise drowns "
        "them; wider bins move everybody to a middle that is far away. The dashed and dotted lines are a paper's "
        "closed forms for eleven bins without any noise: even then narrow bins fail, because eleven of them no longer "
        "cover the range. More people or a larger ε make narrower bins pay off. (Kreačić et al. 2023, Figure 6.)"
    )


def _one_row(lesson: Lesson) -> str:
    found = _moves(lesson.seed)
    worst = max(found.worst(tree) for tree in found.moves if tree != BEST)
    loss = float(lesson.epsilon) * max(worst / PAPER_BOUND, 1.0)
    return (
        f"In {TREE_SIMULATIONS} simulated pairs of tables, the pMSE of a greedy tree moved by up to **{worst:.3g}/n** "
        f"although one row of {TREE_ROWS:,} was replaced; the bound that a paper proves for the best tree is 1/n. One "
        "row can tip a first split, and every split below it changes. A mechanism that takes 1/n for granted and "
        f"promises ε = {lesson.epsilon} could lose up to **{loss:.3g}** between two such tables. The best tree "
        f"cannot jump: it moved by {found.worst(BEST):.2g}/n at most, and 1/(2n) is proven, because the best score "
        "over all trees cannot change by more than the score of each single tree does. That is why this app's pMSE "
        "mechanism compares tables over cells that no private row decides, or by the best tree; greedy trees are a "
        "preset for comparison. (Snoke & Slavković 2018, Table 1 and Figure 1.)"
    )


def _replay(lesson: Lesson) -> Chart:
    return replay_chart(_replayed(lesson.epsilon, lesson.seed))


UNITS: tuple[Unit, ...] = (
    Unit(
        title="What is epsilon?",
        story="Somebody knows every row of a table but one, looks at what was released, and wonders whether that row "
        "is **yours** or a stranger's. Epsilon limits how well anybody can tell.",
        question="At ε = 1, the attacker accepts 5% false alarms. How often can the attacker be right when it is you?",
        options=("5% of the time: no more than by guessing", "At most about 14%", "About half", "Nearly always"),
        right=1,
        explain=_certain,
        picture=lambda lesson: attacker_chart(float(lesson.epsilon)),
        redraws=False,
    ),
    Unit(
        title="Noise hides a person, not a crowd",
        story="A histogram of 500 simulated people. The same kind of noise is added to every bar, also to the empty "
        "ones.",
        question="Which bars suffer most?",
        options=("The tall ones", "All by the same percentage", "The short ones"),
        right=2,
        explain=lambda lesson: _rows_off(lesson, FEW_ROWS),
        picture=lambda lesson: _histogram(lesson, FEW_ROWS),
    ),
    Unit(
        title="Privacy is cheaper in a crowd",
        story="Now the same histogram with ten times as many people, at the same epsilon.",
        question="What happens to the noise on each bar?",
        options=("It grows tenfold", "It stays the same", "It disappears"),
        right=1,
        explain=lambda lesson: _rows_off(lesson, MANY_ROWS),
        picture=lambda lesson: _histogram(lesson, MANY_ROWS),
    ),
    Unit(
        title="Looking only where people are",
        story="Ten clusters in the plane. A KD tree cuts the plane in two, again and again, and each decision to cut "
        "is made on a noisy count.",
        question="What happens to its boxes as epsilon falls?",
        options=("More and smaller boxes", "Fewer and larger boxes", "The boxes stay, their counts change"),
        right=1,
        explain=_cuts,
        picture=_tree,
    ),
    Unit(
        title="A false discovery from nothing",
        story="Two groups of 250 people that do **not** differ. A private synthetic table of them is released at "
        "ε = 0.1 (a perturbed histogram with 100 bins). Analysts test it for a difference (Mann-Whitney), as if "
        "it were the original. That test raises a false alarm 5 times in 100.",
        question="Of 100 such analysts, how many report a difference?",
        options=("About 5, as it should be", "About 15", "More than 30"),
        right=2,
        explain=_from_nothing,
        picture=_replay,
        reading=lambda lesson: _replayed(lesson.epsilon, lesson.seed).sentence,
    ),
    Unit(
        title="How wide should a bin be?",
        story=f"{WIDTH_ROWS} people with a value from the normal distribution. Their values are counted in bins of "
        "equal width over five standard deviations on each side, noise is added to every count, and rows are put in "
        "the middle of their bin.",
        question="At ε = 1, which bins are closest to the truth?",
        options=(
            "The narrowest: they lose no detail",
            "About three quarters of a standard deviation wide",
            "As wide as can be",
        ),
        right=1,
        explain=_width,
        picture=lambda lesson: bin_width_chart(_widths(lesson.epsilon), float(lesson.epsilon)),
        redraws=False,
    ),
    Unit(
        title="One row and a decision tree",
        story="The pMSE says how well a decision tree tells original from synthetic rows. A mechanism that chooses "
        "synthetic tables by their pMSE must know how far **one replaced row** can move it: that decides how much "
        "noise is needed. Trees are usually grown greedily: the best first split, then the best split of each part.",
        question="How far can one row of n move the pMSE of a greedy tree?",
        options=("By 1/n at most, as for the best tree", "By a few times 1/n", "By many times 1/n"),
        right=2,
        explain=_one_row,
        picture=lambda lesson: row_moves_chart(_moves(lesson.seed)),
    ),
)

FIRST_EPSILON = ("1", "0.5", "0.5", "1", "0.1", "1", "1")
"""Where each lesson begins."""


def begin(number: int) -> Lesson:
    """A lesson at its beginning."""
    return Lesson(number=number, epsilon=FIRST_EPSILON[number - 1])


def to_address(lesson: Lesson) -> dict[str, str]:
    """The parameters of a link that leads back here."""
    answer = {} if lesson.answer is None else {"answer": str(lesson.answer + 1)}
    return {
        "lesson": str(lesson.number),
        "epsilon": lesson.epsilon,
        "draw": str(lesson.seed),
        **answer,
    }


def from_address(parameters: Mapping[str, str]) -> Lesson | None:
    """The lesson that a link leads to; None where it names none. What makes no sense in it is left out."""
    number = _int_up_to(parameters.get("lesson"), len(UNITS))
    if number is None:
        return None
    epsilon = parameters.get("epsilon", "")
    answer = _int_up_to(parameters.get("answer"), len(UNITS[number - 1].options))
    return Lesson(
        number=number,
        epsilon=epsilon if epsilon in EPSILONS else FIRST_EPSILON[number - 1],
        seed=_int_up_to(parameters.get("draw"), MAX_SEED) or 1,
        answer=None if answer is None else answer - 1,
    )


def _int_up_to(text: str | None, limit: int) -> int | None:
    """A number from 1 to ``limit`` that came with an address, which anybody can write."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > len(str(limit)):
        return None
    return int(text) if 1 <= int(text) <= limit else None
