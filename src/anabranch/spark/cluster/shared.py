"""Whether a worker sees the checkpoint that the driver writes, on a disk that both share or in an object store.

Two machines may have a folder of the same name that is not the same folder.
So a worker reads the record of the run at work, which the driver has just written, and compares its digest.
It does so once in each process, before its first task, whenever a worker joins.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from functools import cache

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location

HINT = "workers need the checkpoint on a file system that all of them mount at this path, or at s3:// with keys"


@dataclass(frozen=True, slots=True)
class SharedRecord:
    """A file of the driver and its digest, which a worker must see alike."""

    file: Location
    digest: str

    @staticmethod
    def of(file: Location) -> SharedRecord:
        """The file as the driver sees it now."""
        return SharedRecord(file, durable.digest(file.read()))

    def difference(self) -> str | None:
        """What this process sees otherwise than the driver; None where all is well."""
        return _difference(self)

    def check(self) -> None:
        """Raise `StateError` in a process that does not see the same."""
        found = self.difference()
        if found is not None:
            raise StateError(found, hint=HINT)


@cache
def _difference(record: SharedRecord) -> str | None:
    where, folder = socket.gethostname(), record.file.parent
    try:
        found = durable.digest(record.file.read())
    except OSError as error:
        return f"the worker '{where}' cannot see '{folder}': {error.strerror or error}"
    return None if found == record.digest else f"the worker '{where}' has another folder '{folder}' than the driver"
