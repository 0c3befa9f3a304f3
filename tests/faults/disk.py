"""A disk that becomes full."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import IO, Any

import pytest


class FullFile(io.FileIO):
    """A file on a disk that becomes full in the middle of what is written."""

    def write(self, data: Any, /) -> int:
        super().write(bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


class Disk:
    """The disk as this process sees it; after so many writes below `folder` it is full, and stays so."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, writes: int) -> None:
        self._folder = folder
        self._left = writes
        self._open = Path.open
        self.refused: list[Path] = []
        """What could not be written; sinks and the next epoch are written at one time."""
        patch.setattr(Path, "open", lambda path, mode="r", *rest, **more: self.open(path, mode, *rest, **more))
        for name in ("link", "replace"):
            patch.setattr(os, name, self._naming(getattr(os, name)))

    def _has_room(self, path: Path) -> bool:
        if not path.is_relative_to(self._folder):
            return True
        self._left -= 1
        if self._left < 0:
            self.refused.append(path)
        return self._left >= 0

    def open(self, path: Path, mode: str = "r", *rest: Any, **more: Any) -> IO[Any]:
        if mode in ("r", "rb") or self._has_room(path):
            return self._open(path, mode, *rest, **more)
        return io.BufferedWriter(FullFile(path, mode.replace("b", "")))

    def _naming(self, real: Any) -> Any:
        def name(source: Path, target: Path) -> None:
            if not self._has_room(target):
                raise OSError(errno.ENOSPC, "No space left on device")
            real(source, target)

        return name
