"""The whole audit, together with everything that is broken on purpose: ``python -m tests.audit --deep``."""

from __future__ import annotations

import sys

from dpsynth_core.audit.__main__ import main
from dpsynth_core.audit.mutant import Mutant
from tests.audit.mutants import MUTANTS
from tests.audit.mutation.score import last_score
from tests.audit.published import published


def mutants() -> tuple[Mutant, ...]:
    return MUTANTS


if __name__ == "__main__":
    # By its importable name: worker processes look it up there.
    from tests.audit.__main__ import mutants as importable

    sys.exit(main(mutants=importable, files=published, generated=last_score()))
