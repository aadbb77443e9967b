"""What is claimed about privacy, and what stands behind it."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account, Entry
from dpsynth_core.privacy.budget import Status, format_amount
from dpsynth_core.review.checklist_item import ChecklistItem, CheckState
from dpsynth_core.review.gate import check_claim
from dpsynth_core.review.thresholds import Thresholds
from dpsynth_core.review.wording import claim, declarer, loss, origins, unit
from dpsynth_core.runs.configuration import RunResult

_STATE_OF_STATUS: dict[Status, CheckState] = {
    "proven": "pass", "asymptotic": "warn", "heuristic": "warn", "void": "fail", "none": "fail",
}  # fmt: skip


def privacy_checks(
    outcome: RunResult, n: int, thresholds: Thresholds, account: Account | None, charge: Entry | None, *, public: bool
) -> tuple[ChecklistItem, ...]:
    """Guarantee, public facts, ledger, policy and method."""
    return (
        _guarantee(outcome),
        _facts(outcome),
        _ledger(outcome, account, charge, public=public),
        _epsilon(outcome, account, thresholds),
        _delta(outcome, account, thresholds, n),
        _method(outcome),
    )


def _guarantee(outcome: RunResult) -> ChecklistItem:
    guarantee = outcome.guarantee
    state = _STATE_OF_STATUS[guarantee.status]
    evidence = guarantee.meaning
    try:
        check_claim(outcome)
    except DPSynthError as error:
        state, evidence = "fail", str(error)
    return ChecklistItem(
        key="guarantee", group="Privacy", title="The guarantee holds for what ran", asked="proven",
        measured=guarantee.status, state=state, evidence=evidence, final=True,
        details=(claim(guarantee), *guarantee.caveats),
    )  # fmt: skip


def _facts(outcome: RunResult) -> ChecklistItem:
    schema = outcome.schema
    found = origins(schema)
    details = tuple(f"{origin}: {', '.join(names)}" for origin, names in found.items())
    if not schema.is_public:
        state: CheckState = "fail"
        evidence = f"Read from the data: {', '.join(schema.not_public)}. That voids the guarantee."
    else:
        state = "pass"
        evidence = "Every bound and category is declared to be known without the rows."
        if "estimated privately" in found:
            evidence += " Some were estimated privately and paid for."
    return ChecklistItem(
        key="facts", group="Privacy", title="Bounds and categories are public knowledge", asked="every column",
        measured=f"{len(schema.names) - len(schema.not_public)} of {len(schema.names)} columns; {declarer(schema)}",
        state=state, evidence=evidence, details=details, final=True,
    )  # fmt: skip


def _ledger(outcome: RunResult, account: Account | None, charge: Entry | None, *, public: bool) -> ChecklistItem:
    total = outcome.config.total
    details: tuple[str, ...] = ()
    if public:
        state: CheckState = "pass"
        measured, evidence = "nothing to charge", "Teaching mode: the data are public or simulated."
    elif account is None:
        state, measured = "fail", "no account"
        evidence = "This data set has no account, so nobody has counted what was spent. Open one on the Data page."
    else:
        details = tuple(_entry(entry) for entry in account.entries)
        left = f"{format_amount(account.left.epsilon, up=False)} of {format_amount(account.total.epsilon)} left"
        if charge is None or charge.state != "committed" or charge.budget != total:
            state, measured = "fail", f"not on record; epsilon {left}"
            evidence = "The ledger has no settled charge for this run. Make the table again in release mode."
        else:
            state, measured = "pass", f"charge {charge.id}; epsilon {left}"
            evidence = f"This run was charged {loss(total)} before its result was shown."
    return ChecklistItem(
        key="ledger", group="Privacy", title="The ledger has charged this run", asked=loss(total), measured=measured,
        state=state, evidence=evidence, details=details, final=True,
    )  # fmt: skip


def _entry(entry: Entry) -> str:
    when = entry.created.strftime("%Y-%m-%d %H:%M UTC")
    reason = f" ({entry.reason})" if entry.reason else ""
    return f"{entry.id}. {when}: {entry.purpose}, {loss(entry.budget)}, {entry.state}{reason}"


def _epsilon(outcome: RunResult, account: Account | None, thresholds: Thresholds) -> ChecklistItem:
    own = outcome.config.total.epsilon
    spent, policy = max(own, account.spent.epsilon) if account else own, thresholds.policy.epsilon
    within = spent <= policy
    together = f" Of that, this release is {format_amount(own)}." if spent != own else ""
    evidence = (
        f"All that was taken from this data set, for {unit(outcome.schema.rows_per_person)}: "
        f"epsilon {format_amount(spent)}.{together}"
    )
    return ChecklistItem(
        key="epsilon", group="Privacy", title="Privacy loss is within policy",
        asked=f"epsilon at most {format_amount(policy)}", measured=f"epsilon {format_amount(spent)}",
        state="pass" if within else "fail", evidence=evidence, limit=float(policy), value=float(spent),
    )  # fmt: skip


def _delta(outcome: RunResult, account: Account | None, thresholds: Thresholds, n: int) -> ChecklistItem:
    own = outcome.config.total.delta
    spent, policy = max(own, account.spent.delta) if account else own, thresholds.policy.delta
    if not spent:
        state: CheckState = "pass"
        evidence = "Pure differential privacy: there is no chance of failure to account for."
    elif spent > policy:
        state, evidence = "fail", "The chance that the guarantee fails altogether is above your policy."
    elif spent * n >= 1:
        state = "warn"
        evidence = f"A delta of 1/{n:,} or more allows a mechanism to publish somebody's row outright."
    else:
        state, evidence = "pass", "Below your policy, and below one over the number of rows."
    return ChecklistItem(
        key="delta", group="Privacy", title="The chance of failure is negligible",
        asked=f"delta at most {format_amount(policy)}", measured=f"delta {format_amount(spent)}",
        state=state, evidence=evidence, limit=float(policy) or None, value=float(spent) if policy else None,
    )  # fmt: skip


def _method(outcome: RunResult) -> ChecklistItem:
    mechanism = outcome.config.mechanism
    known = tuple(text for text in (mechanism.beware, *outcome.guarantee.caveats) if text)
    return ChecklistItem(
        key="method", group="Privacy", title="Known weaknesses of the mechanism", asked="read and accepted",
        measured=mechanism.title, state="warn" if outcome.guarantee.caveats else "pass",
        evidence=known[0] if known else "None is known beyond the noise itself.",
        details=(*known[1:], f"Made for: {mechanism.good_for}", mechanism.paper),
    )  # fmt: skip
