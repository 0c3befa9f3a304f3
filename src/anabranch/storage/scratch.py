"""Temporary folders of runs, removed when a run has ended or was interrupted.

A streaming query that was stopped in a hurry has a process of Spark that plans its source, and that finishes what it is
writing: so the folder may gain a file while it is being removed, which is then begun again.
"""

from __future__ import annotations

import errno
from tempfile import TemporaryDirectory
from time import monotonic, sleep

_PATIENCE = 10.0
"""The seconds in which whoever still writes must be done."""
_PAUSE = 0.02


class ScratchFolder(TemporaryDirectory[str]):
    """A temporary folder for a run; entered, it gives its name."""

    def __init__(self) -> None:
        super().__init__(prefix="anabranch-")

    def cleanup(self) -> None:
        """Remove the folder with all that is in it, also what comes into it meanwhile."""
        until = monotonic() + _PATIENCE
        while True:
            try:
                return super().cleanup()
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or monotonic() > until:
                    raise
            sleep(_PAUSE)
