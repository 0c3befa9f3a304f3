"""Plans of the builder, read back from the text that they print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from anabranch.algebra.operators.construct import Value
from anabranch.algebra.plans.builder import DerivedStream, constant, linear, stream

_NAMED = re.compile(r"(r[0-9]+) := (.*)")
_WINDOW = re.compile(r"window of (.+) every (.+) over (\S+)")
_WITHIN = re.compile(r"(\S+) within (.+) of (\S+)")
_OTHERS = re.compile(r"(\w+) of all(?: others)?(?: but (.*))?")
_FIELDS = re.compile(r", (?=\S+ = (?:[^']*(?:'[^']*')*[^']*)*$)")


def parse_plan(text: str) -> DerivedStream:
    """The plan that was printed; names and texts hold no line breaks."""
    named: dict[str, DerivedStream] = {}
    blocks = [block.split("\n") for block in re.split(r"\n(?! )", text.strip("\n"))]
    for head, *below in blocks[:-1]:
        found = _NAMED.fullmatch(head)
        assert found is not None, head
        named[found[1]] = _read(found[2], below, named)
    head, *below = blocks[-1]
    return _read(head, below, named)


def _read(head: str, below: list[str], named: dict[str, DerivedStream]) -> DerivedStream:
    if head in named:
        return named[head]
    word, _, rest = head.partition(" ")
    if word == "stream":
        return stream(rest)
    inputs = [_read(each[2:], [line[2:] for line in more], named) for each, *more in _children(below)]
    return _OPERATORS[word](inputs[0], inputs[1:], rest)


def _children(lines: list[str]) -> Iterator[list[str]]:
    starts = [at for at, line in enumerate(lines) if not line.startswith("   ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start:end]


def _number(text: str) -> Fraction:
    return Fraction(text.replace(" div ", "/"))


def _quantified(way: str) -> Callable[[DerivedStream, list[DerivedStream], str], DerivedStream]:
    def read(first: DerivedStream, others: list[DerivedStream], rest: str) -> DerivedStream:
        over, _, condition = rest.partition(": ")
        return first.some(over, condition) if way == "some" else first.every(over, condition)

    return read


def _constructed(first: DerivedStream, others: list[DerivedStream], rest: str) -> DerivedStream:
    name, _, fields = rest.partition(": ")
    given = (each.partition(" = ") for each in _FIELDS.split(fields))
    return first.construct(name, {at: _value(text) for at, _, text in given})


def _value(text: str) -> str | Value:
    if text.startswith("'"):
        return constant(text[1:-1].replace("''", "'"))
    *terms, number = text.split(" + ")
    if not terms:
        return text
    return linear(
        {path: _number(factor) for path, _, factor in (each.partition(" * ") for each in terms)}, _number(number)
    )


def _ordered(first: DerivedStream, others: list[DerivedStream], rest: str) -> DerivedStream:
    keys = rest.removeprefix("by ").split(", ")
    return first.order(*(f"-{each.removesuffix(' descending')}" if " " in each else each for each in keys))


def _joined(first: DerivedStream, others: list[DerivedStream], rest: str) -> DerivedStream:
    (other,) = others
    on: list[tuple[str, str]] = []
    within: tuple[str, str, Fraction] | None = None
    for part in rest.removeprefix("on ").split(" and "):
        if found := _WITHIN.fullmatch(part):
            within = found[1], found[3], _number(found[2])
        else:
            mine, _, theirs = part.partition(" = ")
            on.append((mine, theirs))
    return first.join(other, on=on, within=within)


def _windowed(first: DerivedStream, others: list[DerivedStream], rest: str) -> DerivedStream:
    found = _WINDOW.fullmatch(f"window {rest}")
    assert found is not None, rest
    return first.window(found[3], size=_number(found[1]), step=_number(found[2]))


def _aggregated(first: DerivedStream, others: list[DerivedStream], rest: str) -> DerivedStream:
    by, _, asked = rest.partition(": ") if ": " in rest else ("", "", rest.removeprefix(": "))
    named: dict[str, list[str]] = {}
    all, but = None, ""
    if found := _OTHERS.search(asked):
        all, but, asked = found[1], found[2] or "", asked[: found.start()].removesuffix(", ")
    for part in filter(None, asked.split(", ")):
        function, _, path = part.partition(" of ")
        named.setdefault(function, []).append(path)
    groups = list(filter(None, by.removeprefix("by ").split(", ")))
    return first.aggregate(by=groups, all=all, exclude=list(filter(None, but.split(", "))), **named)


_OPERATORS: dict[str, Callable[[DerivedStream, list[DerivedStream], str], DerivedStream]] = {
    "select": lambda first, _, rest: first.select(rest),
    "some": _quantified("some"),
    "every": _quantified("every"),
    "project": lambda first, _, rest: first.project(*rest.split(", ")),
    "construct": _constructed,
    "order": _ordered,
    "union": lambda first, others, _: first.union(*others),
    "intersect": lambda first, others, _: first.intersect(*others),
    "join": _joined,
    "window": _windowed,
    "aggregate": _aggregated,
    "aggregate:": lambda first, others, rest: _aggregated(first, others, f": {rest}"),
}
