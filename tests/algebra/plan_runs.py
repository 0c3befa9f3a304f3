"""Plans run over finite streams: elements in, the elements of the answer out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from anabranch.algebra.accents.sets import UNDECLARED, Domains, description_of
from anabranch.algebra.operators.operator import Flowing, Heartbeat
from anabranch.algebra.plans.interpret import Element, Plan, Query
from anabranch.algebra.reactions.changes import Change, Closing
from anabranch.algebra.reactions.readings import Reading, Spelling
from anabranch.algebra.reactions.signature import Policy
from anabranch.stream.elements import Accent, Item, Place, Punctuation
from anabranch.stream.path import Path
from anabranch.values.numbers import nearest_double, spell_double


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
    query = Query(plan, policy=policy, domains=domains, declares=declares)
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
