"""The files of streams in tests, which are on a disk."""

from __future__ import annotations

from pathlib import Path

from anabranch.storage import Where


def on_disk(where: Where) -> Path:
    """A location as a path."""
    return Path(str(where))
