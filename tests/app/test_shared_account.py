"""A corrected table shares the budget of the first one, and a release of one version is not taken for another's."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_core.ledger.declarations import DeclarationStore, NearAccountError
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.stored_run import StoreOrder, execute_and_store
from pages.shared.accounts import account_of, open_stored_releases
from pages.shared.data.account_actions import share_account
from pages.shared.data.actions import declare_all_public, load_upload, open_account
from pages.shared.session import Session
from pages.shared.synthesize.actions import _charge
from tests.waiting.pages import click, data_page, settled, texts


def csv(seed: int, *, changed: str = "") -> bytes:
    rows = np.random.default_rng(seed).integers(0, 10**6, (80, 2))
    lines = ["age,income", *(f"{a},{b}" for a, b in rows)]
    return "\n".join([*lines[:-1], changed or lines[-1]]).encode()


def loaded(content: bytes) -> Session:
    session = Session(mode="release")
    load_upload(session, "people.csv", content)
    declare_all_public(session, public=True)
    return session


def released(session: Session) -> None:
    """What a worker does with a paid run, without the worker."""
    work = session.work
    assert session.schema is not None
    assert work.data.fingerprint is not None
    session.settings.epsilon = "0.4"
    config = session.settings.config(session.schema, work.n, teaching=False)
    charge = _charge(work.data.fingerprint, config, work.data.version)
    order = StoreOrder(settings=Settings.from_environment(), charge=charge.id)
    execute_and_store(work.data.table, session.schema, config, (), order)


def test_a_corrected_table_can_share_the_account_and_keeps_its_own_releases() -> None:
    first = loaded(csv(1))
    open_account(first, "1", "0")
    released(first)

    second = loaded(csv(1, changed="7,7"))
    with pytest.raises(NearAccountError) as found:
        open_account(second, "1", "0")
    assert account_of(second) is None
    (near,) = found.value.near
    assert near.account.label == "people.csv"
    share_account(second, near.account)
    account = account_of(second)
    assert account is not None
    assert float(account.left.epsilon) == 0.6, "what was spent on the first version counts"
    open_stored_releases(second)
    assert second.runs == [], "a release of other rows must not be compared with these"
    released(second)

    again = loaded(csv(1, changed="7,7"))
    assert (again.work.data.fingerprint, again.work.data.version is None) == (account.fingerprint, False)
    open_stored_releases(again)
    assert len(again.runs) == 1
    before = loaded(csv(1))
    open_stored_releases(before)
    assert [run.charge for run in before.runs] == [1]


def test_other_people_get_an_account_of_their_own() -> None:
    open_account(loaded(csv(1)), "1", "0")
    open_account(loaded(csv(2)), "1", "0")
    assert len(DeclarationStore(installed_ledger()).accounts()) == 2


def test_an_account_from_before_gets_its_sketch_when_its_table_is_seen_again() -> None:
    content = csv(1)
    name = loaded(content).work.data.fingerprint
    assert name is not None
    installed_ledger().open_account(name, total=Budget.of(1))
    open_account(loaded(csv(1, changed="7,7")), "1", "0")  # nothing is known of the first table's rows yet
    loaded(content)
    with pytest.raises(NearAccountError) as found:
        open_account(loaded(csv(1, changed="8,8")), "1", "0")
    assert name in {near.account.fingerprint for near in found.value.near}


def test_a_version_that_is_not_recognised_can_be_attached_by_hand() -> None:
    open_account(loaded(csv(1)), "1", "0")
    session = loaded(csv(2))
    app = data_page(session)
    (switch,) = (each for each in app.toggle if each.key == "is_version")
    app = settled(switch.set_value(True).run())
    click(app, "attach_table")
    account = account_of(session)
    assert account is not None
    assert (account.label, account.fingerprint != session.work.data.version) == ("people.csv", True)


def test_the_page_asks_before_it_opens_a_second_budget() -> None:
    open_account(loaded(csv(1)), "1", "0")
    session = loaded(csv(1, changed="7,7"))
    app = data_page(session)
    (press,) = (each for each in app.button if each.label == "Open the account")
    app = settled(press.click().run())
    assert account_of(session) is None
    assert "about 99% of the smaller table's rows are in both" in texts(app)
    app = click(app, "share_account_0")
    assert account_of(session) is not None
    assert session.work.data.version is not None
    assert "Use this account" not in [each.label for each in app.button]
