"""``python -m dpsynth_core``: see :mod:`dpsynth_core.cli`."""

from __future__ import annotations

import sys

from dpsynth_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
