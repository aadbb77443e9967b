"""The result of an audit as text: a page for readers, and a small summary that travels with the package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dpsynth_core.audit.checks import LAYERS, SUITE_LEVEL, AuditCheck, failures
from dpsynth_core.audit.generated import GeneratedMistakes
from dpsynth_core.audit.suite import STATISTICAL, Audit

CAN_AND_CANNOT = """\
## What an audit can and cannot show

An audit can **refute** a guarantee. It cannot prove one: that is what `docs/proofs.md` does. The audit looks for places
where the code differs from what the proof is about.

- **Replay** is exact, for the tables, settings and random outcomes that it tries. Besides neighbours it takes tables
  that have nothing in common but their public facts: with every draw frozen, they must lead to the same calls, release,
  reports, warnings and errors. This takes the place of following single private values through the code (taint), which
  compiled loops, JAX and most array operations would drop: a value that reaches a branch, a shape, a text or a result
  other than through a draw makes the two runs differ. It ends where tables agree by chance: a branch that no tried pair
  of tables takes differently, a value read from the rows that is equal in both, a leak that shows only for outcomes
  of the noise that were not drawn. Replay trusts each draw's declared privacy law; enumeration, the attacks and the
  prices by another road test whether the declaration is right.
- **What leaves** is compared at the program's entry points, as bytes: tables, what is attached to them, guarantee,
  charges, the bundle's files, card and metadata. Web pages, the review report (which is for internal use and says so)
  and what a terminal shows are not compared; nor is the time that anything takes.
- **The search for sensitivities** climbs; it may stop below the worst case. What it finds stands beside what is
  declared. A search that stays well below shows little.
- **Joint laws** look for repeated stretches and for correlations, between calls, stages, runs and what was drawn ahead,
  of both sources; not for every kind of dependence. Of the keys of release generators every bit must change; that the
  operating system's random numbers are random is believed.
- **Refusals and prices**: a source is asked for more than it has in a dozen ways, not in all. The prices of Gaussian
  draws are compared with sums over their laws for a few budgets, and with one draw where rows are sampled.
- **Enumeration** is exact and covers every outcome of the paid draws, on toy domains of three to eight cells. Counts
  that the replaced row does not touch are followed at one value only. What holds for toys need not hold for large
  tables; for the tree's split rule a proof and `tests/mechanisms/kd_tree/test_privtree_proof.py` close the gap.
  Enumeration assumes that every sampler follows its law, which is tested separately.
- **Noise laws** are tested at some scales, on samples. A scale that is ten percent off is noticed; one percent may not
  be.
- **Attacks** give lower bounds. They see what this attacker looks at: how many rows a release puts where the replaced
  row was, or one draw along one direction. A leak elsewhere stays hidden, and a bound far below the claim proves
  nothing. Few runs cannot show a large bound, which is why each line says what its runs *could* show.
- **Timing, memory and crashes** are not audited, nor is the machine, the operating system's randomness, OpenDP itself,
  or what people do with a release.
- **Mutants and generated mistakes** show that the audit notices these. They say nothing about mistakes that nobody has
  thought of, or that take more than one edit; compiled loops are hardly touched by the generator.
