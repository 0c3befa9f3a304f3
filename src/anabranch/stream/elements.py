"""The elements of a stream: items, accents, punctuations, updates, tokens; and dead letters.

The words are those of the glossary; the wire forms are in `stream/reading/wire.py` (XML) and
`stream/reading/json_items.py` (JSON).
An element's place is its position in the stream: exact, so that it can be found again and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from anabranch.stream.affine import Affine
from anabranch.stream.description import Description
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Element, JsonMark
from anabranch.visible import visible_json

MESSAGE_BITS = 24
"""Where messages hold lines, a position has the byte in the message in so many bits, and the message's offset above."""
MESSAGE_LINES = "/lines"
"""The end of the partition's name there, so that a place can be told from its position."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of an element, in the language of its source.

    Of files: the name of the file, and the byte in its uncompressed data.
    Of a topic: `topic/number`, and the offset of the message; a file's name has no slash.
    """

    stream: str
    partition: str
    offset: int

    def __str__(self) -> str:
        where = self.shown()
        byte = f", byte {where['byte']}" if "byte" in where else ""
        unit = "offset" if "/" in self.partition else "byte"
        return f"{where['stream']}/{where['partition']} at {unit} {where['offset']}{byte}"

    def shown(self) -> dict[str, str | int]:
        """The place as shown to users: that of a line in a message has the byte in the message besides."""
        if not self.partition.endswith(MESSAGE_LINES):
            return {"stream": self.stream, "partition": self.partition, "offset": self.offset}
        offset, byte = divmod(self.offset, 1 << MESSAGE_BITS)
        partition = self.partition.removesuffix(MESSAGE_LINES)
        return {"stream": self.stream, "partition": partition, "offset": offset, "byte": byte}


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
    """An edit of an earlier region: its replacement (empty content deletes), or an insertion beside it.

    An upsert replaces the region of its target, or makes it where there is none (LAWS 5.9).
    """

    kind: Literal["replace", "before", "after", "upsert"]
    target: str
    id: str | None
    content: tuple[Child, ...]
    place: Place
    at: Decimal | None = None
    mark: JsonMark | None = None
    """What its content is in JSON (LAWS 7.5)."""


@dataclass(frozen=True, slots=True)
class StreamToken:
    """One token of an element or a region that comes piece by piece (LAWS 5.11; history paper, section 2).

    `open` and `close` are sE and eE, `append` is cD or whole nodes, `start` and `end` are those of a region.
    """

    kind: Literal["open", "append", "close", "start", "end"]
    region: str | None
    """The region whose token it is, also the one that starts or ends; None for the stream itself."""
    content: tuple[Child, ...]
    place: Place
    at: Decimal | None = None
    name: str | None = None
    """The name of the element that is closed, where it is given."""
    starts: Literal["mutable", "replace", "before", "after"] | None = None
    """What kind of region a `start` begins."""
    target: str | None = None
    """The region that a started one stands in (`mutable`; None is the stream itself), replaces, or stands beside."""


StreamElement: TypeAlias = Item | Accent | Punctuation | Region | Update | StreamToken


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
        others = [{**place.shown(), "raw": raw} for place, raw in self.others] or None
        optional = {"code": self.code, "subscription": self.subscription, "others": others, "values": self.values}
        given = {key: value for key, value in optional.items() if value is not None}
        line = {**self.place.shown(), "reason": self.reason, "raw": self.raw, **given}
        return visible_json(line)
