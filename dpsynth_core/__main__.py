"""``python -m dpsynth_core``: see :mod:`dpsynth_core.command`."""

from __future__ import annotations

import sys

from dpsynth_core.command import main

if __name__ == "__main__":
    sys.exit(main())
