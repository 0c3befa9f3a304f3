"""Lineage: what stands at which path of an output item, and where it comes from.

It follows from the text of a query alone (`tracing.py`), and determines which accents come out of it; queries that
differ in the constants of their conditions have the same lineage.

An *output item* is an element at the top of a piece; its paths are relative to it, and its own value is at `.`.
A *site* is a place in an output item with its *origin*: a copied node or value of an input, an aggregate of a path, an
affine computation of one of these, or None for anything else.
Which sites an output item has may depend on conditions; all kinds of output items that a query can make are listed.

* An accent on an input's path comes out at an output path if everything that may stand there, in all kinds of output
items, has that one origin. Else the output stays in the units of query start: the accent is *absorbed*.
Either way the square holds, because accents that came out are applied to all later output (`outlet.py`); the rule keeps
a unit change from being applied to values that never had the unit.
* A drop or add comes out only if nothing else lies below that path, and if what is computed there vanishes with its
  origin: a sum of nothing is 0 and still stands there.
* A description can name an input's path if each output item has exactly one copy of it, always at the same place; all
other paths are hidden, so that accents described by them are accumulated.
Paths inside an element with a value of its own cannot be named, as accents on that value may not name them.
* Foundation paths are those in conditions (LAWS 4.6), each with the word of the construct that needs it.

A *display* over edited streams has one unit at each of its paths, so no description can name any (LAWS 4.9 e); its
output items are its outermost elements, as they are the items of the answer as a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from typing import Literal, TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.accents.sets import below
from anabranch.algebra.reactions.signature import following
from anabranch.language.checks.outputs import NO_OUTPUTS, QueryOutputs
from anabranch.stream.affine import MAX_DIGITS, Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path

Look: TypeAlias = tuple[int, Path]
"""An input, and a path of its items, which may have ANY and DEEP among its steps."""
ANY = "*"
"""The step that stands for any one name."""
DEEP = "**"
"""The step that stands for any number of names, also none."""

_WRITTEN = 10**MAX_DIGITS


@dataclass(frozen=True, slots=True)
class Origin:
    """`a * f(x) + b`, for the values `x` at a path of an input; without a function, for the one value there."""

    input: int
    path: Path
    function: FunctionName | None = None
    a: Fraction = Fraction(1)
    b: Fraction = Fraction(0)

    @property
    def is_copy(self) -> bool:
        return self.function is None and self.a == 1 and not self.b

    @property
    def vanishes(self) -> bool:
        """Whether it is empty when there are no values at the path."""
        return self.function is None or not AGGREGATES[self.function].is_total

    def follows(self, by: Affine) -> Affine | None:
        """How it changes when the values at the path change their unit; None where that is unknown."""
        inner = by if self.function is None else AGGREGATES[self.function].follows(by)
        if inner is None:
            return None
        net = following(inner, self.a, self.b)
        parts = (part for each in (net.a, net.b) for part in (abs(each.numerator), each.denominator))
        return net if all(part < _WRITTEN for part in parts) else None


@dataclass(frozen=True, slots=True)
class Site:
    """A place in an output item: one value, a whole tree, or the elements inside one."""

    at: Path
    origin: Origin | None
    extent: Literal["value", "tree", "inside"] = "value"
    always: bool = False
    """Whether every output item of its kind has it exactly once, if the input item has the path."""

    def holds(self, out: Path) -> bool:
        """Whether a path of the output belongs to it."""
        if self.extent == "value":
            return out == self.at
        rest = out.steps[len(self.at.steps) :]
        return below(out, self.at) and (self.extent == "tree" or (bool(rest) and not rest[0].startswith("@")))

    def origin_of(self, out: Path) -> Origin | None:
        """The origin of the value at one of its paths."""
        if self.origin is None or out == self.at:
            return self.origin
        return replace(self.origin, path=Path((*self.origin.path.steps, *out.steps[len(self.at.steps) :])))

    def place_of(self, path: Path) -> Path | None:
        """The place of an input's path in it."""
        if self.origin is None or not below(path, self.origin.path):
            return None
        out = Path((*self.at.steps, *path.steps[len(self.origin.path.steps) :]))
        return out if self.holds(out) else None

    def under(self, name: str, always: bool) -> Site:
        """The same site inside an element of this name."""
        return replace(self, at=Path((name, *self.at.steps)), always=self.always and always)


@dataclass(frozen=True, slots=True)
class Need:
    """A foundation path, and the word of the construct that needs it."""

    input: int
    path: Path
    word: str


@dataclass(frozen=True, slots=True)
class Target:
    """A path of the output at which accents on a path of the input come out."""

    at: Path
    origin: Origin


