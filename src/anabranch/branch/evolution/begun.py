"""The start of a late subscription in a stream of updates (LAWS 3.6): behind what its keeper has taken.

The keeper's document holds values of all times, in the units of the stream's beginning, and elements may wait behind it
(`branch/document/keeper.py`); so the accents that came before the start are those that the keeper has taken, and no
others.
A branch keeps them as part of its state, because all that it knows of evolution follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch.algebra.accents.events import Announced, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.ports import InputStream, Start
from anabranch.branch.state import BranchState
from anabranch.law.evolution.vantage import Change
from anabranch.runtime.evolution.views import views
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Place
from anabranch.stream.path import Path
from anabranch.stream.reading.source import Source


@dataclass(frozen=True, slots=True)
class EditedStart:
    """The partitions of a stream of updates behind some events, and the units that hold there for all items."""

    partitions: tuple[Start, ...]
    units: Mapping[Path, Affine]
    """As maps from the units of the stream's beginning."""

    def starts(self) -> Sequence[Start]:
        """The starts of the partitions."""
        return self.partitions

    @staticmethod
    def behind(source: Source, events: Sequence[Announced]) -> EditedStart:
        evolutions = [Evolution.of(source) for _ in source.partitions]
        for each in events:
            judged(each.event, evolutions[each.partition])
        places = [Place(source.name, str(number), 0) for number in range(len(evolutions))]
        found = views(evolutions, places)
        starts: list[Start] = []
        for number, view in enumerate(found):
            # what was in doubt stays so, for the document holds values from then
            doubts = [each.event for each in events if each.partition == number and isinstance(each.event, DeadLetter)]
            shown = [_shown(each, places[number]) for each in view.accents]
            starts.append(Start(view.evolution, (*doubts, *shown)))
        return EditedStart(tuple(starts), found[0].units if found else {})


def _shown(shown: Accent | Doubt, place: Place) -> Change:
    if isinstance(shown, Accent):
        return shown
    return DeadLetter(place, "it was in doubt when the subscription began", "", doubts=(shown,))


def events_of(written: Sequence[Any]) -> list[Announced]:
    """Events from their written form."""
    return [Announced.from_json(each) for each in written]


def begun_events(
    inputs: Mapping[str, InputStream], state: BranchState | None, keepers: Mapping[str, BranchState]
) -> dict[str, list[Any]]:
    """By stream of updates: the events before the start of a branch, as written; from its state, or from the keepers.

    A state of an earlier release has none: its streams could not evolve.
    """
    if state is not None:
        return dict(state.meta.get("begun", {}))
    return {name: kept.meta.get("events", []) for name, kept in keepers.items() if inputs[name].source.updates}


def begun_inputs(inputs: Mapping[str, InputStream], begun: Mapping[str, list[Any]]) -> dict[str, InputStream]:
    """The streams of a branch; those of updates start behind the events before."""
    found: dict[str, InputStream] = {}
    for name, stream in inputs.items():
        if not stream.source.updates:
            found[name] = stream
        elif begun.get(name):
            start = EditedStart.behind(stream.source, events_of(begun[name]))
            found[name] = replace(stream, starts=start.starts)
        else:
            found[name] = replace(stream, starts=None)
    return found
