"""What is claimed about privacy, and the evidence for it."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account, Entry
from dpsynth_core.privacy.budget import Budget, Status, format_amount
from dpsynth_core.review.checklist_item import ChecklistItem, CheckState
from dpsynth_core.review.gate import check_claim
from dpsynth_core.review.thresholds import Thresholds
from dpsynth_core.review.wording import claim, costs, declarer, loss, origins, unit
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.paid_estimate import PaidEstimate

_STATES: dict[Status, CheckState] = {"proven": "pass", "asymptotic": "warn", "heuristic": "warn"}
"""By the guarantee's status; any other fails."""


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
    state, evidence = _STATES.get(guarantee.status, "fail"), guarantee.meaning
    try:
        check_claim(outcome)
    except DPSynthError as error:
        state, evidence = "fail", str(error)
    return ChecklistItem(
        key="guarantee",
        group="Privacy",
        title="The guarantee holds for this run",
        asked="proven",
        measured=guarantee.status,
        state=state,
        evidence=evidence,
        details=(claim(guarantee), *costs(guarantee), *guarantee.caveats),
        final=True,
    )


def _facts(outcome: RunResult) -> ChecklistItem:
    schema = outcome.schema
    by_origin = origins(schema)
    evidence = "Every bound and category is declared to be known without looking at the rows."
    if not schema.is_public:
        evidence = f"Read from the data: {', '.join(schema.not_public)}. That voids the guarantee."
    elif "estimated privately" in by_origin:
        evidence += " Some were estimated privately and paid for."
    declared = len(schema.names) - len(schema.not_public)
    return ChecklistItem(
        key="facts",
        group="Privacy",
        title="Bounds and categories are public knowledge",
        asked="every column",
        measured=f"{declared} of {len(schema.names)} columns; {declarer(schema)}",
        state="pass" if schema.is_public else "fail",
        evidence=evidence,
        details=tuple(f"{origin}: {', '.join(names)}" for origin, names in by_origin.items()),
        final=True,
    )


def _ledger(outcome: RunResult, account: Account | None, charge: Entry | None, *, public: bool) -> ChecklistItem:
    total = outcome.config.total
    state: CheckState = "fail"
    if public:
        state, measured = "pass", "nothing to charge"
        evidence = "Teaching mode: the data are public or simulated."
    elif account is None:
        measured = "no account"
        evidence = "This data set has no account, so nobody has counted what was spent. Open one on the Data page."
    else:
        left = f"{format_amount(account.left.epsilon, up=False)} of {format_amount(account.total.epsilon)} left"
        unpaid = sorted(
            {each.column for each in outcome.estimates} - {each.column for each in _on_record(outcome, account)}
        )
        if unpaid:
            measured = f"no charge for an estimate; epsilon {left}"
            evidence = (
                f"The ledger has no charge for the private estimate of {', '.join(unpaid)}. Estimate it again here."
            )
        elif any(test not in account.comparisons for test in outcome.comparisons):
            measured = f"no charge for a private test; epsilon {left}"
            evidence = "The ledger has no charge for a private test that would be published. Leave that test out."
        elif charge is not None and charge.state == "committed" and charge.budget == total:
            state, measured = "pass", f"charge {charge.id}; epsilon {left}"
            evidence = f"This run was charged {loss(total)} before its result was shown."
        else:
            measured = f"not on record; epsilon {left}"
            evidence = "The ledger has no settled charge for this run. Make the table again in release mode."
    return ChecklistItem(
        key="ledger",
        group="Privacy",
        title="The ledger has charged this run",
        asked=loss(total),
        measured=measured,
        state=state,
        evidence=evidence,
        details=() if public or account is None else tuple(_entry(entry) for entry in account.entries),
        final=True,
    )


def _on_record(outcome: RunResult, account: Account) -> list[PaidEstimate]:
    """The run's private estimates that this account has paid for, with these values."""
    kept = [(each.to_dict(), each.guarantee.budget) for each in account.estimates]
    return [each for each in outcome.estimates if (each.to_dict(), each.guarantee.budget) in kept]


def _entry(entry: Entry) -> str:
    when = entry.created.strftime("%Y-%m-%d %H:%M UTC")
    reason = f" ({entry.reason})" if entry.reason else ""
    who = f", by {entry.by}" if entry.by.known else ""
    return f"{entry.id}. {when}: {entry.purpose}, {loss(entry.budget)}, {entry.state}{reason}{who}"


def _stated(outcome: RunResult) -> Budget:
    """What the release states: its rows, the estimates that it uses and the tests published with it."""
    return outcome.guarantee.budget or outcome.config.total


def _epsilon(outcome: RunResult, account: Account | None, thresholds: Thresholds) -> ChecklistItem:
    own, policy = _stated(outcome).epsilon, thresholds.policy.epsilon
    spent = max(own, account.spent.epsilon) if account else own
    share = f" This release accounts for {format_amount(own)} of it." if spent != own else ""
    return ChecklistItem(
        key="epsilon",
        group="Privacy",
        title="Privacy loss is within policy",
        asked=f"epsilon at most {format_amount(policy)}",
        measured=f"epsilon {format_amount(spent)}",
        state="pass" if spent <= policy else "fail",
        evidence="Everything taken from this data set, for "
        f"{unit(outcome.schema.rows_per_person)}: epsilon {format_amount(spent)}.{share}",
        limit=float(policy),
        value=float(spent),
    )


def _delta(outcome: RunResult, account: Account | None, thresholds: Thresholds, n: int) -> ChecklistItem:
    own, policy = _stated(outcome).delta, thresholds.policy.delta
    spent = max(own, account.spent.delta) if account else own
    state: CheckState = "pass"
    if not spent:
        evidence = "Pure differential privacy: there is no chance of failure to account for."
    elif spent > policy:
        state, evidence = "fail", "The chance that the guarantee fails altogether is above your policy."
    elif spent * n >= 1:
        state, evidence = "warn", f"A delta of 1/{n:,} or more would let a mechanism publish somebody's row outright."
    else:
        evidence = "Below your policy, and below one over the number of rows."
    return ChecklistItem(
        key="delta",
        group="Privacy",
        title="The chance of failure is negligible",
        asked=f"delta at most {format_amount(policy)}",
        measured=f"delta {format_amount(spent)}",
        state=state,
        evidence=evidence,
        limit=float(policy) or None,
        value=float(spent) if policy else None,
    )


def _method(outcome: RunResult) -> ChecklistItem:
    mechanism, caveats = outcome.config.mechanism, outcome.guarantee.caveats
    known = [text for text in (mechanism.beware, *caveats) if text]
    shown = known or ["None is known beyond the noise itself."]
    return ChecklistItem(
        key="method",
        group="Privacy",
        title="Known weaknesses of the mechanism",
        asked="read and accepted",
        measured=f"{len(known) or 'none'} stated for {mechanism.title}",
        state="warn" if caveats else "pass",
        evidence=shown[0],
        details=(*shown[1:], f"Made for: {mechanism.good_for}", mechanism.paper),
    )
