"""The builder: plans of the algebra, written in Python.

    >>> from anabranch.algebra.plans.builder import stream
    >>> placed = stream("sensors").select("t > 5").join(stream("placement"), on="s")
    >>> query = placed.window("ts", size=300).aggregate(by=["l", "wid"], avg=["t"])
    >>> print(query)
    aggregate by l, wid: avg of t
      window of 300 every 300 over ts
        join on s = s
          select t > 5
            stream sensors
          stream placement

A stream is a plain frozen value around a plan; each method gives a new one, and nothing runs until the plan is fed
(`interpret.RunningPlan`) or subscribed to; streams of an engine have the same methods (`engine/handles.py`).
Conditions are descriptions (`stream/description.py`): comparisons of paths with constants.
All arguments are checked here, so that an ill-formed plan cannot be built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.accents.sets import below
from anabranch.algebra.operators.construct import Constant, Construct, Copy, Linear, Value
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.intersect import Intersect
from anabranch.algebra.operators.join import Join, Within
from anabranch.algebra.operators.operator import Operator
from anabranch.algebra.operators.order import Key, Order
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.quantify import Quantify
from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.operators.windowed import Window
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource
from anabranch.algebra.window import Extent
from anabranch.errors import StreamError, UsageError
from anabranch.logic import Not
from anabranch.stream.description import Description, parse
from anabranch.stream.path import Path

Number: TypeAlias = int | str | Decimal | Fraction
"""An exact size or distance; a float counts as its shortest decimal."""
_NUMBER_HINT = "write a number, as in 10 or '0.5'"
_TOO_LONG = re.compile(r".{1000}|[eE][-+]?[0-9]{4}")
"""Numbers that would be too expensive to compute with."""


def stream(name: str) -> DerivedStream:
    """The stream of this name."""
    if not name:
        raise UsageError("a stream needs a name", hint="write stream('sensors'), with the name it is registered by")
    return DerivedStream(StreamSource(name))


def constant(text: str) -> Constant:
    """A field that is the same in all items."""
    return Constant(text)


def linear(factors: Mapping[str, Number], constant: Number = 0) -> Linear:
    """A field that is a sum of multiples of values and a number: `linear({"t": "1.8"}, 32)`."""
    terms = tuple((_number("factor", factor), _path("linear", path)) for path, factor in factors.items())
    if not terms or not all(factor for factor, _ in terms):
        raise UsageError("linear needs paths with factors other than 0", hint="write linear({'t': 2}, 5) for 2 * t + 5")
    return Linear(terms, _number("constant", constant))


@dataclass(frozen=True, slots=True)
class DerivedStream:
    """A stream to which operators are applied."""

    plan: Plan

    def select(self, condition: str) -> DerivedStream:
        """The items that fulfil a condition."""
        return self._apply(Select(_condition("select", condition)))

    def some(self, over: str, condition: str) -> DerivedStream:
        """The items of which some element at a path fulfils a condition; its paths are relative to the element."""
        return self._apply(Quantify("some", _path("some", over), _condition("some", condition)))

    def every(self, over: str, condition: str) -> DerivedStream:
        """The items of which every element at a path fulfils a condition; its paths are relative to the element."""
        return self._apply(Quantify("every", _path("every", over), _condition("every", condition)))

    def choose(
        self,
        condition: str,
        then: Callable[[DerivedStream], DerivedStream],
        otherwise: Callable[[DerivedStream], DerivedStream],
    ) -> DerivedStream:
        """Apply `then` to the items that fulfil a condition, and `otherwise` to the others; the order stays.

        `else` is `not(...)`, so an item that cannot be compared goes there (LAWS case 2).
        It is the Union of two plans, each begun by a Select, so its signature is known: the paths of the condition are
        foundation, and a path of the output lets an alter out when both plans have gone through it; a path that only
        one of them shows stays in the units of query start.
        """
        test = _condition("choose", condition)
        first = _stream("choose", then(self._apply(Select(test))))
        return first.union(_stream("choose", otherwise(self._apply(Select(Not(test))))))

    def project(self, *paths: str) -> DerivedStream:
        """The items with only these paths."""
        return self._apply(Project(frozenset(_some_paths("project", paths))))

    def construct(self, name: str, fields: Mapping[str, str | Value]) -> DerivedStream:
        """Items called `name` with these fields: a path to copy, a `constant`, or a `linear` computation."""
        given = {_path("construct", at): value for at, value in fields.items()}
        for at in given:
            if any(at != other and below(at, other) for other in given):
                raise UsageError(f"construct puts '{at}' into another field", hint="let no field lie in another")
        if not given:
            raise UsageError("construct needs a field", hint="write construct('reading', {'temp': 't'})")
        copied = ((at, Copy(_path("construct", each)) if isinstance(each, str) else each) for at, each in given.items())
        return self._apply(Construct(str(_path("construct", name)), tuple(copied)))

    def order(self, *keys: str) -> DerivedStream:
        """The items in the order of their values at these paths; `-t` is descending."""
        if not keys:
            raise UsageError("order needs a path to sort by", hint="write order('t'), or order('-t') for downwards")
        return self._apply(
            Order(tuple(Key(_path("order", key.removeprefix("-")), key.startswith("-")) for key in keys))
        )

    def union(self, *others: DerivedStream) -> DerivedStream:
        """The items of this stream and of others."""
        if not others:
            raise UsageError("union needs another stream", hint="write s.union(t)")
        return self._apply(Union(1 + len(others)), *(_stream("union", each) for each in others))

    def intersect(self, other: DerivedStream) -> DerivedStream:
        """The items that both streams have."""
        return self._apply(Intersect(), _stream("intersect", other))

    def join(
        self,
        other: DerivedStream,
        *,
        on: str | Iterable[str | tuple[str, str]] = (),
        within: tuple[str, str, Number] | None = None,
    ) -> DerivedStream:
        """The pairs of items that agree in the paths `on`; a path with two names is a pair.

        `within=("ts", "seen", 10)` are pairs whose values there are at most 10 apart.
        """
        given = [on] if isinstance(on, str) else list(on)
        pairs = [each if isinstance(each, tuple) else (each, each) for each in given]
        keys = tuple((_path("join", mine), _path("join", theirs)) for mine, theirs in pairs)
        near = () if within is None else (_within(*within),)
        if not keys and not near:
            hint = "write on='s', on=[('k', 'j')] or within=('a', 'b', 10)"
            raise UsageError("join needs a path to join on", hint=hint)
        return self._apply(Join(keys, near), _stream("join", other))

    def window(self, path: str, *, size: Number, step: Number | None = None) -> DerivedStream:
        """The items with the numbers of their windows at `wid`; windows begin every `step`, by default every `size`."""
        extent = Extent(_positive("size", size), _positive("step", size if step is None else step))
        return self._apply(Window(_path("window", path), extent))

    def aggregate(
        self,
        *,
        by: Iterable[str] = (),
        all: FunctionName | None = None,
        exclude: Iterable[str] = (),
        **named: Iterable[str],
    ) -> DerivedStream:
        """Groups of items that agree in `by`, with these aggregates.

        `avg=["t"]` names the paths of a function; `all="avg"` is one for all others, also those that are added later,
        except the excluded ones.
        """
        groups = tuple(_paths("aggregate", by))
        excluded = frozenset(_paths("aggregate", exclude))
        for each in (*named, *(() if all is None else (all,))):
            if each not in AGGREGATES:
                raise UsageError(f"'{each}' is no aggregate", hint=f"there are {', '.join(AGGREGATES)}")
        asked = tuple((path, each) for each in AGGREGATES for path in _paths("aggregate", named.get(each, ())))
        _check_aggregates(groups, excluded, asked, all)
        return self._apply(Aggregate(all, groups, excluded, asked))

    def __str__(self) -> str:
        return str(self.plan)

    def _apply(self, operator: Operator, *others: DerivedStream) -> DerivedStream:
        return DerivedStream(Apply(operator, (self.plan, *(each.plan for each in others))))


# --- arguments ------------------------------------------------------------------------------------------------


def _check_aggregates(
    by: tuple[Path, ...],
    exclude: frozenset[Path],
    named: tuple[tuple[Path, FunctionName], ...],
    all: FunctionName | None,
) -> None:
    if all is None and not named:
        raise UsageError("aggregate has nothing to do", hint="write avg=['t'], or all='avg' for every path")
    if all is None and exclude:
        raise UsageError("exclude is for all=...: of named paths the others are left out anyway", hint="leave it out")
    seen: set[Path] = set()
    for path in (*by, *sorted(exclude), *(path for path, _ in named)):
        if path in seen:
            raise UsageError(f"aggregate is given '{path}' twice", hint="a path comes out once; aggregate once more")
        seen.add(path)


def _stream(where: str, given: DerivedStream) -> DerivedStream:
    if not isinstance(given, DerivedStream):
        raise UsageError(f"{where} takes a stream, not {type(given).__name__}", hint="make one with stream('name')")
    return given


def _condition(where: str, text: str) -> Description:
    try:
        return parse(text)
    except StreamError as error:
        raise UsageError(f"the condition of {where}: {error.message}", hint=error.hint) from None


def _path(where: str, text: str) -> Path:
    try:
        return Path.parse(text)
    except StreamError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None


def _paths(where: str, texts: Iterable[str]) -> list[Path]:
    if isinstance(texts, str):
        raise UsageError(f"{where} takes a list of paths, not '{texts}'", hint=f"write ['{texts}']")
    return [_path(where, each) for each in texts]


def _some_paths(where: str, texts: Iterable[str]) -> list[Path]:
    found = _paths(where, texts)
    if not found:
        raise UsageError(f"{where} needs a path", hint=f"write {where}('s', 't')")
    return found


def _within(mine: str, other: str, distance: Number) -> Within:
    first, second = _path("join", mine), _path("join", other)
    if first == second:
        raise UsageError(f"both sides of 'within' are called '{mine}'", hint="rename one of them first")
    return Within(first, second, _positive("distance", distance))


def _number(what: str, given: Number) -> Fraction:
    text = str(given)
    try:
        if _TOO_LONG.search(text):
            raise ValueError(text)
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"the {what} is '{given}', which is no number", hint=_NUMBER_HINT) from None


def _positive(what: str, given: Number) -> Fraction:
    found = _number(what, given)
    if found <= 0:
        raise UsageError(f"the {what} is {given}, which is not above 0", hint=_NUMBER_HINT)
    return found
