"""Plans over whole streams: every source is validated first, without what is bad (LAWS 4.5).

An accent that is refused leaves its path unknown for the items that it describes, until a drop makes it known again.
That needs no element of its own in the streams between operators: each item that is concerned says so
(`algebra/reactions/readings.py`).
A query aborts where it meets such an item and reads the path, so one that has selected others goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.sets import UNDECLARED, Domains, description_of, items_of
from anabranch.algebra.operators.operator import Flowing, Heartbeat
from anabranch.algebra.plans.interpret import Plan, RunningPlan
from anabranch.algebra.plans.written import streams_of
from anabranch.algebra.reactions.course import Change, Closing
from anabranch.algebra.reactions.readings import Reading, Spelling
from anabranch.algebra.reactions.signature import Policy
from anabranch.stream.elements import Accent, DeadLetter, Item, Place, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree
from anabranch.values.numbers import nearest_double, spell_double

Element: TypeAlias = Item | Accent | Punctuation
"""What a stream of items has, and what an answer has."""


class Judged:
    """One source; only `take` changes it."""

    def __init__(self, declares: Callable[[Path], bool] | None = None, domains: Domains = UNDECLARED) -> None:
        self.bad: list[DeadLetter] = []
        """What was set aside so far."""
        self._evolution = Evolution(declares, domains)
        self._mistrusted: dict[Path, str] = {}
        """The paths that have been unknown for some items, with the last reason."""

    def take(self, element: Element | DeadLetter) -> Flowing | None:
        """The next element, or None where it is set aside, or was when it was read."""
        match judged(element, self._evolution):
            case Item(tree):
                return self._reading(tree)
            case Accent(where, evolution):
                return Change(items_of(where), evolution)
            case Punctuation(where, _, at):
                if where is not None:
                    return Closing(items_of(where))
                assert at is not None, "a punctuation has a description or a time"
                return Heartbeat(at)
            case DeadLetter() as letter:
                self.bad.append(letter)
                doubtful = [element.evolution.path] if isinstance(element, Accent) else []
                doubtful += [each.path for each in letter.doubts]
                self._mistrusted.update(dict.fromkeys(doubtful, letter.reason))
                return None
            case other:
                raise AssertionError(other)  # updates are not for this algebra

    def _reading(self, tree: Tree) -> Reading:
        reading = Reading(tree)
        for path, reason in self._mistrusted.items():
            if self._evolution.state(path, tree).unit is None:
                reading = reading.mistrusted(path, reason)
        return reading


class Interpreter(RunningPlan):
    """A plan at work that validates its sources."""

    def __init__(
        self,
        plan: Plan,
        *,
        policy: Policy = "accumulate",
        domains: Domains = UNDECLARED,
        declares: Callable[[Path], bool] | None = None,
    ) -> None:
        super().__init__(plan, policy=policy, promises=dict.fromkeys(streams_of(plan), domains))
        self._judged = {source: Judged(declares, domains) for source in self._ways}

    @property
    def bad(self) -> list[DeadLetter]:
        """What was set aside so far, source by source (LAWS 2.5)."""
        return [each for judged in self._judged.values() for each in judged.bad]

    def feed(self, source: str, element: Element | DeadLetter) -> Iterator[Flowing]:
        """Take the next element in; Aborted where the query cannot go on, and then it is over."""
        found = self._judged[source].take(element) if source in self._judged else None
        if found is not None:
            yield from self.take(source, found)


def run(
    plan: Plan,
    elements: Iterable[tuple[str, Element]],
    *,
    policy: Policy = "accumulate",
    domains: Domains = UNDECLARED,
    declares: Callable[[Path], bool] | None = None,
    spelling: Spelling = lambda value: spell_double(nearest_double(value)),
) -> list[Element]:
    """What a plan answers to finite streams, merged into one sequence of (source, element)."""
    query = Interpreter(plan, policy=policy, domains=domains, declares=declares)
    found = [each for source, element in elements for each in query.feed(source, element)]
    found += query.end()
    return [leaving(each, index, spelling) for index, each in enumerate(found)]


def leaving(flowing: Flowing, index: int, spelling: Spelling) -> Element:
    """What operators give as an element of the answer; its place counts the elements."""
    place = Place("answer", "0", index)
    match flowing:
        case Reading():
            return Item(flowing.written(spelling), place)
        case Change(where, evolution):
            return Accent(description_of(where), evolution, place)
        case Closing(where):
            return Punctuation(description_of(where), place)
        case Heartbeat(at):
            return Punctuation(None, place, at)
