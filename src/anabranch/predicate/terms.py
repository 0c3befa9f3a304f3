"""Terms: what predicates speak of, and what is known of the values they may have.

A term is a path seen from an input, say `$x/coord/cel/ra`; for one item (for one pair, in a join) it has a sequence of
values, and every value is a text, as it stands in the stream.
A text may spell a number of xs:double: a finite one, INF, -INF or NaN; if it spells none, it is a *word* here.
How many values there are (`occurs`) and which (`domain`) is a promise of a schema or of a declaration; without one
nothing is promised, and the defaults promise nothing.

Two terms are the same only if their promises are, too: what is known of a path belongs to the schema, so all predicates
over a stream take it from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar, cast

from anabranch.stream.path import Path

Class = TypeVar("Class", bound=type)


def hashed_once(cls: Class) -> Class:
    """Let the frozen objects of a class remember their hash: predicates are asked for it much more often than made.

    It stays behind when they are pickled, since another process hashes strings otherwise.
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


Occurs: TypeAlias = Literal["one", "optional", "many"]
"""Exactly one value; at most one; any number."""


@dataclass(frozen=True, slots=True)
class Text:
    """Any text: numbers, NaN, words."""


@dataclass(frozen=True, slots=True)
class Reals:
    """Finite numbers, dense, from `low` to `high`, both included; None is no bound."""

    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Integers:
    """Whole numbers from `low` to `high`, both included; None is no bound."""

    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Finite:
    """These texts and no others; some may be numbers."""

    texts: frozenset[str]


Domain: TypeAlias = Text | Reals | Integers | Finite
TEXT = Text()


@hashed_once
@dataclass(frozen=True)
class Term:
    """The values at a path of an input; `input` is what query text writes before the path (`$x`, or nothing)."""

    input: str
    path: Path
    occurs: Occurs = "many"
    domain: Domain = field(default=TEXT)
    raises: bool = True
    """Whether comparing a word with a number raises, as in a query, or just does not hold, as in a description."""

    def __str__(self) -> str:
        return "/".join(each for each in (self.input, *self.path.steps) if each) or "."
