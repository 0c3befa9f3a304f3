"""Plans as text: the builder's plans as one line of JSON, and back.

A subscribed plan must outlive the process, and go to tasks by its text, as queries do.
The text is canonical: equal plans have equal texts, numbers are exact fractions, and no query begins like it
(`is_plan`).
Reading uses the builder's own methods, so what it would refuse cannot be read either, and nothing is executed.
For people a plan prints otherwise, over several lines (`interpret.plan_text`).

Caps bound the cost of a text: a plan is a tree, in which a stream that is used twice stands twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from anabranch.algebra.operators.construct import Constant, Construct, Copy, Linear, Value
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.intersect import Intersect
from anabranch.algebra.operators.join import Join
from anabranch.algebra.operators.operator import Operator
from anabranch.algebra.operators.order import Order
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.quantify import Quantify
from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.operators.windowed import Window
from anabranch.algebra.plans import builder
from anabranch.algebra.plans.builder import DerivedStream, constant, linear
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource
from anabranch.errors import StateError, UsageError
from anabranch.stream.path import Path

MOST_OPERATORS = 500
MOST_DEPTH = 100
_FRACTION = re.compile(r"-?[0-9]{1,2000}(/[1-9][0-9]{0,1999})?\Z", re.ASCII)
_HINT = "make it of fewer operators, or several plans of it"

_Fields: TypeAlias = dict[str, Any]


def is_plan(text: str) -> bool:
    """Whether a subscription's text is that of a plan, or of another kind that is no query."""
    return text.startswith('{"')


def streams_of(plan: Plan) -> tuple[str, ...]:
    """The names of the streams that a plan reads, in the order in which it names them."""
    return tuple(dict.fromkeys(each.name for each in _nodes(plan) if isinstance(each, StreamSource)))


def renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    """A plan over streams under other names."""
    match plan:
        case StreamSource(name):
            return replace(plan, name=names[name])
        case Apply(inputs=inputs):
            return replace(plan, inputs=tuple(renamed(each, names) for each in inputs))


def write_plan(plan: Plan) -> str:
    """The text of a plan; UsageError where the plan is too large."""
    _check_size(plan)
    text = json.dumps(_written(plan), separators=(",", ":"), ensure_ascii=False)
    try:
        again = read_plan(text)
    except StateError as error:
        raise UsageError(f"the plan cannot be written down: {error.message}") from None
    if again != plan:
        raise UsageError("the plan is not one that the builder makes", hint="make it with the methods of a stream")
    return text


@lru_cache(maxsize=1 << 10)
def read_plan(text: str) -> Plan:
    """The plan of a text, parsed once per process; StateError where it is damaged."""
    try:
        return _read(json.loads(text), MOST_DEPTH + 1).plan
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UsageError) as error:
        raise StateError(f"the text of a plan is damaged: {error}") from None


# --- size -------------------------------------------------------------------------------------------------------


def _check_size(plan: Plan) -> None:
    if sum(1 for _ in _nodes(plan)) > MOST_OPERATORS:
        raise UsageError(f"a plan may have at most {MOST_OPERATORS:,} operators and streams", hint=_HINT)
    if _is_deeper(plan, MOST_DEPTH):
        raise UsageError(f"a plan may have at most {MOST_DEPTH:,} operators one above another", hint=_HINT)


def _nodes(plan: Plan) -> Iterator[Plan]:
    """All parts of a plan, each before its inputs; not many more than are allowed."""
    pending, seen = [plan], 0
    while pending and seen <= MOST_OPERATORS:
        each = pending.pop()
        seen += 1
        yield each
        if isinstance(each, Apply):
            pending.extend(reversed(each.inputs))


def _is_deeper(plan: Plan, most: int) -> bool:
    return isinstance(plan, Apply) and (most == 0 or any(_is_deeper(each, most - 1) for each in plan.inputs))


# --- writing ----------------------------------------------------------------------------------------------------


def _written(plan: Plan) -> _Fields:
    match plan:
        case StreamSource(name):
            return {"stream": name}
        case Apply(operator, inputs):
            return {**_operator(operator), "of": [_written(each) for each in inputs]}


