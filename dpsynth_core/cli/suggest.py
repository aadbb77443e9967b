"""Propose a schema for a file: its layout and its columns, none of them public until you say so."""

from __future__ import annotations

import argparse
import json

from dpsynth_core.cli.terminal import hint
from dpsynth_core.table.readers.read import read_table
from dpsynth_core.table.suggest import WORDS_AMONG_NUMBERS, suggest

NOT_PUBLIC = (
    'These facts were read from the data. Correct them, and set "public" to true where anyone could know the facts of '
    "a column, and the layout of the file, without the data."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """``suggest`` has no options of its own."""


def run(chosen: argparse.Namespace) -> None:
    """Print the schema; what to know about it goes to the error stream."""
    suggestion = suggest(read_table(chosen.data))
    # Escaped: a name in the file may hold characters that a terminal would obey.
    print(json.dumps(suggestion.schema.to_dict(), indent=2))
    for name in suggestion.words:
        hint(f"Column {name!r}: {WORDS_AMONG_NUMBERS}")
    for name, reason in suggestion.dropped.items():
        hint(f"Column {name!r} is left out. {reason}")
    hint(NOT_PUBLIC)
