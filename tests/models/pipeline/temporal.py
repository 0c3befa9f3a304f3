"""The temporal component: a qualifier for the results of what stands before it (history paper, section 7).

It gives its qualifier to the regions that stand around whole results, those at depth 0 that have none yet; regions
inside a result, and those that an earlier step has qualified, stay as they are.
The stages behind it then count, show or sum the versions asked for (`regions.py`).
A step without a qualifier is one with `#0`: the regions around its results are not around whole results of the next
step, which must leave them alone (so `./a/b#1` in the paper's section 3 is cleared at t4).

Beyond the paper:

* Not only replacements are qualified: a region that was never replaced has no version 1, so `e#1` must not show it, and
  `e?5` only when it is old enough.
* A result outside of any region has a version 0 and no other, and lives as long as what it stands in (LAWS 5.4): where
  the qualifier may hide that, it gets a region of its own, which nobody will update.
* Of regions directly around one another each gives the version asked for, while the others show their newest: in the
  newest version of the outer one, what stands directly there is hidden (again by regions made for it) and the inner
  ones give theirs; in the version asked for, all inner ones show their newest.
  A time qualifier needs none of that, since lives inside one another are cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from models.pipeline.events import (
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    StartElement,
    StartRegion,
    StartStream,
)
from models.pipeline.qualifier import Qualifier
from models.pipeline.regions import Regions
from models.pipeline.transformer import Nothing
from models.pipeline.wrapper import Mode, Place, Stage

SNAPSHOT = Qualifier("version", Decimal(0))
"""What a step without a qualifier means."""


class Qualified(Stage[None, int]):
    """`T`. The mode is the depth, and whether a region that was qualified here is around."""

    mode: Mode = (0, 0)

    def __init__(self, qualifier: Qualifier = SNAPSHOT, stream: int = 0) -> None:
        super().__init__(Regions(Nothing()), stream)
        self.qualifier = qualifier
        self._may_hide = qualifier.kind == "time" or not (qualifier.is_window or qualifier.amount == 0)
        """Whether it can hide the only version there is: by age, also because what it stands in was replaced."""
        self._counts = qualifier.kind == "version"
        self._made = 0
        self._own: dict[str, Id] = {}
        """By the region it was found in, the region made for the result that is open there."""
        self._around: dict[str, Id] = {}
        """By their names, the open regions that stand in one that was made here."""

    def passing(
        self, event: StartStream | EndStream | StartRegion | EndRegion, place: Place[None, int]
    ) -> Iterable[Event]:
        match event:
            case StartRegion(kind, of, id, qualifier):
                depth, is_covered = place.mode
                if depth == 0 and qualifier is None:
                    event = replace(event, qualifier=self._asked(is_covered, is_outer=self._counts))
                    place.mode = (0, 1)
                if kind == "mutable" and of.name in self._own:
                    self._around[id.name] = own = self._own[of.name]
                    event = replace(event, of=own)
            case EndRegion(_, _, id) if id.name in self._around:
                event = replace(event, of=self._around.pop(id.name))
            case _:
                pass
        return (event,)

    def content(self, event: Content, place: Place[None, int]) -> Iterable[Event]:
        depth, is_covered = place.mode
        given: list[Event] = []
        id = event.id
        if depth == 0 and self._may_hide and (self._counts or not is_covered):
            self._made += 1
            own = self._own[id.name] = Id(id.stream, f"{id.name}\0own{self._made}")
            given.append(StartRegion("mutable", id, own, self._asked(is_covered), is_made=True))
        depth += isinstance(event, StartElement) - isinstance(event, EndElement)
        place.mode = (depth, is_covered)
        if id.name in self._own:
            own = self._own[id.name]
            given.append(replace(event, id=own))
            if depth == 0:
                given.append(EndRegion("mutable", id, own))
                del self._own[id.name]
        else:
            given.append(event)
        return given

    def _asked(self, is_covered: int, *, is_outer: bool = False) -> Qualifier:
        return replace(self.qualifier, is_outer=is_outer, is_inner=self._counts and bool(is_covered))

    def own(self) -> Any:
        return [self._made, {**self._own}, {**self._around}]

    def restore(self, own: Any) -> None:
        self._made, made, around = own
        self._own = {name: Id(*id) for name, id in made.items()}
        self._around = {name: Id(*id) for name, id in around.items()}
