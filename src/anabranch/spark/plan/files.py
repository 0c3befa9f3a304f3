"""Plans in files.

Tasks get a plan by its file's path and digest, and Python workers cache it; in the closure of each epoch it would be
sent and unpacked again and again.
A file is named after its digest, so epochs with the same plan share it, and a task works with exactly the plan it was
given or not at all.
Subscriptions are in files of their own, some hundred together by their numbers: one that comes or goes changes one of
these *blocks*, and the others stay unchanged, however many they are.
The plan of an epoch is durable before the epoch runs, and its manifest names it.
Every run has a folder of its own for its plans, from which only it and later runs remove anything
(`spark/checkpoint/runs.py`).
The files are JSON: what a user wrote is never unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, TypeAlias

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.storage import Location
from anabranch.stream.plain import from_plain, to_plain

_VERSION = 4
_READ = (3, 4)
"""Version 1 did not have the kinds of queries, version 2 described streams in another way, and version 3 had no caps:
there subscriptions may take as much as they like.
"""
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

    @staticmethod
    def named(plans: Location, name: str) -> PlanFile:
        """The plan that a manifest names."""
        run, _, digest = name.partition("/")
        return PlanFile(_path(plans / run, digest, "plan"), digest)

    @property
    def name(self) -> str:
        """Its name in a manifest."""
        return f"{self.path.parent.name}/{self.digest}"

    def load(self) -> Plan:
        return _load(self)

    @property
    def blocks(self) -> list[Location]:
        """The files that it refers to."""
        return [_path(self.path.parent, digest, "block") for digest in _head(self)["subscriptions"]]


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of the committed epochs that are retained."""

    checkpoint: Checkpoint

    @property
    def _manifests(self) -> Manifests:
        return Manifests(self.checkpoint.manifests)

    def file(self, manifest: Manifest) -> PlanFile:
        """The plan of an epoch."""
        return PlanFile.named(self.checkpoint.plans, manifest.plan)

    def of(self, epoch: int) -> PlanFile:
        """The plan that an epoch ran with."""
        return self.file(self._manifests.load(epoch))

    def ran(self, epoch: int) -> Plan:
        """The plan that an epoch ran with, loaded."""
        return self.of(epoch).load()

    def newest(self) -> Plan | None:
        """The plan of the newest epoch."""
        newest = self._manifests.newest()
        return None if newest is None else self.file(newest).load()

    def newest_first(self) -> Iterator[Plan]:
        """All plans that differ from their neighbours, from that of the newest epoch back."""
        before: PlanFile | None = None
        for epoch in reversed(self._manifests.epochs()):
            file = self.of(epoch)
            if file != before:
                yield file.load()
            before = file

    def drop(self, former: Collection[str], retained: Collection[str]) -> None:
        """Remove plans, by their names in manifests that were dropped, unless one that is retained has them."""
        kept = [PlanFile.named(self.checkpoint.plans, each) for each in retained]
        named = {path for file in kept for path in (file.path, *file.blocks)}
        for name in set(former) - set(retained):
            file = PlanFile.named(self.checkpoint.plans, name)
            if durable.exists(file.path):
                left = [path.name for path in (*file.blocks, file.path) if path not in named]
                durable.delete(file.path.parent, left)


def folder_of(checkpoint: Checkpoint, run: int) -> Location:
    """Where a run saves its plans."""
    return checkpoint.plans / f"{run:06}"


def _path(folder: Location, digest: str, kind: str) -> Location:
    return folder / f"{digest[:32]}.{kind}"


def _saved(folder: Location, data: bytes, kind: str) -> str:
    """Write a file unless it exists; gives its digest."""
    digest = durable.digest(data)
    path = _path(folder, digest, kind)
    if not durable.exists(path):
        durable.replace(path, data)
    return digest


_written: dict[tuple[Location, int], tuple[_Block, str]] = {}
"""The blocks that this process wrote last, by folder and number."""
_blocks: dict[str, _Block] = {}
"""The blocks that it used last, by digest; so a plan that is read shares the objects of the one written.

Where subscriptions come and go, each epoch has new blocks, and the old ones are never used again.
"""
_FEW_BLOCKS = 32
"""So many more blocks are kept than two plans have."""


def _saved_block(folder: Location, number: int, block: _Block) -> str:
    before = _written.get((folder, number))
    if before is not None and before[0] == block and durable.exists(_path(folder, before[1], "block")):
        return before[1]
    digest = _saved(folder, json.dumps(list(map(_FIELDS, block))).encode(), "block")
    _written[folder, number] = block, digest
    _blocks[digest] = block
    return digest


def _forget_blocks(of_plan: int) -> None:
    """Forget the blocks that were not used for long, where a plan has so many."""
    for digest in list(islice(_blocks, max(0, len(_blocks) - 2 * of_plan - _FEW_BLOCKS))):
        _blocks.pop(digest, None)  # another thread may have done so


@lru_cache(maxsize=8)
def _load(file: PlanFile) -> Plan:
    found = _head(file)
    named = found.pop("subscriptions")
    blocks = (_load_block(_path(file.path.parent, digest, "block"), digest) for digest in named)
    plan = from_plain(Plan, {**found, "subscriptions": ()})
    loaded = replace(plan, subscriptions=tuple(chain.from_iterable(blocks)))
    _forget_blocks(len(named))
    return loaded


def _head(file: PlanFile) -> dict[str, Any]:
    """A plan with the digests of its blocks in place of its subscriptions."""
    found: dict[str, Any] = json.loads(_read(file.path, file.digest))
    if (version := found.pop("version", 1)) not in _READ:
        raise StateError(
            f"the plan '{file.path}' is of version {version}, and this release reads versions {_READ[0]} to {_VERSION}",
            hint="use the release that wrote it, or begin with a new checkpoint",
        )
    return found


def _load_block(path: Location, digest: str) -> _Block:
    block = _blocks.pop(digest, None)
    if block is None:
        block = tuple(Registration(*_with_tuples(each)) for each in json.loads(_read(path, digest)))
    _blocks[digest] = block  # behind all others
    return block


def _with_tuples(values: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in values)


def _read(path: Location, digest: str) -> bytes:
    data = durable.read(path)
    if durable.digest(data) != digest:
        raise StateError(f"the plan '{path}' is damaged")
    return data
