"""The page that walks through the trusted base is about the files that are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpsynth_core.privacy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trusted-base.md").read_text(encoding="utf-8")
FILES = sorted(path for path in Path(dpsynth_core.privacy.__path__[0]).glob("*.py") if path.name != "__init__.py")
MAX_LINES = 2_000
"""What a stranger can read in an hour."""


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def stated(pattern: str) -> int:
    found = re.search(pattern, PAGE)
    assert found, pattern
    return int(found[1].replace(",", ""))


def test_it_can_be_read_in_an_hour() -> None:
    total = sum(map(lines, FILES))
    assert total < MAX_LINES
    assert stated(r"about ([\d,]+) lines") == pytest.approx(total, rel=0.1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_walks_through_every_file(path: Path) -> None:
    assert re.search(rf"^### \d+\. `{re.escape(path.name)}`", PAGE, flags=re.M), "give it a section"
    assert stated(rf"\| `{re.escape(path.name)}` \| (\d+) \|") == pytest.approx(lines(path), rel=0.1, abs=5)


def test_every_function_that_is_said_to_decide_exists() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    deciding = re.findall(r"\*\*Decides the guarantee:\*\* (.*?)\n\n", PAGE, flags=re.S)
    names = [name.split(".")[-1] for text in deciding for name in re.findall(r"`([\w.]+)`", text)]
    assert len(names) > 20
    for name in names:
        assert f"def {name}(" in source, name


def test_what_takes_long_to_import_is_imported_where_it_is_used() -> None:
    heavy = "('scipy.optimize', 'scipy.stats', 'dp_accounting')"
    program = f"import sys, dpsynth_core.privacy.recording; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