"""


def markdown(audit: Audit) -> str:
    kind = "deep" if audit.deep else "quick"
    verdict = "**Nothing failed and no mutant survived.**" if audit.passed else "**Something failed: see below.**"
    parts = [
        "# Privacy audit",
        "Written by `python -m tests.audit --deep --write docs/audit.md` (`make audit`); do not edit by hand.",
        f"A {kind} run of {audit.when:%Y-%m-%d %H:%M} UTC, version {audit.version}, source `{audit.digest}`, seed "
        f"{audit.seed}, {audit.seconds:,.0f} s of computing. {verdict}",
        "Every registered mechanism that claims a guarantee is audited, by being registered. Probes are tiny "
        "mechanisms that exercise one sampler each. In each statistical layer anything fails by chance with a "
        f"probability of at most {SUITE_LEVEL:g} per run.",
        f"## Layers\n\n{_layers(audit)}",
        f"## Mechanisms\n\n{_mechanisms(audit)}",
        f"## Mutants\n\n{_mutants(audit)}",
        f"## Mistakes made in the source\n\n{_generated(audit)}",
        f"## False alarms\n\n{_false_alarms(audit)}",
    ]
    if failures(audit.checks):
        rows = [(c.layer, c.subject, c.case, c.detail) for c in failures(audit.checks)]
        parts += ["## Failures", _table(("layer", "subject", "case", "finding"), rows)]
    skipped = [c for c in audit.checks if c.verdict == "not applicable"]
    if skipped:
        counted = Counter((c.layer, c.subject, re.sub(r"\d[\d,]*", "N", c.detail)) for c in skipped)
        rows = [(layer, subject, why, str(times)) for (layer, subject, why), times in counted.items()]
        parts += ["## Not applicable", _table(("layer", "subject", "why", "cases"), rows)]
    return "\n\n".join([*parts, CAN_AND_CANNOT])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _layers(audit: Audit) -> str:
    rows = []
    for layer, meaning in LAYERS.items():
        counts = Counter(check.verdict for check in audit.checks if check.layer == layer)
        kind = "statistical" if layer in STATISTICAL else "exact"
        rows.append((layer, kind, str(counts["passed"]), str(counts["failed"]), meaning))
    return _table(("layer", "kind", "passed", "failed", "what is asked"), rows)


def _mechanisms(audit: Audit) -> str:
    """For every subject the largest number of each layer."""
    rows = []
    for subject, figures in strongest(audit.checks).items():
        rows.append((subject, *(figures.get(layer, "-") for layer in FIGURES)))
    text = _table(
        ("subject", "replays", "largest exact loss / epsilon", "stage: bound / claim", "whole run: bound / claim"), rows
    )
    return text + "\n\nOne means that the guarantee is used up to the last bit; above one it would be broken."


FIGURES = ("replay", "enumeration", "stage attack", "end-to-end attack")


def strongest(checks: Iterable[AuditCheck]) -> dict[str, dict[str, str]]:
    """By subject and layer: replays made, and the largest loss or bound as a share of what is claimed."""
    figures: dict[str, dict[str, float]] = {}
    for check in checks:
        if check.layer not in FIGURES or check.verdict == "not applicable":
            continue
        own = figures.setdefault(check.subject, {})
        if check.layer == "replay":
            own["replay"] = own.get("replay", 0) + 1
        elif check.measured is not None and check.claimed:
            own[check.layer] = max(own.get(check.layer, 0.0), check.measured / check.claimed)
    return {
        subject: {layer: f"{value:.0f}" if layer == "replay" else f"{value:.3f}" for layer, value in own.items()}
        for subject, own in figures.items()
    }


def _mutants(audit: Audit) -> str:
    if not audit.mutants:
        return "None were tried in this run: they live with the tests (`python -m tests.audit`)."
    rows = [(m.name, m.mistake, ", ".join(m.layers) or "**nothing: it survives**") for m in audit.mutants]
    caught = sum(bool(mutant.layers) for mutant in audit.mutants)
    every = "Every layer was asked about each." if audit.deep else "Only the first layer that catches one is named."
    return f"{caught} of {len(rows)} are caught. {every}\n\n" + _table(("mutant", "mistake", "caught by"), rows)


def _generated(audit: Audit) -> str:
    if audit.generated is None:
        return "None are known to this run: they live with the tests (`python -m tests.audit.mutation`)."
    return generated_section(audit.generated)


def generated_section(found: GeneratedMistakes) -> str:
    """By class, and every survivor with its reason, places with the same reason together."""
    numbers = [(c.name, *map(str, (c.tried, c.stopped, c.harmless, c.harmful, c.caught))) for c in found.classes]
    table = _table(("class", "tried", "does not run", "harmless", "break a guarantee", "caught"), numbers)
    reasons: dict[str, list[str]] = {}
    for place, kind, why in found.survivors:
        reasons.setdefault(why, []).append(f"`{place.removeprefix('dpsynth_core/')}` {kind}")
    survivors = _table(("why it went unnoticed", "where"), ((why, "; ".join(at)) for why, at in reasons.items()))
    share = f" ({found.caught / found.harmful:.1%})" if found.harmful else ""
    return (
        f"One at a time, in source `{found.source}`: {sum(c.tried for c in found.classes)} of {found.generated} "
        f"generated mistakes were tried. **Of {found.harmful} that break a guarantee, {found.caught} are caught"
        f"{share}.** The quick audit was asked, for the mechanisms that the edited file concerns, until something "
        f"failed.\n\n{table}\n\nWhat went unnoticed:\n\n{survivors}"
    )


def _false_alarms(audit: Audit) -> str:
    alarms = audit.false_alarms
    if alarms is None:
        return "Not counted in this run."
    share = alarms.loose_alarms / alarms.checks
    return (
        f"The statistical part was repeated {alarms.repetitions} times at reduced size with different seeds, on what "
        f"is sound: {alarms.alarms} repetition(s) raised an alarm. So that this says something, it was also run at a "
        f"level of {alarms.loose_level:.0%} for each check: {alarms.loose_alarms} of {alarms.checks:,} checks "
        f"({share:.1%}) failed there."
    )


# ------------------------------------------------------------------------------------------------------------ summary


def summary(audit: Audit) -> dict[str, Any]:
    layers = {}
    for layer in LAYERS:
        counts = Counter(check.verdict for check in audit.checks if check.layer == layer)
        layers[layer] = {"passed": counts["passed"], "failed": counts["failed"], "skipped": counts["not applicable"]}
    return {
        "when": audit.when.isoformat(timespec="seconds"),
        "version": audit.version,
        "digest": audit.digest,
        "deep": audit.deep,
        "seed": audit.seed,
        "seconds": round(audit.seconds, 1),
        "passed": audit.passed,
        "layers": layers,
        "strongest": strongest(audit.checks),
        "mutants": [asdict(mutant) for mutant in audit.mutants],
        "generated": None if audit.generated is None else audit.generated.to_dict(),
        "false_alarms": None if audit.false_alarms is None else asdict(audit.false_alarms),
    }
