"""Boolean trees: `and`, `or` and `not` over leaves of any kind.

The same tree serves accents and punctuations (`stream/description.py`), sets of items (`predicate/`), conditions over
columns and over pairs of items (`columnar/`), and tests of aggregates (`branch/panes/`).
They differ in their leaves and in the result of an evaluation: two values, three values in columns, sets, text.
All of these are `fold` with other functions; a tree itself knows no evaluation.

Trees are plain values without a hidden normal form: `and_`, `or_` and `not_` only flatten, drop duplicates and
constants.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

Class = TypeVar("Class", bound=type)
Leaf = TypeVar("Leaf")
Leaf_co = TypeVar("Leaf_co", covariant=True)
Result = TypeVar("Result")


def hashed_once(cls: Class) -> Class:
    """Cache the hash of a class's frozen objects: trees are hashed much more often than made.

    The cached hash is not pickled, since another process hashes strings differently.
    """
    reckon = cast(Callable[[object], int], cls.__hash__)

    def __hash__(self: Any) -> int:  # noqa: N807
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = reckon(self)
        return known

    def __reduce__(self: Any) -> tuple[type, tuple[object, ...]]:  # noqa: N807
        return cls, tuple(getattr(self, each.name) for each in fields(self))

    setattr(cls, "__hash__", __hash__)  # noqa: B010  # mypy knows no methods that are replaced
    setattr(cls, "__reduce__", __reduce__)  # noqa: B010
    return cls


@hashed_once
@dataclass(frozen=True)
class And(Generic[Leaf_co]):
    """All parts hold; without parts, always."""

    parts: tuple[Tree[Leaf_co], ...]

    def __str__(self) -> str:
        return " and ".join(_operand(each, And, Or) for each in self.parts) or "true()"


@hashed_once
@dataclass(frozen=True)
class Or(Generic[Leaf_co]):
    """Some part holds; without parts, never."""

    parts: tuple[Tree[Leaf_co], ...]

    def __str__(self) -> str:
        return " or ".join(_operand(each, Or) for each in self.parts) or "false()"


@hashed_once
@dataclass(frozen=True)
class Not(Generic[Leaf_co]):
    """The part does not hold; this includes items that lack what the part names."""

    part: Tree[Leaf_co]

    def __str__(self) -> str:
        return f"not({self.part})"


Tree: TypeAlias = Leaf_co | And[Leaf_co] | Or[Leaf_co] | Not[Leaf_co]
EVERYTHING: And[Any] = And(())
NOTHING: Or[Any] = Or(())


def _operand(part: object, *looser: type) -> str:
    """A part that binds no tighter than its context stands in parentheses, unless it is true() or false()."""
    return f"({part})" if isinstance(part, looser) and part not in (EVERYTHING, NOTHING) else str(part)


def and_(*parts: Tree[Leaf]) -> Tree[Leaf]:
    """The conjunction; of nothing, everything."""
    flat = _flat(parts, And)
    return NOTHING if NOTHING in flat else flat[0] if len(flat) == 1 else And(flat)


def or_(*parts: Tree[Leaf]) -> Tree[Leaf]:
    """The disjunction; of nothing, nothing."""
    flat = _flat(parts, Or)
    return EVERYTHING if EVERYTHING in flat else flat[0] if len(flat) == 1 else Or(flat)


def not_(part: Tree[Leaf]) -> Tree[Leaf]:
    """The complement."""
    match part:
        case Not(inner):
            return inner
        case And(()):
            return NOTHING
        case Or(()):
            return EVERYTHING
        case _:
            return Not(part)


def _flat(parts: tuple[Tree[Leaf], ...], kind: type[And[Any]] | type[Or[Any]]) -> tuple[Tree[Leaf], ...]:
    found: dict[Tree[Leaf], None] = {}
    for part in parts:
        found.update(dict.fromkeys(part.parts if isinstance(part, kind) else (part,)))
    return tuple(found)


def leaves(tree: Tree[Leaf]) -> Iterator[Leaf]:
    """All leaves, from left to right."""
    match tree:
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case leaf:
            yield leaf


def fold(
    tree: Tree[Any],
    leaf: Callable[[Any], Result],
    conjunction: Callable[[Iterator[Result]], Result],
    disjunction: Callable[[Iterator[Result]], Result],
    negation: Callable[[Result], Result],
) -> Result:
    """Evaluate a tree from the values of its leaves; parts are evaluated lazily, from the left."""
    match tree:
        case And(parts):
            return conjunction(fold(part, leaf, conjunction, disjunction, negation) for part in parts)
        case Or(parts):
            return disjunction(fold(part, leaf, conjunction, disjunction, negation) for part in parts)
        case Not(part):
            return negation(fold(part, leaf, conjunction, disjunction, negation))
        case _:
            return leaf(tree)


def holds(tree: Tree[Any], leaf: Callable[[Any], bool]) -> bool:
    """Whether a tree holds, given the truth of each leaf."""
    return fold(tree, leaf, all, any, lambda held: not held)


def decided(tree: Tree[Any], leaf: Callable[[Any], bool | None]) -> bool | None:
    """The same where the truth of some leaves is unknown (None); None where that leaves the tree open."""

    def joined(parts: Iterator[bool | None], decisive: bool) -> bool | None:
        found = set(parts)
        return decisive if decisive in found else None if None in found else not decisive

    return fold(
        tree,
        leaf,
        lambda parts: joined(parts, decisive=False),
        lambda parts: joined(parts, decisive=True),
        lambda held: None if held is None else not held,
    )


def replaced(tree: Tree[Any], leaf: Callable[[Any], Tree[Leaf]]) -> Tree[Leaf]:
    """The tree with each leaf replaced by a tree."""
    match tree:
        case And(parts):
            return and_(*(replaced(part, leaf) for part in parts))
        case Or(parts):
            return or_(*(replaced(part, leaf) for part in parts))
        case Not(part):
            return not_(replaced(part, leaf))
        case _:
            return leaf(tree)


def mapped(tree: Tree[Any], leaf: Callable[[Any], Tree[Leaf]]) -> Tree[Leaf]:
    """The same, with the rest of the tree unchanged."""
    match tree:
        case And(parts):
            return And(tuple(mapped(part, leaf) for part in parts))
        case Or(parts):
            return Or(tuple(mapped(part, leaf) for part in parts))
        case Not(part):
            return Not(mapped(part, leaf))
        case _:
            return leaf(tree)


# --- comparisons --------------------------------------------------------------------------------------------

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
"""The operators of most leaves."""
MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`x op y` is `y MIRRORED[op] x`."""
OPPOSITE: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The operator that holds between two ordered values where `op` does not."""
COMPARES: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
