"""The installed command: ``dpsynth-app`` opens the app, ``dpsynth-app synthesize ...`` is the command line.

Options of Streamlit can follow: ``dpsynth-app --server.port 8600``. Secrets are read from ``secrets.toml`` in the
installation's folder (``DPSYNTH_HOME``), beside the ledger.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dpsynth_core.cli import main as run_command
from dpsynth_core.cli.terminal import printable
from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.settings import Settings

PROGRAM = "dpsynth-app"
ABOUT = "Without a command, dpsynth-app opens the app; options of Streamlit can follow, such as --server.port 8600."
PACKAGE = Path(__file__).parents[1]


def app_folder() -> Path:
    """Where the app's pages are: in the installed package, or in the checkout beside it."""
    packed = PACKAGE / "_app"
    return packed if packed.exists() else PACKAGE.parent


def streamlit_command(options: Sequence[str]) -> list[str]:
    """What is run to open the app."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    secrets = Settings.from_environment().home / "secrets.toml"
    if not any(option.startswith("--secrets.files") for option in options) and secrets.exists():
        command += ["--secrets.files", str(secrets)]
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the app, or run a command of the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and (given[0] == "--help" or not given[0].startswith("--")):
        return run_command(given, program=PROGRAM, about=ABOUT)
    try:
        command = streamlit_command(given)
    except DPSynthError as error:
        print(f"Error: {printable(error)}", file=sys.stderr)
        return 2
    # Streamlit reads its settings from the folder that it is started in.
    os.chdir(app_folder())
    return os.execv(command[0], command)  # noqa: S606  our own interpreter, in the place of this process


if __name__ == "__main__":
    sys.exit(main())
