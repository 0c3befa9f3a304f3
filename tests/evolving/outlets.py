"""Queries over accented streams in short, with what comes out of them at which place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from algebra.accented import HERE
from algebra.accented import item as short_item
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.sets import Domains
from anabranch.algebra.reactions.signature import Policy
from anabranch.language import ast, check, parse
from anabranch.law import Input, evaluate
from anabranch.law.construct import content_text
from anabranch.law.evolution.canonical import canonical
from anabranch.law.inputs import stream_input
from anabranch.logic import EVERYTHING
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import Outlet
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing, standing
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.tree import Element, Name, renumber
from anabranch.values.sequences import Values

Given = Accent | Punctuation | str
ROUND = 'for $p in stream("a")/r/i '


def checked(query: str) -> ast.Query:
    return check(parse(query), query, inputs={"a": None, "b": None}, functions=()).query


def taken(query: str) -> Standing:
    return standing(checked(query))


def lineage(query: str) -> Lineage:
    return lineage_of(taken(query))


def item(text: str) -> Item:
    """`t=68 s=1`, or XML."""
    return Item(parse_item(text.encode(), Limits()), HERE) if text.startswith("<") else short_item(text)


def given(items: Sequence[Item]) -> Input:
    read, dead = stream_input(Element(Name("r")), [items])
    assert not dead
    return read


def told(accent: Accent) -> str:
    """An accent of the answer in short."""
    match accent.evolution:
        case Add(at):
            text = f"add {at}"
        case Drop(at):
            text = f"drop {at}"
        case Alter(at, by):
            text = f"alter {at} by {by}"
    return text if accent.where == EVERYTHING else f"{text} where {accent.where}"


class Asked:
    """A query that is fed element by element; `answer` is what has come out, accents and pieces."""

    def __init__(
        self, query: str, *, policy: Policy = "accumulate", domains: Sequence[Domains] = (), parts: int = 1
    ) -> None:
        self.query = checked(query)
        self.standing = standing(self.query)
        self.lineage = lineage_of(self.standing)
        partitions = [parts * len(names) for names in self.lineage.streams]
        self.outlet = Outlet(self.lineage, policy=policy, domains=domains, partitions=partitions)
        self.evolutions: dict[tuple[str, int], Evolution] = {}
        self.items: dict[str, list[Item]] = {name: [] for name in self.standing.streams}
        self.answer: list[Accent | Values] = []

    def feed(self, stream: str, element: Given | Item, part: int = 0) -> None:
        evolution = self.evolutions.setdefault((stream, part), Evolution())
        match element:
            case Accent():
                refusal = evolution.apply(element)
                for input, names in enumerate(self.lineage.streams):
                    if stream in names and refusal is None:
                        self.answer += self.outlet.accent(input, element, part + names.index(stream))
                    elif stream in names and refusal is not None:
                        self.outlet.doubt(input, element.evolution.path, refusal.reason)
            case Punctuation(where, place):
                assert where is not None
                for input, names in enumerate(self.lineage.streams):
                    if stream in names:
                        self.answer += self.outlet.punctuation(input, where, place, part + names.index(stream))
            case str() | Item():
                came = item(element) if isinstance(element, str) else element
                known = Item(canonical(came.tree, evolution), came.place)
                renumber(known.tree)  # some are copies and some are not; document order is that of arrival
                if self.standing.kind == "items":
                    self._leave({stream: [known]})
                else:
                    self.items[stream].append(known)

    def end(self) -> None:
        """What waits for the end leaves."""
        if self.standing.kind != "items":
            self._leave(self.items)

    def _leave(self, items: Mapping[str, Sequence[Item]]) -> None:
        answer = evaluate(self.query, {name: given(each) for name, each in items.items()})
        assert not answer.dead, answer.dead
        if answer.values:
            self.answer.append(self.outlet.forward(answer.values))

    @property
    def shown(self) -> list[str]:
        return [told(each) if isinstance(each, Accent) else content_text(each) for each in self.answer]


def ask(
    query: str, *elements: Given | tuple[str, Given], policy: Policy = "accumulate", domains: Sequence[Domains] = ()
) -> list[str]:
    """What a query answers; an element of another stream than `a` is given with its name."""
    asked = Asked(query, policy=policy, domains=domains)
    for each in elements:
        stream, element = each if isinstance(each, tuple) else ("a", each)
        asked.feed(stream, element)
    asked.end()
    return asked.shown
