"""docs/faults.md: every fault names a test that shows what is promised, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parent.parent
PAGE = TOP / "docs" / "faults.md"
COLUMNS = ["fault", "promise", "test", "figure"]


def rows() -> list[list[str]]:
    """The cells of each fault."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(each) == len(COLUMNS) for each in cells)
    return [each for each in cells if each != COLUMNS and set(each[0]) != {"-", " "} and "---" not in each[0]]


def test_every_fault_has_a_test() -> None:
    """A test of the project, or a command that carries the fault out."""
    assert len(rows()) > 20
    for fault, promise, test, _ in rows():
        assert fault
        assert promise
        assert re.search(r"`tests/[\w/]+\.py`: `test_\w+`|`make [a-z-]+`", test), fault


def test_the_tests_that_are_named_are_there() -> None:
    """Each in its file, under its name."""
    named = 0
    for _, _, test, _ in rows():
        for file, names in re.findall(r"`(tests/[\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", test):
            text = (TOP / file).read_text(encoding="utf-8")
            for name in re.findall(r"`(test_\w+)`", names):
                named += 1
                assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{file} has no '{name}'"
    assert named == len(re.findall(r"`test_\w+`", PAGE.read_text(encoding="utf-8")))
