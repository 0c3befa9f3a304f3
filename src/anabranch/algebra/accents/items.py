"""Values in items: read at a path as raw text, and compared exactly.

An exact fraction is written as a decimal where possible, else as a quotient `10/3`, which never leaves the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from anabranch.predicate.writing import number_text
from anabranch.stream.path import Path
from anabranch.stream.schema import children_of
from anabranch.stream.tree import Attribute, Element, string_value
from anabranch.values.numbers import exact_number

_QUOTIENT = re.compile(r"-?[0-9]+/[1-9][0-9]*\Z", re.ASCII)


def nodes(tree: Element, path: Path) -> Iterator[Element | Attribute]:
    """The nodes at a path of an item, in document order."""
    if not path.steps:
        yield tree
        return
    found = [tree]
    *above, last = path.steps
    for step in above:
        found = [child for each in found for child in children_of(each) if str(child.name) == step]
    for each in found:
        if last.startswith("@"):
            yield from (attribute for attribute in each.attributes if str(attribute.name) == last[1:])
        else:
            yield from (child for child in children_of(each) if str(child.name) == last)


def values(tree: Element, path: Path) -> list[str]:
    """The values at a path of an item."""
    return [string_value(node) for node in nodes(tree, path)]


def number(text: str) -> Fraction | Decimal | None:
    """The exact number of a text, INF and NaN as decimals; None for a word."""
    value = exact_number(text)
    if value is None:
        return Fraction(text) if _QUOTIENT.match(text) else None
    return Fraction(value) if value.is_finite() else value


def spelled(value: Fraction) -> str:
    """A fraction as text that `number` reads."""
    return number_text(value).replace(" div ", "/")


def leaves(tree: Element) -> Iterator[Path]:
    """The paths of an item's values: its attributes, and its elements without elements in them; each once."""
    seen: set[Path] = set()
    pending: list[tuple[Element, tuple[str, ...]]] = [(tree, ())]
    while pending:
        element, steps = pending.pop()
        inside = list(children_of(element))
        here = [Path((*steps, f"@{attribute.name}")) for attribute in element.attributes]
        if steps and not inside:
            here.append(Path(steps))
        for path in here:
            if path not in seen:
                seen.add(path)
                yield path
        pending.extend((child, (*steps, str(child.name))) for child in reversed(inside))
