"""What several pages say before epsilon is spent: what it costs, what is left, and whether the guarantee holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import streamlit as st

from dpsynth_core.ledger.accounts import Account, Balance
from dpsynth_core.privacy.budget import Budget, Guarantee, format_amount
from pages.shared.accounts import account_of
from pages.shared.asked import Asked
from pages.shared.formatting import format_loss
from pages.shared.session import Session
from pages.shared.table_work import TableWork
from pages.shared.widgets import plain_list

What = TypeVar("What")


def shortages(left: Balance, needed: Budget, *, fewer: str = "") -> list[str]:
    """Why an account cannot grant this, one line each: for epsilon and for delta apart.

    Args:
        left: What the account still has.
        needed: What is asked for.
        fewer: What else could be lowered, as " or the number of tables".
    """
    lines, short = [], left.short_of(needed)
    if "epsilon" in short and not left.epsilon:
        lines.append("The data set's ε is used up (only ε = 0 is left): nothing more can be made from its rows.")
    elif "epsilon" in short:
        lines.append(f"Lower epsilon{fewer}: only ε = {format_amount(left.epsilon, up=False)} is left.")
    if "delta" in short and not left.delta:
        lines.append("The data set's δ is used up (only δ = 0 is left): choose a mechanism that needs none.")
    elif "delta" in short:
        remaining = format_amount(left.delta, up=False)
        lines.append(f"Lower delta{fewer}, or choose a mechanism that needs none: only δ = {remaining} is left.")
    return lines


@dataclass(frozen=True, kw_only=True)
class Offer(Generic[What]):
    """Something that costs epsilon in release mode: the question before it is paid for, and how it is made."""

    name: str
    """Of the widgets in the dialog."""
    price: Callable[[What], Budget]
    explain: Callable[[Account, What], bool]
    """Draws the dialog; returns whether it can be paid for."""
    confirm: str
    """Label of the button that spends."""
    make: Callable[[What, str], None]
    """Makes it, under an id that is charged once."""


def ask_to_spend(
    session: Session, offer: Offer[What], label: str, what: What, *, key: str, disabled: bool = False, **look: Any
) -> None:
    """The button; in release mode it leads to a dialog that states the charge, and nothing is spent before its answer.

    The click and its confirmation are remembered by callbacks until they are answered: work that ends meanwhile draws
    the page anew, which would forget the click or close the dialog.

    Args:
        session: The visitor.
        offer: What the button is for.
        label: Of the button.
        what: What is offered at the moment, which the click is about whatever changes afterwards.
        key: Of the button.
        disabled: Whether it cannot be had now.
        look: Anything else for the button.
    """
    work = session.work
    ask = partial(_remember, work, Asked(button=key, what=what))
    st.button(label, key=key, disabled=disabled, on_click=ask, **look)
    asked = work.asked
    if asked is None or asked.button != key:
        return
    if session.mode == "teaching" or asked.confirmed:
        _remember(work, None)
        if asked.claim():
            offer.make(asked.what, asked.id)
        return
    account = account_of(session)
    assert account is not None  # noqa: S101  the button is disabled without
    title = _dialog_title(account, offer.price(asked.what))
    st.dialog(title, on_dismiss=partial(_remember, work, None))(_confirm)(work, account, offer, asked)


def _remember(work: TableWork, asked: Asked | None) -> None:
    work.asked = asked


def _dialog_title(account: Account, needed: Budget) -> str:
    if needed.epsilon > account.left.epsilon or needed.delta > account.left.delta:
        return "Not enough of the budget is left"
    if needed.epsilon < account.left.epsilon:
        return "Spend part of the budget?"
    return "Spend all that is left of the budget?" if account.spent.epsilon else "Spend the whole budget?"


def _confirm(work: TableWork, account: Account, offer: Offer[What], asked: Asked) -> None:
    enough = offer.explain(account, asked.what)
    with st.container(horizontal=True):
        spend = st.button(
            offer.confirm, type="primary", key=f"confirm_{offer.name}", disabled=not enough, on_click=asked.confirm
        )
        cancel = st.button("Cancel", key=f"cancel_{offer.name}", on_click=partial(_remember, work, None))
    if spend or cancel:
        st.rerun()


def show_price(account: Account, needed: Budget, what: str) -> bool:
    """Cost and remainder, in the words of a dialog; returns whether the account can grant it.

    Args:
        account: Of the data set.
        needed: What is asked for.
        what: What it is for, as the beginning of a sentence: "This run".
    """
    left, short = account.left, account.left.short_of(needed)
    st.text(f"{what} costs {format_loss(needed.epsilon, needed.delta)}.")
    st.text(f"Left now: {format_loss(left.epsilon, left.delta, up=False)}.")
    if short:
        names = " and ".join({"epsilon": "ε", "delta": "δ"}[name] for name in short)
        st.text(f"That is more than is left: there is not enough {names}.")
        plain_list(shortages(left, needed))
        return False
    epsilon, delta = left.epsilon - needed.epsilon, left.delta - needed.delta
    st.text(f"Left afterwards: {format_loss(epsilon, delta, up=False)}.")
    if not epsilon:
        st.text("This uses up the data set's ε: nothing more can be made from its rows afterwards.")
    elif needed.delta and not delta:
        st.text("This uses up the data set's δ: afterwards only mechanisms that need no δ can be used.")
    return True


def warn_of_void(guarantee: Guarantee | None) -> None:
    """Before anything is spent: what is made would not be private, so it could not be released."""
    if guarantee is None or guarantee.status not in ("void", "none"):
        return
    st.warning(
        "**The guarantee is void.** The epsilon is spent all the same, and the result cannot be released as private.",
        icon=":material/block:",
    )
    plain_list(guarantee.caveats)
