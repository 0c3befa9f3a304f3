"""Plans in files.

Tasks get a plan by its file's path and digest, and Python workers cache it; in the closure of each epoch it would be
sent and unpacked again and again.
A file is named after its digest, so epochs with the same plan share it, and a task works with exactly the plan it was
given or not at all.
Subscriptions are in files of their own, some hundred together by their numbers: one that comes or goes changes one of
these *blocks*, and the others stay unchanged, however many they are.
The plan of an epoch is recorded before the epoch runs (`Plans`), so that a repeated epoch does the same.
The files are JSON: what a user wrote is never unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, TypeAlias

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.storage import Location
from anabranch.stream.plain import from_plain, to_plain

_VERSION = 3
"""Version 1 did not have the kinds of queries, and version 2 described streams in another way."""
_BLOCK = 500
_FIELDS = attrgetter(*(each.name for each in fields(Registration)))
"""A subscription as a row of a block."""

_Block: TypeAlias = tuple[Registration, ...]


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan on disk; equal values hold equal plans."""

    path: Location
    digest: str

    @staticmethod
    def save(plan: Plan, folder: Location) -> PlanFile:
        known: dict[str, Any] = {"version": _VERSION, **to_plain(replace(plan, subscriptions=()))}
        blocks = groupby(plan.subscriptions, key=lambda each: each.id // _BLOCK)
        known["subscriptions"] = [_saved_block(folder, number, tuple(block)) for number, block in blocks]
        digest = _saved(folder, json.dumps(known).encode(), "plan")
        return PlanFile(_path(folder, digest, "plan"), digest)

    def load(self) -> Plan:
        return _load(self)

    @property
    def blocks(self) -> list[Location]:
        """The files that it refers to."""
        return [_path(self.path.parent, digest, "block") for digest in _head(self)["subscriptions"]]


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of all retained epochs."""

    folder: Location

    def of(self, epoch: int) -> PlanFile | None:
        """The plan that an epoch was begun with, None if it was not begun."""
        path = self._pointer(epoch)
        if not path.exists():
            return None
        found = durable.unsealed(path)["plan"]
        return PlanFile(self.folder / f"{found[:32]}.plan", found)

    def ran(self, epoch: int) -> Plan:
        """The plan of a committed epoch."""
        file = self.of(epoch)
        assert file is not None, "an epoch with a manifest has a plan"
        return file.load()

    def begin(self, epoch: int, plan: Plan) -> PlanFile:
        """Record the plan of an epoch."""
        file = PlanFile.save(plan, self.folder)
        self.again(epoch, file)
        return file

    def again(self, epoch: int, file: PlanFile) -> None:
        """Record an existing plan for another epoch."""
        durable.replace(self._pointer(epoch), durable.sealed({"plan": file.digest}))

    def epochs(self) -> list[int]:
        """The epochs that were begun and are retained, in order."""
        return [int(name.removesuffix(".json")) for name in self.folder.names() if name.endswith(".json")]

    def newest(self) -> Plan | None:
        """The plan of the newest epoch that was begun."""
        epochs = self.epochs()
        file = self.of(epochs[-1]) if epochs else None
        return None if file is None else file.load()

    def newest_first(self, until: int) -> Iterator[Plan]:
        """All plans that differ from their neighbours, from that of epoch `until` back."""
        before: PlanFile | None = None
        for epoch in reversed(self.epochs()):
            file = self.of(epoch) if epoch <= until else None
            if file is not None and file != before:
                yield file.load()
            before = file

    def drop(self, until: int) -> None:
        """Remove the plans of the epochs before `until`, unless a later one has them."""
        for epoch in self.epochs():
            if epoch < until:
                self._pointer(epoch).delete()
        kept = {file for epoch in self.epochs() if (file := self.of(epoch))}
        named = {path.name for file in kept for path in (file.path, *file.blocks)}
        there = (name for name in self.folder.names() if name.endswith((".plan", ".block")))
        self.folder.delete_all([name for name in there if name not in named])

    def _pointer(self, epoch: int) -> Location:
        return self.folder / f"{epoch:08}.json"


def _path(folder: Location, digest: str, kind: str) -> Location:
    return folder / f"{digest[:32]}.{kind}"


def _saved(folder: Location, data: bytes, kind: str) -> str:
    """Write a file unless it exists; gives its digest."""
    digest = durable.digest(data)
    path = _path(folder, digest, kind)
    if not path.exists():
        durable.replace(path, data)
    return digest


_written: dict[tuple[Location, int], tuple[_Block, str]] = {}
"""The blocks that this process wrote last, by folder and number."""
_blocks: dict[str, _Block] = {}
"""The blocks that it wrote or read, by digest; so a plan that is read shares the objects of the one written."""
_MOST_BLOCKS = 2_000


def _saved_block(folder: Location, number: int, block: _Block) -> str:
    before = _written.get((folder, number))
    if before is not None and before[0] == block and _path(folder, before[1], "block").exists():
        return before[1]
    digest = _saved(folder, json.dumps(list(map(_FIELDS, block))).encode(), "block")
    _written[folder, number] = block, digest
    _keep(digest, block)
    return digest


def _keep(digest: str, block: _Block) -> None:
    if len(_blocks) >= _MOST_BLOCKS:
        _blocks.clear()
    _blocks[digest] = block


@lru_cache(maxsize=8)
def _load(file: PlanFile) -> Plan:
    found = _head(file)
    named = found.pop("subscriptions")
    blocks = (_load_block(_path(file.path.parent, digest, "block"), digest) for digest in named)
    plan = from_plain(Plan, {**found, "subscriptions": ()})
    return replace(plan, subscriptions=tuple(chain.from_iterable(blocks)))


def _head(file: PlanFile) -> dict[str, Any]:
    """A plan with the digests of its blocks in place of its subscriptions."""
    found: dict[str, Any] = json.loads(_read(file.path, file.digest))
    if (version := found.pop("version", 1)) != _VERSION:
        raise StateError(
            f"the plan '{file.path}' is of version {version}, and this release reads version {_VERSION}",
            hint="use the release that wrote it, or begin with a new checkpoint",
        )
    return found


def _load_block(path: Location, digest: str) -> _Block:
    if digest not in _blocks:
        _keep(digest, tuple(Registration(*_with_tuples(each)) for each in json.loads(_read(path, digest))))
    return _blocks[digest]


def _with_tuples(values: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in values)


def _read(path: Location, digest: str) -> bytes:
    data = durable.read(path)
    if durable.digest(data) != digest:
        raise StateError(f"the plan '{path}' is damaged")
    return data
