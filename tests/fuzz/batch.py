"""In the process that reads: many files one after the other."""

from __future__ import annotations

import resource
import time

from dpsynth_core.errors import IntakeError
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.table.readers.read import read_cells
from dpsynth_core.table.suggest import suggest


def read_all(contents: list[bytes], key: bytes) -> tuple[list[tuple[str, str, float]], int]:
    """Outcome, message and CPU seconds of each file, and the most bytes that the process held."""
    outcomes = []
    for content in contents:
        began = time.process_time()
        outcome, message = "read", ""
        try:
            table = read_cells(content, None)
            suggest(table)
            file_fingerprints(content, key)
        except IntakeError as refusal:
            outcome, message = "refused", str(refusal)
        except Exception as error:  # noqa: BLE001  what the fuzzer looks for
            outcome, message = "crash", f"{type(error).__name__}: {error}"
        outcomes.append((outcome, message, time.process_time() - began))
    return outcomes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
