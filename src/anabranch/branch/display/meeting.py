"""Which entries of two streams meet: an index of their keys (`keys.py`).

An entry whose keys cannot be found, because looking for them fails, meets all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

ANY = None
"""The key of an entry that may meet any other."""


class Meeting:
    """The keys of the entries of one stream (`own`) and of another; who finds them says so by `put`."""

    def __init__(self) -> None:
        self.own = Keyed()
        self.other = Keyed()

    def met_by_other(self, entry: int) -> set[int]:
        """The own entries that an entry of the other stream meets."""
        return self.own.with_any(self.other.keys.get(entry, ()))

    def met_by_own(self, entry: int) -> set[int]:
        """The entries of the other stream that an own entry meets."""
        return self.other.with_any(self.own.keys.get(entry, ()))


class Keyed:
    """The keys of some entries, and the entries of each key."""

    def __init__(self) -> None:
        self.keys: dict[int, tuple[str | None, ...]] = {}
        self._entries: defaultdict[str | None, set[int]] = defaultdict(set)

    def put(self, entry: int, keys: Iterable[str | None]) -> None:
        """The keys of an entry; none for one that is gone."""
        for key in self.keys.pop(entry, ()):
            self._entries[key].discard(entry)
            if not self._entries[key]:
                del self._entries[key]
        found = tuple(dict.fromkeys(keys))
        if found:
            self.keys[entry] = found
        for key in found:
            self._entries[key].add(entry)

    def with_any(self, keys: Iterable[str | None]) -> set[int]:
        """The entries with one of these keys, or with any."""
        if ANY in keys:
            return set(self.keys)
        found: set[int] = set()
        for key in (*keys, ANY) if keys else ():
            found |= self._entries.get(key, set())
        return found
