"""All experiments with one command: what is finished is not run again, and figures are drawn from what is there."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.papers import EXPERIMENTS, everything
from benchmarks.papers.everything import REDUCED, SIDE_BY_SIDE, Batch, ReducedRun, main
from benchmarks.papers.figures import FIGURES
from benchmarks.papers.pictures import BoxPanel, LinePanel, draw_all, svg


def test_every_figure_comes_from_an_experiment_and_every_reduced_run_too() -> None:
    assert {experiment for experiment, _ in FIGURES.values()} <= set(EXPERIMENTS)
    assert set(REDUCED) == set(EXPERIMENTS)


def test_what_is_finished_is_not_run_again_and_what_failed_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(batch: Batch, name: str) -> bool:
        ran.append(name)
        assert batch.data is None
        if name == "utility" and ran.count("utility") == 1:
            (batch.out / "utility.json").write_text("[", encoding="utf-8")  # cut off
            return False
        (batch.out / f"{name}.json").write_text("[]", encoding="utf-8")
        return True

    monkeypatch.setattr(Batch, "_run", run)
    monkeypatch.setattr(everything, "draw_all", lambda *_: [])
    monkeypatch.setattr(sys, "argv", ["everything", "--out", str(tmp_path)])
    assert main() == 1
    assert sorted(ran) == sorted(EXPERIMENTS)
    assert main() == 0
    assert ran[len(EXPERIMENTS) :] == ["utility"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests were started in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_batch_ends_what_runs_starts_nothing_more_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes: a first run of an experiment does not end by itself, a second one does."""
    script = (
        "import pathlib, sys, time\n"
        "seen = pathlib.Path(sys.argv[1])\n"
        "if not seen.exists(): seen.touch(); time.sleep(600)\n"
        "print('[]')"
    )
    monkeypatch.setattr(
        Batch, "_command", lambda self, name: [sys.executable, "-c", script, str(self.out / f"{name}.seen")]
    )
    batch = Batch(runs={name: ReducedRun() for name in ("a", "b", "c")}, out=tmp_path, data=None)

    def interrupt() -> None:
        while len(list(tmp_path.glob("*.seen"))) < SIDE_BY_SIDE:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        batch.run()
    timings = (tmp_path / "timings.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["experiment"] for line in timings) == ["a", "b"], "both ended, c was never started"
    assert all(json.loads(line)["code"] != 0 for line in timings)
    assert not list(tmp_path.glob("*.json"))
    (tmp_path / "c.seen").touch()
    assert batch.run() == []
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["a", "b", "c"]


def test_figures_are_drawn_from_results_and_left_out_without(tmp_path: Path) -> None:
    rows = [{"from": f"{17 + i}", "without": 0.01 * i, "with": 0.02} for i in range(24)]
    tables = [{"title": "Shares of people by body mass index: Figure 3b", "notes": [], "rows": rows}]
    for part in ("Figure 7b", "Figure 8"):
        cell = {"mean": 0.5, "standard_error": 0.1, "reps": 2}
        row = {"test": "<b>", "rows": "n = 50", "error": "Type I", "eps 0.1": cell, "eps 1": cell}
        tables.append({"title": part, "notes": [], "rows": [row]})
    (tmp_path / "body_mass_index.json").write_text(json.dumps(tables), encoding="utf-8")
    drawn = draw_all(tmp_path, tmp_path / "pictures")
    assert [path.stem for path in drawn] == ["discoveries_figure_3b", "discoveries_figure_7b", "discoveries_figure_8"]
    for path in drawn:
        ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314  our own text
    assert "&lt;b&gt;" in drawn[1].read_text(encoding="utf-8")


def test_lines_and_boxes_lie_within_their_panels() -> None:
    lines = LinePanel(title="A", x=["1", "2"], lines={"a": [1e-3, 10.0], "b": [None, 2.0], "none": [None, None]})
    boxes = BoxPanel(title="B", boxes={"c": (0.1, 0.2, 0.3, 0.4, 5.0)})
    root = ET.fromstring(svg([lines, boxes]))  # noqa: S314  our own text
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height
