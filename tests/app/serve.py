"""The app with one more mechanism, for tests only: ``python -m tests.app.serve PORT``."""

from __future__ import annotations

import sys

from streamlit.web import cli

from dpsynth_core.mechanisms import MECHANISMS
from tests.tables.stepping import Stepping

if __name__ == "__main__":
    sys.argv = ["streamlit", "run", "app.py", "--server.port", sys.argv[1], "--server.headless", "true"]
    with MECHANISMS.register(Stepping.key, Stepping):
        sys.exit(cli.main())
