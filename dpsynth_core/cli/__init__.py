"""The command line: the same work and the same errors as in the app, for scripts.

    python -m dpsynth_core suggest data.csv > schema.json
    python -m dpsynth_core synthesize data.csv --schema schema.json --mechanism kd_tree --epsilon 1 --out bundle.zip
    python -m dpsynth_core compare data.csv --schema schema.json --value income --group sex --epsilon 0.5
    python -m dpsynth_core evaluate data.csv synthetic.csv --schema schema.json --out report.html
    python -m dpsynth_core ledger check
    python -m dpsynth_core licences --sbom > sbom.json

Results go to standard output, progress and errors to the error stream. Exit codes: 0 done, 2 something must be
corrected (the message says what), 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dpsynth_core.cli import compare, evaluate, ledger, licences, suggest, synthesize
from dpsynth_core.cli.terminal import printable
from dpsynth_core.errors import DPSynthError

PROGRAM = "python -m dpsynth_core"
DONE, USER_ERROR, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None, *, program: str = PROGRAM, about: str = "") -> int:
    """Run a command and return the exit code.

    Args:
        arguments: The command and its options; None: those of this process.
        program: What people type to get here.
        about: What else its help says.
    """
    chosen = _parser(program, about).parse_args(arguments)
    try:
        chosen.run(chosen)
    except DPSynthError as error:
        print(f"Error: {printable(error)}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(printable(note), file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt as stop:
        print(f"\nStopped. {printable(' '.join(getattr(stop, '__notes__', ())))}".rstrip(), file=sys.stderr)
        return INTERRUPTED
    return DONE


class _Location(argparse.Action):
    """Keeps what was typed beside the path: an address such as s3://bucket/rows is no path."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        namespace.location = str(values)
        namespace.data = Path(str(values))


def _parser(program: str, epilog: str) -> argparse.ArgumentParser:
    about = "Make and examine differentially private synthetic tables."
    parser = argparse.ArgumentParser(prog=program, description=about, epilog=epilog, allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="command")
    modules = {
        "suggest": suggest,
        "synthesize": synthesize,
        "compare": compare,
        "evaluate": evaluate,
        "ledger": ledger,
        "licences": licences,
    }
    for name, module in modules.items():
        about = (module.__doc__ or "").splitlines()[0]
        command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        if module not in (ledger, licences):
            command.add_argument("data", action=_Location, help="the original table: CSV, Excel or Parquet")
        if module not in (suggest, ledger, licences):
            command.add_argument("--schema", type=Path, required=True, help="the schema: public facts, a JSON file")
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
