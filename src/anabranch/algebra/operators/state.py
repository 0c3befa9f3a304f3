"""What operators remember, as plain JSON values: readings with their trees, maps and doubts.

Nothing is lost: trees keep their names, prefixes and declarations, maps and sums their fractions, which are written
with the digits of base 16, since Python reads others only up to a length.
A tree is written by itself; what was declared around it has to stand on it (`branch/plans/plans.py` sees to that).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from anabranch.aggregates.partial import Failure, Partial, Ranked
from anabranch.algebra.reactions.readings import Reading
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Comment, Element, Instruction, Name, Text


def reading_to_json(reading: Reading) -> list[Any]:
    """A reading; `reading_from_json` gives it back."""
    maps = [[list(path.steps), _digits(by.a), _digits(by.b)] for path, by in reading.maps.items()]
    unknown = [[list(path.steps), reason] for path, reason in reading.unknown.items()]
    return [_tree_to_json(reading.tree), maps, unknown]


def reading_from_json(value: list[Any]) -> Reading:
    """The reading that was written so."""
    tree, maps, unknown = value
    return Reading(
        _tree_from_json(tree),
        {Path(tuple(steps)): Affine(_fraction(a), _fraction(b)) for steps, a, b in maps},
        {Path(tuple(steps)): reason for steps, reason in unknown},
    )


def _tree_to_json(tree: Element) -> list[Any]:
    attributes = [[*name_to_json(each.name), each.value] for each in tree.attributes]
    return [*name_to_json(tree.name), tree.namespaces, attributes, [_child_to_json(each) for each in tree.children]]


def _child_to_json(child: Child) -> Any:
    match child:
        case Element():
            return _tree_to_json(child)
        case Text():
            return child.value
        case Comment():
            return {"comment": child.value}
        case Instruction():
            return {"target": child.target, "value": child.value}


def _tree_from_json(value: list[Any]) -> Element:
    local, uri, prefix, namespaces, attributes, children = value
    tree = Element(Name(local, uri, prefix), dict(namespaces))
    for name, of, before, text in attributes:
        tree.set(Name(name, of, before), text)
    for each in children:
        tree.append(_child_from_json(each))
    return tree


def _child_from_json(value: Any) -> Child:
    match value:
        case str():
            return Text(value)
        case list():
            return _tree_from_json(value)
        case {"comment": text}:
            return Comment(text)
        case _:
            return Instruction(value["target"], value["value"])


def name_to_json(name: Name) -> list[str]:
    """A name as the arguments to make it of."""
    return [name.local, name.uri, name.prefix]


# --- partials -----------------------------------------------------------------------------------------------------


def partial_to_json(partial: Partial) -> list[Any]:
    """What is known of some values."""
    least, greatest = (None if each is None else _ranked(each) for each in (partial.least, partial.greatest))
    failure = None if partial.failure is None else list(partial.failure)
    whole = [partial.count, _digits(Fraction(partial.total)), partial.places, partial.special]
    return [*whole, least, greatest, failure, _digits(partial.rest)]


def partial_from_json(value: list[Any]) -> Partial:
    """The partial that was written so."""
    count, total, places, special, least, greatest, failure, rest = value
    low, high = (None if each is None else _rank_of(each) for each in (least, greatest))
    failed = None if failure is None else Failure.read(failure)
    return Partial(count, int(_fraction(total)), places, special, low, high, failed, _fraction(rest))


def _ranked(ranked: Ranked) -> list[Any]:
    return [ranked.value.hex(), ranked.order, None if ranked.exact is None else _digits(ranked.exact)]


def _rank_of(value: list[Any]) -> Ranked:
    double, order, exact = value
    return Ranked(float.fromhex(double), order, None if exact is None else _fraction(exact))


def _digits(value: Fraction) -> str:
    return f"{value.numerator:x}/{value.denominator:x}"


def _fraction(text: str) -> Fraction:
    above, _, below = text.partition("/")
    return Fraction(int(above, 16), int(below, 16))
