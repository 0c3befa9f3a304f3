"""The simulated object store, behind the client that production uses: requests get lost, are late, or come twice.

The functions of obstore are replaced, so all of our own code above them is that of production.
Of each request there is an attempt, and where its answer does not come, another, as the client does it:

- it was lost on its way;
- it was carried out, and the answer was lost: the next attempt of a conditional put hears that the object exists;
- it is late, and is carried out when something else has been done meanwhile, perhaps when its sender is long dead;
- after a few attempts the client gives up, and says that it failed, whether it was carried out or not.

A list may fail in the middle.
In some worlds lists are stale, too: for a while they lack objects that were written, and name those that were deleted.
No store that we know does that any more, so a run may be refused there, by an error that names what it misses; but it
must not answer wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from anabranch.storage import objects
from simulation.world import World

T = TypeVar("T")

BUCKET = "s3://simulated"
_ATTEMPTS = 3
_LATEST = 400
"""So many steps later a late request is carried out at most."""
_STALE = 150
"""For so many steps a stale list does not know what was written or deleted."""


@dataclass(frozen=True, slots=True)
class Held:
    """An object."""

    data: bytes
    version: int
    """How many were written before it."""


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def bytes(self) -> bytes:
        return self._data


class SimulatedStore:
    """The objects of one bucket."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._objects: dict[str, Held] = {}
        self._gone: dict[str, tuple[Held, int]] = {}
        """What was deleted, and at which step."""
        self._written: dict[str, int] = {}
        """At which step an object was written."""
        self._late: list[tuple[int, Callable[[], object]]] = []
        self.delayed = 0
        """How many requests were late."""
        self._count = 0
        random = world.random
        self.loss = random.choice((0.0, 0.005, 0.03))
        """The chance of a request to fail in one of these ways."""
        self.is_stale = random.random() < 0.2
        self.trusted = ""
        """A prefix of keys whose lists are never stale: what others write, which is read in the order in which it is
        seen."""
        world.after_step.append(self._deliver)
        patch.setattr(objects, "_opened", lambda bucket: self)
        for name in ("get", "get_range", "head", "list", "list_with_delimiter", "put", "delete"):
            patch.setattr(obstore, name, getattr(self, f"_{name}"))

    def lay(self, key: str, data: bytes) -> None:
        """Let an object be there, which somebody else has written."""
        self._objects[key] = Held(data, self._count)
        self._count += 1

    # --- requests -----------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        """Carry late requests out whose time has come."""
        if self._late and any(at <= self._world.steps for at, _ in self._late):
            due = [each for at, each in self._late if at <= self._world.steps]
            self._late = [(at, each) for at, each in self._late if at > self._world.steps]
            for each in due:
                self._attempt(each)

    @staticmethod
    def _attempt(work: Callable[[], object]) -> None:
        """Carry something out whose answer nobody hears."""
        try:
            work()
        except (AlreadyExistsError, FileNotFoundError):
            return

    def _request(self, what: str, key: str, work: Callable[[], T], *, changes: bool) -> T:
        random = self._world.random
        for _ in range(_ATTEMPTS):
            if not self._world.step(what, key):
                return work()  # somebody looks from outside
            if random.random() >= self.loss:
                found = work()
                if changes:
                    self._world.step(f"{what}, answered", key)
                return found
            if not changes:
                continue
            match random.choice(("lost", "unanswered", "late")):
                case "unanswered":
                    self._attempt(work)
                case "late":
                    self.delayed += 1
                    self._late.append((self._world.steps + random.randint(1, _LATEST), work))
        raise GenericError(f"no answer to {what} {key}")

    # --- what production calls ----------------------------------------------------------------------------

    def _held(self, key: str) -> Held:
        if key not in self._objects:
            raise FileNotFoundError(key)
        return self._objects[key]

    def _get(self, store: object, key: str, *, options: Any = None) -> _Bytes:
        start = options["range"]["offset"] if options else 0
        return _Bytes(self._request("get", key, lambda: self._part(key, start, None), changes=False))

    def _get_range(self, store: object, key: str, *, start: int, length: int) -> bytes:
        return self._request("get", key, lambda: self._part(key, start, length), changes=False)

    def _part(self, key: str, start: int, length: int | None) -> bytes:
        data = self._held(key).data
        if start and start >= len(data):
            raise GenericError("the range is not satisfiable")
        return data[start:] if length is None else data[start : start + length]

    def _head(self, store: object, key: str) -> dict[str, Any]:
        return self._request("head", key, lambda: self._about(key, self._held(key)), changes=False)

    @staticmethod
    def _about(key: str, held: Held) -> dict[str, Any]:
        changed = datetime.fromtimestamp(1_800_000_000 + held.version, UTC)
        return {"path": key, "size": len(held.data), "e_tag": str(held.version), "last_modified": changed}

    def _put(self, store: object, key: str, data: Any, *, mode: str = "overwrite", **_: Any) -> None:
        given = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else data.read()

        def write() -> None:
            if mode == "create" and key in self._objects:
                raise AlreadyExistsError(key)
            self._objects[key] = Held(given, self._count)
            self._written[key] = self._world.steps
            self._count += 1

        self._request(f"put {mode}", key, write, changes=True)

    def _delete(self, store: object, keys: str | Sequence[str]) -> None:
        for key in [keys] if isinstance(keys, str) else keys:

            def remove(key: str = key) -> None:
                if (held := self._objects.pop(key, None)) is not None:
                    self._gone[key] = held, self._world.steps

            self._request("delete", key, remove, changes=True)

    # --- lists --------------------------------------------------------------------------------------------

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        """What a list of all below a folder says."""
        below = f"{folder}/" if folder else ""
        found = {key: held for key, held in self._objects.items() if key.startswith(below)}
        if self.is_stale and not self._world.is_looking and not (self.trusted and below.startswith(self.trusted)):
            since = self._world.steps - _STALE
            coin = self._world.random.random
            found = {key: each for key, each in found.items() if self._written.get(key, -1) < since or coin() < 0.7}
            for key, (held, at) in self._gone.items():
                if at >= since and key.startswith(below) and key not in self._objects and coin() < 0.3:
                    found[key] = held
        return [self._about(key, held) for key, held in sorted(found.items())]

    def _list(self, store: object, folder: str, *, offset: str | None = None, chunk_size: int = 1_000) -> Iterator[Any]:
        random = self._world.random
        listed = self._request("list", folder, lambda: self._listed(folder), changes=False)
        there = [each for each in listed if offset is None or each["path"] > offset]
        page = random.randint(1, 5)
        for start in range(0, len(there), page):
            if start and not self._world.is_looking and random.random() < self.loss:
                raise GenericError(f"no answer to the next page of {folder}")
            yield there[start : start + page]

    def _list_with_delimiter(self, store: object, folder: str) -> dict[str, Any]:
        listed = self._request("list", folder, lambda: self._listed(folder), changes=False)
        below = f"{folder}/" if folder else ""
        return {"objects": [each for each in listed if "/" not in each["path"].removeprefix(below)]}