def _operator(operator: Operator) -> _Fields:
    match operator:
        case Select(condition):
            return {"select": str(condition)}
        case Quantify(quantifier, over, condition):
            return {quantifier: str(over), "satisfies": str(condition)}
        case Project(kept):
            return {"project": _names(sorted(kept))}
        case Construct(name, fields):
            return {"construct": name, "fields": [[str(at), _value(each)] for at, each in fields]}
        case Order(keys):
            return {"order": [f"{'-' if key.descending else ''}{key.path}" for key in keys]}
        case Union():
            return {"union": []}
        case Intersect():
            return {"intersect": []}
        case Join(keys, within):
            near = [[str(each.mine), str(each.other), str(each.distance)] for each in within]
            return {"join": [_names(pair) for pair in keys], "within": near}
        case Window(path, extent):
            return {"window": str(path), "size": str(extent.size), "step": str(extent.step)}
        case Aggregate(function, by, exclude, named):
            asked = [[str(path), each] for path, each in named]
            return {"aggregate": asked, "all": function, "by": _names(by), "exclude": _names(sorted(exclude))}
        case _:
            raise UsageError(f"'{operator}' cannot be written down")


def _value(value: Value) -> Any:
    match value:
        case Copy(path):
            return str(path)
        case Constant(text):
            return {"constant": text}
        case Linear(terms, constant):
            return {"linear": [[str(factor), str(path)] for factor, path in terms], "plus": str(constant)}


def _names(paths: tuple[Path, ...] | list[Path]) -> list[str]:
    return list(map(str, paths))


# --- reading ----------------------------------------------------------------------------------------------------


def _read(found: _Fields, depth: int) -> DerivedStream:
    if not depth:
        raise ValueError("it is too deep")
    if "stream" in found:
        return builder.stream(_text(found["stream"]))
    first, *others = (_read(each, depth - 1) for each in found["of"])
    made = next((make for kind, make in _READERS.items() if kind in found), None)
    if made is None:
        raise ValueError(f"nobody knows the operator {sorted(found)}")
    return made(first, others, found)


def _aggregated(first: DerivedStream, _: list[DerivedStream], found: _Fields) -> DerivedStream:
    named: dict[str, list[str]] = {}
    for path, function in found["aggregate"]:
        named.setdefault(_text(function), []).append(path)
    return first.aggregate(by=found["by"], all=found["all"], exclude=found["exclude"], **named)


def _field(found: Any) -> str | Value:
    if isinstance(found, str):
        return found
    if "constant" in found:
        return constant(_text(found["constant"]))
    return linear({path: _number(factor) for factor, path in found["linear"]}, _number(found["plus"]))


def _joined(first: DerivedStream, others: list[DerivedStream], found: _Fields) -> DerivedStream:
    (other,) = others
    near = [(mine, theirs, _number(distance)) for mine, theirs, distance in found["within"]]
    if len(near) > 1:
        raise ValueError("a join has one distance")
    return first.join(other, on=[(mine, theirs) for mine, theirs in found["join"]], within=near[0] if near else None)


def _number(text: str) -> Fraction:
    if not _FRACTION.match(text):
        raise ValueError(f"'{text}' is no fraction")
    return Fraction(text)


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError(f"{found} is no text")
    return found


_READERS: Mapping[str, Callable[[DerivedStream, list[DerivedStream], _Fields], DerivedStream]] = {
    "select": lambda first, _, found: first.select(found["select"]),
    "some": lambda first, _, found: first.some(found["some"], found["satisfies"]),
    "every": lambda first, _, found: first.every(found["every"], found["satisfies"]),
    "project": lambda first, _, found: first.project(*found["project"]),
    "construct": lambda first, _, found: first.construct(
        found["construct"], {at: _field(each) for at, each in found["fields"]}
    ),
    "order": lambda first, _, found: first.order(*found["order"]),
    "union": lambda first, others, _: first.union(*others),
    "intersect": lambda first, others, _: first.intersect(*others),
    "join": _joined,
    "window": lambda first, _, found: first.window(
        found["window"], size=_number(found["size"]), step=_number(found["step"])
    ),
    "aggregate": _aggregated,
}
