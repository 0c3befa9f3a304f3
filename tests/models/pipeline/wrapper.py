"""The universal wrapper: what every stage does with regions, written once (history paper, section 8).

A stage is told of regular events only, each with the *place* it comes to: the body that is being written, and the
*mode*, the half of the stage's state that well-formed content leaves as it was, such as a depth.
The other half of its state is what the regions come to (`regions.py`).
The wrapper sees to the rest: which region an id names, where a new one stands and in which mode, which version is
written, what a qualifier shows of it, and what time hides.

Of the paper's table, repaired as LAWS 5.6 asks:

* `sM(i, j)` begins `j` at the end of what is written of `i`, in the mode of that place;
* `sR(i, j)` begins a new version of the chain that `i` names, whichever version that was, in the chain's mode; the
  difference between the versions that show before and after is what the regions behind it are adjusted by;
* `sB(i, j)`, `sA(i, j)` begin a chain directly beside that of `i`, in its mode: the state there is the sum of all that
  stands before it, and needs no adjustment from somewhere else;
* orders are places in a tree; two siblings never have the same one, and there is always room for one more;
* a history list loses its oldest entries, never the new one.

What a stage cannot see (`is_blind`), and what stands in a version that was replaced, keeps nothing: not a mode, not an
id, and the events of it go no further.

Events of other virtual streams pass through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias

from anabranch.algebra.display.ordered import V
from models.pipeline.bodies import Body, Chain, P, ended, is_kept
from models.pipeline.events import (
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Now,
    StartElement,
    StartRegion,
    StartStream,
)
from models.pipeline.keeping import decode, encode
from models.pipeline.regions import Regions

Mode: TypeAlias = tuple[int, ...]


class Place(Generic[P, V]):
    """Where an open region is being written."""

    __slots__ = ("bodies", "depth", "mode")

    def __init__(self, body: Body[P, V], mode: Mode) -> None:
        self.bodies = [body]
        """The body of the region, and those of the elements open in it as far as the stage has made them frames."""
        self.mode = mode
        self.depth = 0
        """How many elements of the region itself are open."""

    @property
    def body(self) -> Body[P, V]:
        """What is written next comes here."""
        return self.bodies[-1]


class Stage(ABC, Generic[P, V]):
    """A step of a pipeline: events in, events out, with the regions it remembers."""

    mode: Mode = ()
    """The mode at the start of a stream."""

    def __init__(self, regions: Regions[P, V], stream: int = 0) -> None:
        self.regions = regions
        self.stream = stream
        self.open: dict[str, Place[P, V]] = {}

    # --- what a stage is ------------------------------------------------------------------------------------

    @abstractmethod
    def content(self, event: Content, place: Place[P, V]) -> Iterable[Event]:
        """What comes of a regular event."""

    def passing(self, event: StartStream | EndStream | StartRegion | EndRegion, place: Place[P, V]) -> Iterable[Event]:
        """What comes of the start or end of a region."""
        return (event,)

    def settled(self) -> Iterable[Event]:
        """What comes of it when an update is complete, an item is, or time has moved."""
        return ()

    def is_blind(self, mode: Mode) -> bool:
        """Whether nothing can come of well-formed content in this mode."""
        return False

    def own(self) -> Any:
        """What the stage remembers beside its regions; plain data."""
        return None

    def restore(self, own: Any) -> None:
        """Take up what `own` has given; the regions are there already."""

    # --- the wrapper ----------------------------------------------------------------------------------------

    def take(self, event: Event) -> list[Event]:
        """The events that come of one."""
        if isinstance(event, Now):
            self.regions.advance(event.at)
            return [event, *self.settled()]
        if event.id.stream != self.stream:
            return [event]
        name = event.id.name
        match event:
            case StartStream():
                self.open[name] = place = Place(self.regions.root, self.mode)
                return list(self.passing(event, place))
            case StartRegion():
                begun = self._begin(event)
                if begun is None:
                    self.regions.name(name, None)  # the id names something that nobody sees
                    return []
                self.open[name] = begun
                return list(self.passing(event, begun))
            case EndStream() | EndRegion():
                closed = self.open.pop(name, None)
                told = self._unseen() if closed is None else self.passing(event, closed)
                return [*told, *self.settled()]
            case _:
                written = self.open.get(name)
                return [] if written is None else self._write(event, written)

    def _unseen(self) -> Iterable[Event]:
        """What comes of the end of a region that nobody sees: a moment, at which what is open counts as closed."""
        is_open = len(self.open) > 1 or any(place.depth for place in self.open.values())
        return (Now(self.regions.now),) if is_open else ()

    def _write(self, event: Content, place: Place[P, V]) -> list[Event]:
        place.depth += isinstance(event, StartElement) - isinstance(event, EndElement)
        found = list(self.content(event, place))
        # what stands in a region is complete with the region
        if place.depth == 0 and place.bodies[0] is self.regions.root:
            found += self.settled()
        return found

    def run(self, events: Iterable[Event]) -> list[Event]:
        """The events that come of several."""
        return [each for event in events for each in self.take(event)]

    def _begin(self, event: StartRegion) -> Place[P, V] | None:
        """The place where a region is written; None where nobody will see it."""
        regions, name = self.regions, event.id.name
        if event.kind == "mutable":
            around = self.open.get(event.of.name)
            if around is None or self.is_blind(around.mode):
                return None
            if not is_kept(around.body) or (ended(around.body) is not None and not event.is_made):
                return None
            chain = regions.chain(around.body, event.qualifier, around.mode)
            if not chain.versions:  # what it stands in was replaced, and that so long ago that nobody asks
                regions.remove(chain)
                return None
        else:
            known = regions.names.get(event.of.name)
            if known is None or ended(known.body) is not None:
                return None
            chain = known if event.kind == "replace" else self._beside(known, event)
            if event.kind == "replace":
                regions.replace(chain, event.qualifier)
        regions.name(name, chain)
        return Place(chain.versions[0].body, tuple(chain.context))

    def _beside(self, anchor: Chain[P, V], event: StartRegion) -> Chain[P, V]:
        before, after = (anchor, None) if event.kind == "before" else (None, anchor)
        return self.regions.chain(anchor.body, event.qualifier, anchor.context, before=before, after=after)

    # --- as plain data --------------------------------------------------------------------------------------

    def encode(self) -> Any:
        """All that the stage remembers, as data that JSON can hold."""
        data, numbers = encode(self.regions)
        places = [
            [name, [numbers[body] for body in place.bodies], list(place.mode), place.depth]
            for name, place in self.open.items()
            if all(body in numbers for body in place.bodies)  # a version that is forgotten is written to no end
        ]
        return [data, places, self.own()]

    def decode(self, data: Any) -> None:
        """Go on from there; for a stage that has seen nothing yet."""
        regions, places, own = data
        bodies = decode(self.regions, regions)
        for name, numbers, mode, depth in places:
            self.open[name] = place = Place(bodies[0], tuple(mode))
            place.bodies = [bodies[each] for each in numbers]
            place.depth = depth
        self.restore(own)
