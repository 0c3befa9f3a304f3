"""The idempotency keys that a spool remembers, so that a request that is repeated counts once.

A key is durable with the bytes of its request, in the footer of their file.
When files are removed because they were read, the keys of all of them go into a snapshot first: a file of its own,
numbered like them, of which only the newest counts; whoever wrote it knew all keys up to its number.
So after a crash the keys are those of the newest snapshot and of the files that are there.

They are remembered for a day, and of one stream the latest hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.spool.files import FileName, KeyedRequest
from anabranch.storage import Location
from anabranch.stream.plain import from_plain, to_plain

MOST_KEYS = 100_000
"""The number of keys that are remembered of one stream."""
KEY_SECONDS = 86_400
"""The seconds for which a key is remembered."""
_PREFIX = "keys-"


class RememberedKeys:
    """The keys of the latest requests of a stream, the oldest first; its spool guards it."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._held: dict[str, KeyedRequest] = {}

    def __len__(self) -> int:
        return len(self._held)

    def find(self, key: str, now: int) -> KeyedRequest | None:
        """The request that was accepted under a key, if that is remembered; `now` is in microseconds."""
        found = self._held.get(key)
        return found if found is not None and found.moment > _oldest(now) else None

    def add(self, requests: Iterable[KeyedRequest], now: int) -> None:
        """Remember requests in the order in which they were accepted, and forget old ones."""
        for each in requests:
            self._held.pop(each.key, None)
            self._held[each.key] = each
        while self._held:
            first = next(iter(self._held))
            if len(self._held) <= self._most and self._held[first].moment > _oldest(now):
                break
            del self._held[first]

    def all(self) -> list[KeyedRequest]:
        """The requests that are remembered, in order."""
        return list(self._held.values())


def _oldest(now: int) -> int:
    return now - KEY_SECONDS * 1_000_000


def save(folder: Location, position: int, requests: list[KeyedRequest]) -> None:
    """Write a snapshot, by the position up to which the stream was read, and remove those before it."""
    fresh = f"{_PREFIX}{FileName(position)}"
    found = _snapshots(folder)
    if fresh not in found:
        durable.create(folder / fresh, durable.sealed([to_plain(each) for each in requests]))
    durable.delete(folder, [each for each in found if each < fresh])


def load(folder: Location) -> list[KeyedRequest]:
    """The requests of the newest snapshot."""
    while found := _snapshots(folder):
        try:
            return [from_plain(KeyedRequest, each) for each in durable.unsealed(folder / found[-1])]
        except StateError:
            if found[-1] in _snapshots(folder):
                raise
            # else a run that was overtaken has just replaced it
    return []


def _snapshots(folder: Location) -> list[str]:
    return [each for each in durable.names(folder) if each.startswith(_PREFIX)]
