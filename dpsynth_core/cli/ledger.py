"""Examine the ledger of this installation, or take one over.

``check`` verifies every record. ``adopt`` is for a ledger from an earlier version, or for a key that was copied here
from another machine.
"""

from __future__ import annotations

import argparse

from dpsynth_core.cli.terminal import say
from dpsynth_core.ledger.adoption import adopt
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of ``ledger``."""
    command.add_argument("action", choices=("check", "adopt"))
    command.add_argument(
        "--accounts", type=int, help="for adopt: how many accounts you expect it to hold; without it, nothing changes"
    )


def run(chosen: argparse.Namespace) -> None:
    """Do what was asked, and say what was found."""
    settings = Settings.from_environment()
    if chosen.action == "adopt":
        say(f"The ledger was adopted with {adopt(settings, accounts=chosen.accounts)}.")
    end = installed_ledger(settings).check()
    say(f"The ledger is complete and unchanged: {end.position:,} record(s).")
