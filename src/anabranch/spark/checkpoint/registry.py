"""The registry: the subscriptions that were registered while a site ran, durable beside what its file declares.

    registry/<number>.json          changes, in order: a subscription by its table, or null where it was cancelled
    registry/<number>.whole.json    all subscriptions at that point; nothing before it counts

A subscription is kept as the table that would declare it in SITE.toml, so there is one description of a subscription
and one reader of it, and exporting is printing.
A change is a new object under the next number, by an exclusive create: it is there when `change` returns, and of two
runs that would write, as they can in an object store, the later is told that it was overtaken.
Changes are taken up into a whole when there are as many of them as subscriptions, so starting costs what is
registered, and each subscription is written a few times only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint

_WHOLE = ".whole.json"
_FEWEST_CHANGES = 256
"""So many objects with changes are kept apart in any case."""


@dataclass(frozen=True, slots=True)
class RegisteredTable:
    """A registered subscription: the table that would declare it, and when it was registered."""

    table: Mapping[str, Any]
    at: str
    """A dateTime in UTC."""


class Registry:
    """The registry of a checkpoint, as one run reads and changes it; callers take turns."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._folder = checkpoint.registry
        self.tables: dict[str, RegisteredTable] = {}
        """By name: what is registered; only `change` changes it."""
        self._next = self._changes = self._objects = 0
        for name in self._counting():
            self._next = _number(name) + 1
            found = durable.unsealed(self._folder / name)
            if name.endswith(_WHOLE):
                self.tables, self._changes, self._objects = {}, 0, 0
            else:
                self._changes += len(found)
                self._objects += 1
            self._apply(found)

    def _counting(self) -> list[str]:
        """The objects that count: the newest whole, and the changes behind it."""
        # a write that was killed leaves a file without a number
        names = [name for name in durable.names(self._folder) if name[:1].isdecimal()]
        begin = max((place for place, name in enumerate(names) if name.endswith(_WHOLE)), default=0)
        return names[begin:]

    def change(self, changes: Mapping[str, RegisteredTable | None]) -> None:
        """Register subscriptions, or cancel them (None); returns when that is durable."""
        written = {name: None if each is None else _written(each) for name, each in changes.items()}
        self._create(f"{self._next:08}.json", written)
        self._apply(written)
        self._changes += len(written)
        self._objects += 1
        if self._objects > _FEWEST_CHANGES and self._changes > len(self.tables):
            self._take_up()

    def _apply(self, written: Mapping[str, Any]) -> None:
        for name, each in written.items():
            if each is None:
                self.tables.pop(name, None)
            else:
                self.tables[name] = RegisteredTable(each["table"], each["at"])

    def _take_up(self) -> None:
        """Write all subscriptions into one object, and remove those before it."""
        whole = f"{self._next:08}{_WHOLE}"
        self._create(whole, {name: _written(each) for name, each in self.tables.items()})
        durable.delete(self._folder, [name for name in durable.names(self._folder) if name < whole])
        self._changes = self._objects = 0

    def _create(self, name: str, value: Any) -> None:
        if not durable.create(self._folder / name, durable.sealed(value)):
            raise StateError(
                f"'{self._folder / name}' exists: another run has registered subscriptions on this checkpoint",
                hint="this run was overtaken; use the other one",
            )
        self._next += 1


def _written(each: RegisteredTable) -> dict[str, Any]:
    return {"table": dict(each.table), "at": each.at}


def _number(name: str) -> int:
    return int(name.partition(".")[0])
