"""What grows in an object store: a folder with a part for each epoch that adds something.

    vela.xml/3/00000012.xml    what epoch 12 has added to the answer of subscription 3, which is called vela
    dead.jsonl/00000012.jsonl  the dead letters of epoch 12

No object is appended to, moved or renamed: a query that is changed is another subscription, with a folder of its own.
The name of a part and its bytes follow from the epoch, so an epoch that is delivered again, by whatever run, writes the
same again; the position is the newest part.
The record in the checkpoint only says that the folder is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location


class GrowingParts:
    """A folder in an object store that grows by whole epochs."""

    def __init__(self, path: Location, record: Location) -> None:
        self.path = path
        self._record = record
        self._suffix = PurePosixPath(path.name).suffix
        there = durable.names(path, below=True)
        self._known = durable.exists(record)
        if there and not self._known:
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it")
        self._owners = {name.rpartition("/")[0] for name in there}
        """The folders of subscriptions that have a part."""
        self.next = max((int(PurePosixPath(name).stem) for name in there), default=-1) + 1
        """The next epoch to deliver."""

    def begins(self, owner: int) -> bool:
        """Whether the folder holds nothing of the answer of `owner` yet."""
        return _folder(owner) not in self._owners

    def append(self, owner: int, epoch: int, texts: Iterable[str]) -> None:
        """Add the results of an epoch for `owner`."""
        if not self._known:
            durable.replace(self._record, durable.sealed({"path": str(self.path)}))  # from now on it is ours
            self._known = True
        folder = _folder(owner)
        part = (self.path / folder if folder else self.path) / f"{epoch:08}{self._suffix}"
        with durable.writing(part), part.writer() as writer:
            for text in texts:
                writer.write(text.encode())
        self._owners.add(folder)
        self.next = max(self.next, epoch + 1)


def _folder(owner: int) -> str:
    """The folder of a subscription; dead letters and late items are nobody's."""
    return str(owner) if owner >= 0 else ""