@dataclass(frozen=True, slots=True)
class Lineage:
    """The sites of a query's output, and its foundation paths."""

    streams: tuple[tuple[str, ...], ...]
    """The stream of each input; several where an input is the Union of them."""
    needs: tuple[Need, ...] = ()
    pairs: tuple[tuple[Look, ...], ...] = ()
    """The paths of different inputs that a condition compares with each other (LAWS 4.2 c)."""
    items: tuple[tuple[Site, ...], ...] = ()
    """The kinds of output items."""
    looks: frozenset[Look] = frozenset()
    """All paths that the query reads, for any purpose."""
    outputs: QueryOutputs = NO_OUTPUTS
    """What its results may be: items of a stream of JSON that leave as they are, are JSON (LAWS 7.3)."""
    is_display: bool = False
    """Whether its output is a display, whose units change for all of it at once."""

    def need(self, input: int, path: Path) -> Need | None:
        """The construct that needs a path, or a path above or below it."""
        found = (each for each in self.needs if each.input == input and leads(each.path, path))
        return next(found, None)

    def reads(self, input: int, path: Path) -> bool:
        """Whether the query reads a path, or one above or below it."""
        return any(each == input and leads(look, path) for each, look in self.looks)

    def looks_at(self, stream: str, path: Path) -> bool:
        """Whether any input over a stream reads a path, or one above or below it."""
        return any(stream in names and self.reads(input, path) for input, names in enumerate(self.streams))

    def shows(self, input: int, path: Path) -> bool:
        """Whether accents on a path of an input can come out at all."""
        return any(self.targets(input, kind) for kind in (Alter(path, _TWICE), Drop(path)))

    def targets(self, input: int, evolution: Add | Drop | Alter) -> tuple[Target, ...]:
        """Where in the output an accent on an input's path comes out."""
        found: dict[Path, Origin] = {}
        for site in self._sites:
            if site.origin is None or site.origin.input != input:
                continue
            out = site.place_of(evolution.path)
            if out is None and not isinstance(evolution, Alter) and below(site.origin.path, evolution.path):
                out = site.at if site.extent != "inside" else None
            origin = None if out is None else site.origin_of(out)
            if out is not None and origin is not None:
                found.setdefault(out, origin)
        return tuple(Target(out, origin) for out, origin in found.items() if self._comes_out(out, origin, evolution))

    def _comes_out(self, out: Path, origin: Origin, evolution: Add | Drop | Alter) -> bool:
        if not self._is_only(out, origin):
            return False
        if isinstance(evolution, Alter):
            return origin.follows(evolution.by) is not None
        return origin.vanishes and not any(below(each.at, out) and each.at != out for each in self._sites)

    def seen(self, input: int, path: Path) -> Path | None:
        """The name of an input's path in descriptions of the output; None where it has none."""
        if self.is_display:
            return None
        copies = [self._copies(sites, input, path) for sites in self.items]
        for out in copies[0] if copies else ():
            everywhere = all(each.count(out) == 1 for each in copies)
            lies_inside = any(
                each.extent == "value" and each.origin is not None and below(out, each.at) and out != each.at
                for each in self._sites
            )
            if everywhere and not lies_inside and self._is_only(out, Origin(input, path)):
                return out
        return None

    def _copies(self, sites: tuple[Site, ...], input: int, path: Path) -> list[Path]:
        """The places where every output item of one kind has a copy of a path."""
        whole = (each for each in sites if each.always and each.origin is not None and each.origin.is_copy)
        found = (each.place_of(path) for each in whole if each.origin is not None and each.origin.input == input)
        return [each for each in found if each is not None]

    def _is_only(self, out: Path, origin: Origin) -> bool:
        """Whether everything that may stand at a path of the output has this origin."""
        return all(each.origin_of(out) == origin for each in self._sites if each.holds(out))

    @property
    def _sites(self) -> Iterator[Site]:
        return (site for sites in self.items for site in sites)


_TWICE = Affine(Fraction(2), Fraction(0))


def leads(look: Path, path: Path) -> bool:
    """Whether a query that reads the path `look` also reads `path`, or one above or below it.

    Above a part of any depth it is unknown what lies below, so there a path counts as another one.
    """
    plain = tuple(takewhile(lambda step: step != DEEP, look.steps))
    if len(path.steps) <= len(plain):
        return all(mine in (ANY, step) for mine, step in zip(plain, path.steps, strict=False))
    places = _skipped({0}, look)
    for step in path.steps:
        if len(look.steps) in places:
            return True
        fitting = {each for each in places if look.steps[each] in (DEEP, ANY, step)}
        places = _skipped({each if look.steps[each] == DEEP else each + 1 for each in fitting}, look)
    return len(look.steps) in places


def _skipped(places: set[int], look: Path) -> set[int]:
    """These positions in a path, and those reached from them without a step."""
    for place, step in enumerate(look.steps):
        if step == DEEP and place in places:
            places.add(place + 1)
    return places
