"""Mistakes in the source itself are noticed: those that a stranger planted, and a generator's are well formed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter

import pytest

from tests.audit.mutation.edits import ROOT, edits
from tests.audit.mutation.harness import subjects_for
from tests.audit.mutation.score import last_score
from tests.audit.mutation.strangers import STRANGERS

MIN_EDITS = 200


def test_generated_mistakes_are_many_of_many_kinds_and_each_is_a_program() -> None:
    every = list(edits())
    assert len(every) >= MIN_EDITS
    assert len({edit.name for edit in every}) == len(every)
    assert len(Counter(edit.kind for edit in every)) >= 10
    for edit in every:
        ast.parse(edit.applied((ROOT / edit.path).read_text(encoding="utf-8")))
        assert subjects_for(edit.path)


@pytest.mark.parametrize("name", STRANGERS)
def test_a_planted_mistake_has_its_place_in_the_source(name: str) -> None:
    edit = STRANGERS[name].edit
    ast.parse(edit.applied((ROOT / edit.path).read_text(encoding="utf-8")))


def test_nearly_all_generated_mistakes_that_were_tried_are_noticed_and_each_survivor_has_a_reason() -> None:
    found = last_score()
    assert found.caught >= 0.95 * found.harmful > 0
    assert all(why.startswith(("harmless", "missed")) for _, _, why in found.survivors)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGERS)
def test_the_audit_notices_what_a_stranger_planted(name: str) -> None:
    """In a process that has not loaded the package yet."""
    command = [sys.executable, "-m", "tests.audit.mutation", "--stranger", name]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=900).stdout
    assert said.startswith("caught"), said
