"""What the Mechanism page does: preview a mechanism on simulated rows."""

from __future__ import annotations

from dataclasses import replace

from dpsynth_core.errors import DPSynthError
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.simulate import simulate_table
from pages.shared.session import Session
from pages.shared.table_work import Preview
from pages.shared.tasks import Task

PREVIEW = "preview"
PREVIEW_ROWS = 20_000
PREVIEW_SEED = 1


def start_preview(session: Session, config: RunConfig) -> Task:
    """Run the mechanism on simulated rows with the same schema: free, because no row of the table is looked at."""
    work = session.work
    if work.schema is None or session.mode != "teaching":
        raise DPSynthError("Previews are for teaching mode, with complete public facts.")
    simulated = simulate_table(work.schema, min(work.n, PREVIEW_ROWS), seed=PREVIEW_SEED)

    def store(result: RunResult) -> None:
        work.preview = Preview(config=config, simulated=simulated, synthetic=result.tables[0])

    seeded = replace(config, copies=1, seed=PREVIEW_SEED)
    return work.tasks.start(PREVIEW, "The preview", execute, simulated, work.schema, seeded, about=config, store=store)
