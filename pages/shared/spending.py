"""What several pages say before epsilon is spent: what it costs, what is left, and whether the guarantee holds."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpsynth_core.ledger.accounts import Account, Balance
from dpsynth_core.privacy.budget import Budget, Guarantee, format_amount
from pages.shared.formatting import format_loss
from pages.shared.widgets import plain_list


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


def ask_to_spend(
    account: Account, needed: Budget, show: Callable[[], None], *, dismissed: Callable[[], None] | None = None
) -> None:
    """A dialog about a charge, whose title says whether it takes all that is left.

    Args:
        account: Of the data set.
        needed: What is asked for.
        show: Draws what is in the dialog.
        dismissed: Called when it is closed without an answer.
    """
    left = account.left
    whole = needed.epsilon >= left.epsilon
    first = not account.spent.epsilon
    title = "Spend part of the budget?"
    if whole:
        title = "Spend the whole budget?" if first else "Spend all that is left of the budget?"
    st.dialog(title, on_dismiss=dismissed or "ignore")(show)()


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
