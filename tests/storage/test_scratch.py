"""Temporary folders of runs are gone behind them, whoever still writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch.storage import scratch
from anabranch.storage.scratch import ScratchFolder


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Somebody who writes one file into each of these folders when the first folder in them is about to be removed."""
    given: list[Path] = []
    remove = os.rmdir

    def late(path: Any, **options: Any) -> None:
        while given:
            (given.pop() / "late").write_text("written by a process that is about to end")
        remove(path, **options)

    monkeypatch.setattr(os, "rmdir", late)
    yield given
    assert not given, "something was removed"


def test_what_is_written_while_a_folder_is_removed_is_removed_too(writer: list[Path]) -> None:
    """Removing finds a file that was not there when it listed the folder, and begins again."""
    with ScratchFolder() as name:
        (Path(name) / "order").mkdir()
        writer.append(Path(name) / "order")
    assert not Path(name).exists()


def test_who_never_ends_is_not_waited_for(writer: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the patience the error says which folder it is."""
    monkeypatch.setattr(scratch, "_PATIENCE", -1.0)
    folder = ScratchFolder()
    (Path(folder.name) / "order").mkdir()
    writer.append(Path(folder.name) / "order")
    with pytest.raises(OSError, match="not empty"):
        folder.cleanup()
    folder.cleanup()
    assert not Path(folder.name).exists()
