"""Everything that reading a file loads; imported once by the process that the reading ones are copies of."""

from __future__ import annotations

from dpsynth_core.runs import reading  # noqa: F401
from dpsynth_core.table import cell_loops
from dpsynth_core.table.readers import delimited, excel, parquet  # noqa: F401

# It has one thread, which is what makes it safe to copy: the loops below are loaded, and start none.
cell_loops.warm_up()
