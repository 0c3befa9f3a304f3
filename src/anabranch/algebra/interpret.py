"""The reference interpreter of the algebra: plans of operators over accented streams, element by element.

A plan is a tree: sources, and operators applied to plans.
`Query` feeds each element through all operators above its source before it takes the next one, so what comes out
follows from the order of the elements alone; whoever feeds it merges the sources (LAWS 1.2).
Values go from operator to operator as readings and are written once, where they leave.
Every source is judged first (`judged.py`): what is not valid is set aside, and where it leaves a path unknown, a query
that reads the path there, or shows it in its answer, aborts (LAWS 4.5).

It is the law in executable form: obviously right, never fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from textwrap import indent
from typing import TypeAlias

from anabranch.algebra.accents.sets import UNDECLARED, Domains, description_of
from anabranch.algebra.changes import Change, Closing
from anabranch.algebra.judged import Element, Judged
from anabranch.algebra.numbers import nearest_double, spell_double
from anabranch.algebra.operator import Flowing, Heartbeat, Operation, Operator
from anabranch.algebra.readings import Reading, Spelling
from anabranch.algebra.signature import Policy
from anabranch.errors import Aborted, DynamicError
from anabranch.stream.elements import Accent, DeadLetter, Item, Place, Punctuation
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class Source:
    """A stream by its name."""

    name: str

    def __str__(self) -> str:
        return f"stream {self.name}"


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator over as many plans as it has inputs."""

    operator: Operator
    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert len(self.inputs) == self.operator.arity

    def __str__(self) -> str:
        return "\n".join((str(self.operator), *(indent(str(each), "  ") for each in self.inputs)))


Plan: TypeAlias = Source | Apply


class Query:
    """A plan at work; only `feed` and `end` change it."""

    def __init__(
        self,
        plan: Plan,
        *,
        policy: Policy = "accumulate",
        domains: Domains = UNDECLARED,
        declares: Callable[[Path], bool] | None = None,
    ) -> None:
        self._operations: dict[tuple[int, ...], Operation] = {}
        self._ways: dict[str, list[tuple[int, ...]]] = {}
        self._lay(plan, (), policy, domains)
        self._judged = {source: Judged(declares, domains) for source in self._ways}

    def _lay(self, plan: Plan, way: tuple[int, ...], policy: Policy, domains: Domains) -> Domains:
        """Start the operators, and give what is promised of the output.

        `way` leads to a plan by the inputs to take from the root down.
        """
        match plan:
            case Source(name):
                self._ways.setdefault(name, []).append(way)
                return domains
            case Apply(operator, inputs):
                given = [self._lay(each, (*way, index), policy, domains) for index, each in enumerate(inputs)]
                promised = operator.signature.promised(given)
                self._operations[way] = Operation(operator, policy=policy, domains=promised)
                return operator.signature.promises(promised)

    @property
    def failures(self) -> list[DynamicError]:
        """What could not be computed so far (LAWS 2.4)."""
        return [each for operation in self._operations.values() for each in operation.failures]

    @property
    def bad(self) -> list[DeadLetter]:
        """What was set aside so far, source by source (LAWS 2.5)."""
        return [each for judged in self._judged.values() for each in judged.bad]

    def feed(self, source: str, element: Element | DeadLetter) -> Iterator[Flowing]:
        """Take the next element in; Aborted where the query cannot go on, and then it is over."""
        found = self._judged[source].take(element) if source in self._judged else None
        if found is not None:
            for way in self._ways[source]:
                yield from self._rise(way, found)

    def end(self) -> Iterator[Flowing]:
        """All sources have ended: what operators have kept comes out, those nearest to the sources first."""
        for way in sorted(self._operations, key=len, reverse=True):
            for each in self._operations[way].end():
                yield from self._rise(way, each)

    def _rise(self, way: tuple[int, ...], element: Flowing) -> Iterator[Flowing]:
        if not way:
            if isinstance(element, Reading):
                for path, reason in element.unknown.items():
                    raise Aborted(f"the answer shows '{path}', of which nothing is known: {reason}")
            yield element
            return
        *above, input = way
        for each in self._operations[tuple(above)].feed(element, input):
            yield from self._rise(tuple(above), each)


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
