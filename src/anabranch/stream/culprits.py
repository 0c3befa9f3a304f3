"""Which items of a window, a pair or a whole stream made an evaluation fail: those with the offending values.

An operation that fails records its operand nodes on its error (`DynamicError.given`): of a sum, a comparison or a
calculation those that are no numbers, and all of them where each is valid by itself.
Predicates and loops around it add their context nodes; the innermost of these that belongs to an item decides.
Where none does, as in `1 div 0`, no item is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from anabranch.errors import DynamicError
from anabranch.stream.elements import MOST_NAMED, DeadLetter, Place
from anabranch.stream.tree import Attribute, Comment, Document, Element, Instruction, Node, Text

T = TypeVar("T")

_NODES = (Document, Element, Attribute, Text, Comment, Instruction)


def letter_for(
    error: DynamicError,
    held: Iterable[tuple[T, object]],
    show: Callable[[T], tuple[Place, str]],
    name: str | None,
    else_named: T | None = None,
) -> DeadLetter:
    """The dead letter of a failed evaluation over `held`: items with their nodes that it read.

    It names the items at fault; where there is none, `else_named`, or nothing.
    `show` gives the place and the text of an item, and `name` is the subscription's.
    """
    found, values = culprits(error, held)
    if not found and else_named is not None:
        found = [else_named]
    return letter_of(error, [show(each) for each in found[: MOST_NAMED + 1]], values, name)


def letter_of(error: DynamicError, items: Sequence[tuple[Place, str]], values: int, name: str | None) -> DeadLetter:
    """The dead letter of an evaluation that failed for these items, because of `values` values."""
    (place, raw), *others = dict.fromkeys(items) or [(Place("", "", 0), "")]
    is_cut = len(others) >= MOST_NAMED
    named = tuple(others[: MOST_NAMED - 1])
    return DeadLetter(place, error.message, raw, error.code, name, others=named, values=values if is_cut else None)


def culprits(error: DynamicError, held: Iterable[tuple[T, object]]) -> tuple[list[T], int]:
    """The items at fault among those that hold some nodes, in order, and the number of their failed values."""
    items: list[T] = []
    claims: dict[int, int | None] = {}
    for item, node in held:
        if not items or items[-1] is not item:
            items.append(item)
        at = node if isinstance(node, _NODES) else None
        while at is not None:
            known = claims.setdefault(id(at), len(items) - 1)
            if known is not None and items[known] is not item:
                claims[id(at)] = None  # the root around several items is none of them
            at = at.parent
    for operands in error.operands:
        found = [number for each in operands if (number := _holder(each, claims)) is not None]
        if found:
            return [items[number] for number in sorted(set(found))], len(found)
    return [], 0


def _holder(value: object, claims: dict[int, int | None]) -> int | None:
    at: Node | None = value if isinstance(value, _NODES) else None
    while at is not None:
        if id(at) in claims:
            return claims[id(at)]
        at = at.parent
    return None
