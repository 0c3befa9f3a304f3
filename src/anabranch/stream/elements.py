"""The elements of a stream: items, accents, punctuations, updates; and dead letters.

The words are those of the glossary; the wire forms are in `stream/reading/wire.py` (XML) and
`stream/reading/json_items.py` (JSON).
An element's place is its position in the stream: exact, so that it can be found again and replayed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from anabranch.stream.affine import Affine
from anabranch.stream.description import Description
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Element, JsonMark
from anabranch.visible import visible_json


@dataclass(frozen=True, slots=True)
class Place:
    """The position of an element: stream, partition, and byte offset (of the uncompressed data)."""

    stream: str
    partition: str
    offset: int

    def __str__(self) -> str:
        return f"{self.stream}/{self.partition} at byte {self.offset}"


@dataclass(frozen=True, slots=True)
class Item:
    """One tree below the stream's root; `at` is its time where the wire gave one (LAWS 1.3)."""

    tree: Element
    place: Place
    at: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Add:
    path: Path
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    path: Path


@dataclass(frozen=True, slots=True)
class Alter:
    path: Path
    by: Affine


@dataclass(frozen=True, slots=True)
class Accent:
    """From here on, the items described have a path, no longer have it, or have it in another unit."""

    where: Description
    evolution: Add | Drop | Alter
    place: Place
    at: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Punctuation:
    """No item that fulfils `where` follows; with `at` and no `where` it is a heartbeat (LAWS 1.3)."""

    where: Description | None
    place: Place
    at: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """A mutable part that stands between items; a mutable part inside an item stays in its tree."""

    id: str
    content: tuple[Child, ...]
    place: Place
    at: Decimal | None = None
    mark: JsonMark | None = None
    """What its content is in JSON (LAWS 7.5)."""


@dataclass(frozen=True, slots=True)
class Update:
    """An edit of an earlier region: its replacement (empty content deletes), or an insertion beside it."""

    kind: Literal["replace", "before", "after"]
    target: str
    id: str | None
    content: tuple[Child, ...]
    place: Place
    at: Decimal | None = None
    mark: JsonMark | None = None
    """What its content is in JSON (LAWS 7.5)."""


StreamElement: TypeAlias = Item | Accent | Punctuation | Region | Update


LONGEST_RAW = 2_000
"""The most characters of its text that a dead letter keeps."""
MOST_NAMED = 10
"""The most items that a dead letter names."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """An accent that could not be read concerned this path, for these items: its state is unknown."""

    path: Path
    where: Description


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An element or result that was set aside, with the reason; `raw` is its text, cut to a readable length."""

    place: Place
    reason: str
    raw: str
    code: str | None = None
    subscription: str | None = None
    """The subscription whose evaluation failed (LAWS 2.4); None where the input itself is bad (LAWS 2.5)."""
    doubts: tuple[Doubt, ...] = ()
    """The paths that are unknown from here on, because this was an accent (LAWS 4.5)."""
    others: tuple[tuple[Place, str], ...] = ()
    """Where a window or pair failed because of several items: those after the first, with their texts."""
    values: int | None = None
    """The number of failed values, where they belong to more items than are named."""

    def to_json(self) -> str:
        """The line as shown to users."""
        others = [{**asdict(place), "raw": raw} for place, raw in self.others] or None
        optional = {"code": self.code, "subscription": self.subscription, "others": others, "values": self.values}
        given = {key: value for key, value in optional.items() if value is not None}
        line = {**asdict(self.place), "reason": self.reason, "raw": self.raw, **given}
        return visible_json(line)
