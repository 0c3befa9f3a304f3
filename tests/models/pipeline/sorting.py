"""Where and order by: those results of a stream that fulfil a condition, in the order of a key, unblocked.

Law (LAWS 2.3): at every moment the results that show and fulfil the condition, those without a key first, then NaN,
numbers by value and text by code point, upwards or downwards; those with equal keys in the order of the stream.
A result is put where it belongs as soon as it is complete, moves when its key changes, vanishes when it fulfils the
condition no more, and comes back (history paper, section 4, query 1): what comes out are insertions beside results that
are out already, replacements, and deletions.

What a sorted answer becomes does not follow from the answer alone (LAWS 5.6): the state is the multiset of the keys,
in order, with the place of each result for equal ones.
Without a key all are equal, and stand in the order of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias

from anabranch.stream.tree import Name
from anabranch.values.numbers import exact_number
from models.pipeline.bodies import Frame
from models.pipeline.events import (
    Characters,
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    Kind,
    StartElement,
    StartRegion,
    StartStream,
)
from models.pipeline.results import Arranged, ByResult
from models.pipeline.wrapper import Place

Rank: TypeAlias = tuple[int, Decimal | str]
Key: TypeAlias = Callable[[Sequence[Content]], str | None]
"""The key of a result, from its events; None where it has none."""
Condition: TypeAlias = Callable[[Sequence[Content]], bool]


def rank(key: str | None) -> Rank:
    """Where a key sorts (LAWS 2.3)."""
    if key is None:
        return 0, ""
    number = exact_number(key)
    if number is None:
        return 3, key
    return (1, "") if number.is_nan() else (2, number)


def child_text(name: Name) -> Key:
    """The text of a result's first child of a name."""

    def key(events: Sequence[Content]) -> str | None:
        depth = 0
        found: str | None = None
        for event in events:
            match event:
                case StartElement():
                    if depth == 1 and event.name == name:
                        found = ""
                    depth += 1
                case EndElement():
                    depth -= 1
                    if depth == 1 and found is not None:
                        return found
                case Characters(_, text) if found is not None:
                    found += text
                case _:
                    pass
        return None

    return key


class Sorted(ByResult):
    """The results of an update stream that fulfil `where`, in the order of their keys, as an update stream."""

    def __init__(
        self, key: Key | None = None, where: Condition | None = None, descending: bool = False, stream: int = 0
    ) -> None:
        super().__init__(stream)
        self._key = key
        self._where = where
        self._arranged = Arranged(self.results, descending)
        self._names: dict[int, str] = {}
        """The regions that the results are in, on the way out."""
        self._made = 0
        self._end = Id(stream, "end")

    def keeps(self, event: Content) -> bool:
        return True

    def passing(
        self, event: StartStream | EndStream | StartRegion | EndRegion, place: Place[Content, int]
    ) -> Iterable[Event]:
        match event:
            case StartStream(root):
                return [event, *self._region("mutable", root, self._end, ())]
            case EndStream():
                return [*self.settled(), event]
            case _:
                return ()

    def settled(self) -> Iterable[Event]:
        given: list[Event] = []
        pending = list(self.results.changed())
        coming: list[tuple[Frame[Content, int], Rank, list[Content]]] = []
        # whatever changes is taken out before anything is put in: places are compared with those that show
        for result, shows in pending:
            before = self._arranged.ranks.get(result.handle)
            events = self.results.events(result) if shows else []
            after = self._rank(events) if shows else None
            if before is not None and before != after:
                self._arranged.drop(result.handle)
                given += self._rewrite(result.handle, ())
                del self._names[result.handle]
            elif before is not None:
                given += self._rewrite(result.handle, events)
            if after is not None and before != after:
                coming.append((result, after, events))
        for result, after, events in coming:
            behind = self._arranged.put(result.handle, after)
            self._made += 1
            self._names[result.handle] = name = f"result {self._made}"
            anchor = self._end if behind is None else Id(self.stream, self._names[behind])
            given += self._region("before", anchor, Id(self.stream, name), events)
        return given

    def own(self) -> Any:
        return [self._made, sorted(self._names.items())]

    def restore(self, own: Any) -> None:
        self._made, names = own
        self._names = dict(names)
        for result, shows in list(self.results.changed()):
            after = self._rank(self.results.events(result)) if shows else None
            if after is not None:
                self._arranged.put(result.handle, after)

    def _rank(self, events: Sequence[Content]) -> Rank | None:
        """Where a result stands among the others; None for one that does not come out."""
        if self._where is not None and not self._where(events):
            return None
        return rank(None if self._key is None else self._key(events))

    def _rewrite(self, handle: int, events: Iterable[Content]) -> list[Event]:
        id = Id(self.stream, self._names[handle])
        return self._region("replace", id, id, events)

    def _region(self, kind: Kind, of: Id, id: Id, events: Iterable[Content]) -> list[Event]:
        return [StartRegion(kind, of, id), *(replace(each, id=id) for each in events), EndRegion(kind, of, id)]
