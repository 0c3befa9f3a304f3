"""What regions are made of: bodies, and in them pieces, frames and chains of versions.

A *body* is a sequence of parts: *pieces* (whatever a stage makes of events), *frames* (a piece around a body of its
own, as an element's tags are) and *chains*, the versions of one region (LAWS 5.3), each with a body.
A `Scale` says what pieces come to, in a group; a body comes to the sum of its parts, a chain to that of the versions
that show.

Only `regions.py` changes them; others may look.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from anabranch.algebra.display.ordered import Ordered, V
from models.pipeline.qualifier import Qualifier

P = TypeVar("P")


class Scale(Protocol[P, V]):
    """What pieces come to."""

    @property
    def zero(self) -> V: ...

    def measure(self, piece: P) -> V:
        """What a piece adds."""

    def around(self, piece: P, inside: V) -> V:
        """What a frame adds whose body comes to `inside`."""

    def inset(self, piece: P) -> V:
        """What stands in a frame before its body, if that is not empty."""

    def is_empty(self, inside: V) -> bool:
        """Whether a frame around this is one around nothing."""

    def join(self, one: P, other: P) -> P | None:
        """Two pieces that follow each other as one; None where they are better kept apart."""

    def encode(self, piece: P) -> Any: ...
    def decode(self, data: Any) -> P: ...


class Body(Generic[P, V]):
    """A sequence of parts, by their handles."""

    __slots__ = ("owner", "parts")

    def __init__(self, owner: Version[P, V] | Frame[P, V] | None, zero: V) -> None:
        self.owner = owner
        self.parts: Ordered[int, V] = Ordered(zero)


class Version(Generic[P, V]):
    """What a region held from `start` until it was replaced."""

    __slots__ = ("body", "chain", "end", "shows", "start")

    def __init__(self, chain: Chain[P, V], start: Decimal, zero: V) -> None:
        self.chain = chain
        self.start = start
        self.end: Decimal | None = None
        """When it was replaced, or one that it stands in was."""
        self.shows = False
        self.body: Body[P, V] = Body(self, zero)


class Chain(Generic[P, V]):
    """The versions of one region that can still be asked for, newest first."""

    __slots__ = ("body", "context", "handle", "ids", "qualifier", "versions")

    def __init__(self, body: Body[P, V], handle: int, qualifier: Qualifier | None, context: Any) -> None:
        self.body = body
        self.handle = handle
        self.qualifier = qualifier
        self.context = context
        """What the stage has to know of the place where the region stands; plain data."""
        self.ids: set[str] = set()
        self.versions: list[Version[P, V]] = []


class Frame(Generic[P, V]):
    """A piece around a body."""

    __slots__ = ("body", "handle", "inside", "is_empty", "piece")

    def __init__(self, body: Body[P, V], handle: int, piece: P, zero: V) -> None:
        self.body = body
        self.handle = handle
        self.piece = piece
        self.is_empty = True
        self.inside: Body[P, V] = Body(self, zero)


Part: TypeAlias = P | Chain[P, V] | Frame[P, V]


class Lived(Generic[P, V]):
    """A version with its life as it is cut by those around it."""

    __slots__ = ("end", "start", "version")

    def __init__(self, version: Version[P, V], end: Decimal | None) -> None:
        self.version = version
        self.start = version.start
        self.end = end


def ended(body: Body[P, V]) -> Decimal | None:
    """When the life of a body ended, its own or that of one it stands in; None as long as all of them last."""
    ends: list[Decimal] = []
    while (owner := body.owner) is not None:
        if isinstance(owner, Version):
            if owner.end is not None:
                ends.append(owner.end)
            body = owner.chain.body
        else:
            body = owner.body
    return min(ends, default=None)


def is_kept(body: Body[P, V]) -> bool:
    """Whether a body, which may still be written, can be seen by anyone; one that can is not forgotten."""
    while (owner := body.owner) is not None:
        if isinstance(owner, Version):
            if owner not in owner.chain.versions:
                return False
            body = owner.chain.body
        else:
            body = owner.body
    return True


def is_in_the_past(chain: Chain[P, V]) -> bool:
    """Whether a region directly around this one was replaced, and has the same qualifier."""
    while chain.qualifier is not None and chain.qualifier.is_inner and isinstance(chain.body.owner, Version):
        if chain.body.owner.end is not None:
            return True
        chain = chain.body.owner.chain
    return False
