"""Folders of a process on its own disk, for what nobody needs when it has ended."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def own_folder() -> Path:
    """A new folder for this user only, which is removed with the process."""
    folder = Path(tempfile.mkdtemp(prefix="anabranch-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
