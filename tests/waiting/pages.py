"""The app's pages without a browser: opening them and reading what they show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from pages.shared.session import Session

ROOT = Path(__file__).parents[2]
HOSTILE = ["<script>alert(1)</script>", "**bold**", "$x$", ":red[x]", "[link](http://example.org)", "![i](//e.org/i)"]

POSSIBLE, VOID = ":green-badge[:material/verified: Guarantee: possible]", ":red-badge[:material/block: Guarantee: void]"


def csv_of(*names: str, rows: int = 60) -> bytes:
    lines = [",".join(f'"{name}"' for name in names)]
    lines += [",".join(str(10 + (i * (place + 3)) % 17) for place in range(len(names))) for i in range(rows)]
    return "\n".join(lines).encode()


def settled(app: AppTest) -> AppTest:
    assert not app.exception
    return app


def session_of(app: AppTest) -> Session:
    session = app.session_state["dpsynth"]
    assert isinstance(session, Session)
    return session


def elements(node: Any) -> Iterator[Any]:
    """Every element and every labelled container, the sidebar's included."""
    if getattr(node, "proto", None) is not None:
        yield node
    for child in getattr(node, "children", {}).values():
        yield from elements(child)


def texts(app: AppTest) -> str:
    return "\n".join(text.value for text in app.text)


def assert_only_in_plain_text(app: AppTest, hostile: str, *, shown: bool = True) -> None:
    """Fail if the text stands anywhere that understands Markdown or HTML, or (where it is to be shown) nowhere."""
    found = not shown
    for element in elements(app._tree):
        if element.type == "text":
            found = found or hostile in element.value
        elif element.type in ("selectbox", "multiselect"):
            # What can be chosen is shown literally, the label is not.
            assert hostile not in element.label + element.help, element
        elif element.type == "plotly_chart":
            # Plotly's labels understand some HTML, so the core escapes them.
            assert "<script" not in str(json.loads(element.proto.spec))
        elif element.type != "dataframe":
            assert hostile not in str(element.proto), element
    assert found, f"{hostile} is nowhere on the page"


def page(path: str, session: Session) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.session_state["dpsynth"] = session
    return settled(app.switch_page(path).run())


def data_page(session: Session | None = None) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    if session is not None:
        app.session_state["dpsynth"] = session
    return settled(app.switch_page("pages/1_Data.py").run())


def click(app: AppTest, key: str) -> AppTest:
    return settled(app.button(key=key).click().run())


def badges(app: AppTest) -> set[str]:
    return {body.value for body in app.markdown if "Guarantee" in body.value and "-badge[" in body.value}


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    settled(app.radio(key="source").set_value("file").run())
    if session_of(app).mode == "teaching":
        settled(app.checkbox(key="upload_is_public").check().run())
    session = session_of(app)
    settled(app.file_uploader(key=f"upload_{session.mode}_{session.tables_used}").upload(name, content).run())
    return click(app, "use_file")
