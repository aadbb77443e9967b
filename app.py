"""Home, and the server around all pages. Start with ``streamlit run app.py``.

Streamlit reads this file in two ways: once as a module, to serve what it finds there under the name ``app``; and as the
script of the first page, for every visit.
"""

from __future__ import annotations

if __name__ == "__main__":
    from pages.shared.heading import heading

    heading("DPSynth")

    from pages.shared.home.view import show_home

    show_home()
else:
    from streamlit import App

    from pages.shared.server import MIDDLEWARE, ROUTES

    app = App("app.py", routes=ROUTES, middleware=MIDDLEWARE)
