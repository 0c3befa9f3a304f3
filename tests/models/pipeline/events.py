"""Events: update streams as the history paper has them (section 2), one token at a time.

Regular events are an element's start and end and what stands in it; `id` says which region each belongs to, so that
regions may be interleaved.
A region opens with a `StartRegion` of one of four kinds and closes with an `EndRegion`: a *mutable* part of the region
it stands in, or an update of an earlier one, its *replace*ment or an insertion *before* or *after* it.
Several virtual streams may share one sequence of events; an id says which of them it belongs to, and each begins with
a region of its own (`StartStream`).

Beyond the paper: elements carry their attributes, `Other` stands for comments and instructions, computed values differ
from text, all regions may carry the qualifier that section 7 gives replacements, and `Now` says that time has moved to
the time of the events behind it (LAWS 1.3).

A sequence is well-formed for an id if its elements nest (`is_well_formed`); a stream is, if each region is, and updates
are of regions that have passed: closed ones, or for `before` at least begun ones (`Judge`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

from anabranch.stream.tree import Name
from models.pipeline.qualifier import Qualifier

Kind: TypeAlias = Literal["mutable", "replace", "before", "after"]
Namespaces: TypeAlias = tuple[tuple[str, str], ...]
Attributes: TypeAlias = tuple[tuple[Name, str], ...]

_LETTERS = {"mutable": "M", "replace": "R", "before": "B", "after": "A"}


class Id(NamedTuple):
    """A region of a virtual stream."""

    stream: int
    name: str

    @property
    def is_spelled(self) -> bool:
        """Whether the wire has it; an update without an id has one here that no other update can name."""
        return not self.name.startswith("\0")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class StartStream:
    """`sS`: a virtual stream begins, whose outermost region is `id`."""

    id: Id

    def __str__(self) -> str:
        return f"sS({self.id.stream},{self.id})"


@dataclass(frozen=True, slots=True)
class EndStream:
    """`eS`"""

    id: Id

    def __str__(self) -> str:
        return f"eS({self.id.stream},{self.id})"


@dataclass(frozen=True, slots=True)
class StartElement:
    """`sE`; `namespaces` are the declarations written on it."""

    id: Id
    name: Name
    attributes: Attributes = ()
    namespaces: Namespaces = ()

    def __str__(self) -> str:
        return f"sE({self.id},{self.name})"


@dataclass(frozen=True, slots=True)
class EndElement:
    """`eE`"""

    id: Id
    name: Name

    def __str__(self) -> str:
        return f"eE({self.id},{self.name})"


@dataclass(frozen=True, slots=True)
class Characters:
    """`cD`; where it is a computed value, a space comes between it and another one beside it."""

    id: Id
    text: str
    is_value: bool = False

    def __str__(self) -> str:
        return f"cD({self.id},{self.text})"


@dataclass(frozen=True, slots=True)
class Other:
    """A comment, or with a target a processing instruction."""

    id: Id
    text: str
    target: str | None = None

    def __str__(self) -> str:
        return f"other({self.id},{self.text})"


@dataclass(frozen=True, slots=True)
class StartRegion:
    """`sM`, `sR`, `sB`, `sA`: region `id` begins, in or at the region `of`."""

    kind: Kind
    of: Id
    id: Id
    qualifier: Qualifier | None = None
    is_made: bool = False
    """Whether a stage has put it around some content; it may stand wherever that may."""

    def __str__(self) -> str:
        told = "" if self.qualifier is None else f",{self.qualifier}"
        return f"s{_LETTERS[self.kind]}({self.of},{self.id}{told})"


@dataclass(frozen=True, slots=True)
class EndRegion:
    """`eM`, `eR`, `eB`, `eA`"""

    kind: Kind
    of: Id
    id: Id

    def __str__(self) -> str:
        return f"e{_LETTERS[self.kind]}({self.of},{self.id})"


@dataclass(frozen=True, slots=True)
class Now:
    """What follows has this time."""

    at: Decimal

    def __str__(self) -> str:
        return f"now({self.at:f})"


Content: TypeAlias = StartElement | EndElement | Characters | Other
"""Regular events, which a state transformer sees; all others concern where they stand."""
Event: TypeAlias = Content | StartStream | EndStream | StartRegion | EndRegion | Now


def is_well_formed(events: Iterable[Event], id: Id) -> bool:
    """Whether the elements that belong to a region nest; events of other regions do not matter."""
    open: list[Name] = []
    for event in events:
        match event:
            case StartElement(of, name) if of == id:
                open.append(name)
            case EndElement(of, name) if of == id:
                if not open or open.pop() != name:
                    return False
            case _:
                pass
    return not open


class Judge:
    """Says what is wrong with a stream of events, one by one; an event that is wrong is as if it had not come.

    Ids are kept as long as they can be named.
    """

    def __init__(self) -> None:
        self._passed: set[Id] = set()
        self._open: dict[Id, tuple[StartStream | StartRegion, list[Name]]] = {}
        self._mutable: set[Id] = set()

    def take(self, event: Event) -> str | None:
        """The reason why an event cannot stand here, None if it can."""
        match event:
            case StartStream(id):
                return self._begin(event, id)
            case EndStream(id):
                opened = self._open.get(id)
                return self._end(id) if opened and opened[0] == StartStream(id) else f"no stream '{id}' is open"
            case StartRegion(kind, of, id):
                if of not in self._passed or of.stream != id.stream:
                    return f"no region '{of}' has passed"
                if kind == "mutable" and of not in self._open:
                    return f"the region '{of}' is closed"
                if kind in ("replace", "after") and of in self._open:
                    return f"the region '{of}' is still open"
                return self._begin(event, id)
            case EndRegion(kind, of, id):
                match self._open.get(id):
                    case (StartRegion(begun, where), _) if (begun, where) == (kind, of):
                        return self._end(id)
                    case _:
                        return f"no such region '{id}' is open"
            case Now():
                return None
            case _ if event.id not in self._open:
                return f"no region '{event.id}' is open"
            case StartElement(id, name):
                self._open[id][1].append(name)
            case EndElement(id, name):
                names = self._open[id][1]
                if not names or names[-1] != name:
                    return f"no '{name}' is open in '{id}'"
                names.pop()
            case _:
                pass
        return None

    def _begin(self, event: StartStream | StartRegion, id: Id) -> str | None:
        if id in self._open:
            return f"the region '{id}' is still open"
        if id in self._mutable:
            return f"'{id}' is the id of a mutable region"
        if isinstance(event, StartStream) or event.kind == "mutable":
            self._mutable.add(id)
        self._passed.add(id)
        self._open[id] = (event, [])
        return None

    def _end(self, id: Id) -> str | None:
        names = self._open[id][1]
        if names:
            return f"'{names[-1]}' is still open in '{id}'"
        del self._open[id]
        return None
