"""Examine the ledger of this installation, take one over, or move it to another database.

``check`` verifies every record. ``adopt`` is for a ledger from an earlier version, or for a key that was copied here
from another machine. ``move`` copies it into an empty database, for instance from a file to PostgreSQL.
"""

from __future__ import annotations

import argparse
import os

from dpsynth_core.cli.terminal import say
from dpsynth_core.errors import ParameterError
from dpsynth_core.ledger.adoption import adopt
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.moving import move_ledger
from dpsynth_core.ledger.settings import Settings

TARGET = "DPSYNTH_NEW_LEDGER_URL"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of ``ledger``."""
    command.add_argument("action", choices=("check", "adopt", "move"))
    command.add_argument(
        "--accounts", type=int, help="for adopt: how many accounts you expect it to hold; without it, nothing changes"
    )

    command.add_argument(
        "--to",
        default=os.environ.get(TARGET, ""),
        help=f"for move: the new database's address; better in {TARGET}, because others can see a command's options",
    )


def run(chosen: argparse.Namespace) -> None:
    """Do what was asked, and say what was found."""
    settings = Settings.from_environment()
    if chosen.action == "adopt":
        say(f"The ledger was adopted with {adopt(settings, accounts=chosen.accounts)}.")
    if chosen.action == "move":
        if not chosen.to:
            raise ParameterError("--to", "", allowed=f"a SQLAlchemy URL, there or in {TARGET}")
        end = move_ledger(settings, chosen.to)
        say(f"The ledger was copied: {end.position:,} record(s), all checked. Now set DPSYNTH_LEDGER_URL to the new")
        say("address, start the app and put the old database away: once the new one was used, it is refused.")
        return
    end = installed_ledger(settings).check()
    say(f"The ledger is complete and unchanged: {end.position:,} record(s).")
