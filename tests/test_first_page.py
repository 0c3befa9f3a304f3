"""What docs/first.md shows is run: its files are written, and each command prints what stands below it.

`ANABRANCH_REWRITE_DOCS=1 pytest tests/test_first_page.py` writes what came out into the page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from test_docs import TOP, blocks, show
from test_tutorial import Session

PAGE = TOP / "docs/first.md"


def test_the_first_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Orders are grouped, watched and ranked; the display is corrected when one more comes."""
    monkeypatch.chdir(tmp_path)
    page = list(blocks(PAGE))
    for block in page:
        if "file" in block.options:
            (tmp_path / block.options["file"]).write_text(f"{block.text}\n")
    session = Session(tmp_path, capsys)
    shown = [each for each in page if each.kind == "console"]
    assert len(shown) == 5
    for block in shown:
        commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
        show(block, "\n".join(line for each in commands for line in (each, *session.lines(each[2:]))))
