"""The reference interpreter of the algebra: plans of operators over accented streams, element by element.

A plan is a tree: sources, and operators applied to plans.
`RunningPlan` takes each element through all operators above its source before the next one, so the output follows from
the order of the elements alone; the caller merges the sources (LAWS 1.2).
Values go from operator to operator as readings and are written once, where they leave.
Elements were validated before: an item with an unknown path aborts a query that reads the path, or shows it in its
answer (LAWS 4.5).

A query can be saved and resumed: the operators' knowledge of evolution follows from the accents and punctuations so
far, so the caller logs these and replays them to a fresh query; `save` gives the rest of the state.

It is the law in executable form: obviously right, never fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.algebra.accents.sets import UNDECLARED, Domains
from anabranch.algebra.operators.operator import Flowing, Operation, Operator
from anabranch.algebra.operators.windowed import Numbering
from anabranch.algebra.reactions.course import Change, Closing
from anabranch.algebra.reactions.readings import Reading
from anabranch.algebra.reactions.signature import Policy
from anabranch.errors import Aborted, DynamicError
from anabranch.predicate import Predicate
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class StreamSource:
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
        return plan_text(self)


Plan: TypeAlias = StreamSource | Apply


def plan_text(plan: Plan) -> str:
    """A plan for people: each operator above its inputs; a part that is used several times is named once, before it.

    r0 := select t > 5
      stream sensors
    union
      project s, t
        r0
      join on s = s
        r0
        stream placement
    """
    numbers: dict[int, int] = {}  # plans that are the same object are visited once
    parts: dict[Plan | tuple[Operator, tuple[int, ...]], int] = {}  # and equal ones have one number
    shapes: list[tuple[StreamSource | Operator, tuple[int, ...]]] = []

    def number(each: Plan) -> int:
        if id(each) not in numbers:
            below = tuple(map(number, each.inputs)) if isinstance(each, Apply) else ()
            place = parts.setdefault((each.operator, below) if isinstance(each, Apply) else each, len(shapes))
            if place == len(shapes):
                shapes.append((each.operator if isinstance(each, Apply) else each, below))
            numbers[id(each)] = place
        return numbers[id(each)]

    top = number(plan)
    uses = Counter(below for _, inputs in shapes for below in inputs)
    named = {each: f"r{at}" for at, each in enumerate(at for at, n in sorted(uses.items()) if n > 1 and shapes[at][1])}

    def lines(each: int) -> Iterator[str]:
        yield str(shapes[each][0])
        for below in shapes[each][1]:
            yield from (f"  {line}" for line in ((named[below],) if below in named else lines(below)))

    definitions = (f"{name} := " + "\n".join(lines(each)) for each, name in named.items())
    return "\n".join((*definitions, *lines(top)))


class RunningPlan:
    """A running plan; only `take`, `close` and `end` change it."""

    def __init__(
        self, plan: Plan, *, policy: Policy = "accumulate", promises: Mapping[str, Domains] | None = None
    ) -> None:
        """`promises` are the domains of sources, by name."""
        self._promises = promises or {}
        self.changes = 0
        """The number of accents so far, of sources and of operators."""
        self._operations: dict[tuple[int, ...], Operation] = {}
        self._ways: dict[str, list[tuple[int, ...]]] = {}
        self._lay(plan, (), policy)

    def _lay(self, plan: Plan, way: tuple[int, ...], policy: Policy) -> Domains:
        """Start the operators; gives the domains of the output.

        `way` leads to a plan by the inputs to take from the root down.
        """
        match plan:
            case StreamSource(name):
                self._ways.setdefault(name, []).append(way)
                return self._promises.get(name, UNDECLARED)
            case Apply(operator, inputs):
                given = [self._lay(each, (*way, index), policy) for index, each in enumerate(inputs)]
                promised = operator.signature.promised(given)
                self._operations[way] = Operation(operator, policy=policy, domains=promised)
                return operator.signature.promises(promised)

    @property
    def failures(self) -> list[DynamicError]:
        """The failures of computations so far (LAWS 2.4)."""
        return [each for operation in self._operations.values() for each in operation.failures]

    def take(self, source: str, flowing: Flowing) -> Iterator[Flowing]:
        """Take the next valid element of a source; Aborted where the query cannot go on, and then it has ended."""
        for way in self._ways[source]:
            yield from self._rise(way, flowing)

    def close(self, source: str, items: Predicate) -> Iterator[Flowing]:
        """None of a set of items comes any more from a source; the set is in the units of the start."""
        for *above, input in self._ways[source]:
            course = self._operations[tuple(above)].reaction.inputs[input]
            yield from self._rise((*above, input), Closing(course.forward(items)))

    def begin_windows(self, way: tuple[int, ...], first: int) -> None:
        """Leave out items that are only in windows before a first one (LAWS 3.6); `way` leads to a Window."""
        work = self._operations[way].work
        assert isinstance(work, Numbering)
        work.first = first

    def looks_at(self, source: str, path: Path) -> bool:
        """Whether an accent on a path of a source can affect the answer."""
        return any(self._looks(way, path) for way in self._ways[source])

    def _looks(self, way: tuple[int, ...], path: Path) -> bool:
        if not way:
            return True
        *above, input = way
        signature = self._operations[tuple(above)].reaction.signature
        if signature.reads(path) or path in signature.ignored:
            return signature.reads(path)
        shown = [each for each in signature.targets(input, path) if signature.shows(each)]
        if signature.renaming is not None:
            shown = [each.at for target in shown for each in signature.renaming.places(target)]
        return any(self._looks(tuple(above), each) for each in shown)

    def end(self) -> Iterator[Flowing]:
        """All sources have ended: give the remaining results, of the operators nearest to the sources first."""
        for way in sorted(self._operations, key=len, reverse=True):
            for each in self._operations[way].end():
                yield from self._rise(way, each)

    # --- saving and restoring ---------------------------------------------------------------------------------

    def drained(self) -> list[DynamicError]:
        """The failures of computations since the last call."""
        found = self.failures
        for operation in self._operations.values():
            operation.failures.clear()
        return found

    def save(self) -> dict[str, list[Any]]:
        """The state besides evolution, by operator, as rows of JSON values."""
        return {_named(way): operation.save() for way, operation in self._operations.items()}

    def forget(self) -> None:
        """Drop all items, and keep what accents and punctuations have said."""
        for operation in self._operations.values():
            operation.forget()

    def restore(self, saved: Mapping[str, list[Any]]) -> None:
        """Restore from `save`, after the same accents and punctuations."""
        for way, operation in self._operations.items():
            operation.restore(saved[_named(way)])

    def _rise(self, way: tuple[int, ...], element: Flowing) -> Iterator[Flowing]:
        self.changes += isinstance(element, Change)
        if not way:
            if isinstance(element, Reading):
                for path, reason in element.unknown.items():
                    raise Aborted(f"the answer shows '{path}', of which nothing is known: {reason}")
            yield element
            return
        *above, input = way
        for each in self._operations[tuple(above)].feed(element, input):
            yield from self._rise(tuple(above), each)


def _named(way: tuple[int, ...]) -> str:
    return "/".join(map(str, way))
