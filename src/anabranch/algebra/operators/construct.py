"""Construct: items of another form, with values copied, computed or given.

Law: one item comes out for each item, with the fields in their order.
A *copy* has all nodes at a path, with their content, under another name; a *constant* is a text.
A *linear* field is a sum of multiples of values and a number; it is exact, in canonical values, and is left out where
one of the values is missing (LAWS 2: an empty operand gives nothing).
A value that is no number, or several where one is expected, drop the item with a failure (LAWS 2.4); of several values
for an attribute the first is taken.

Signature: nothing is foundation, for a path that is only returned is not (LAWS 4.6).
All paths except copied ones are accumulators; those that are neither copied nor the one path of a linear field are
absent: a sum of several paths absorbs (LAWS 4.7).
Items: built anew.
Accents: come out by the names of the output, once for every place of a path; a linear field of one path follows its
alters by its map (`algebra/reactions/signature.py`).
Punctuations: come out where the output can describe them.
What the signature does not cover: the names, which are in the renaming.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from anabranch.algebra.accents.items import nodes, number
from anabranch.algebra.accents.sets import below
from anabranch.algebra.operators.operator import Passing, Work
from anabranch.algebra.reactions.readings import Reading, led_to
from anabranch.algebra.reactions.signature import AccentSignature, Paths, Renaming, Stands
from anabranch.errors import DynamicError
from anabranch.predicate.writing import number_text
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Attribute, Element, Name, Text, copy, string_value
from anabranch.values.numbers import no_number, spell_double


@dataclass(frozen=True, slots=True)
class Copy:
    """The nodes at a path."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A fixed text."""

    text: str

    def __str__(self) -> str:
        quoted = self.text.replace("'", "''")
        return f"'{quoted}'"


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of multiples of values and of a number; each path occurs once, with a factor other than 0."""

    terms: tuple[tuple[Fraction, Path], ...]
    constant: Fraction = Fraction(0)

    def __call__(self, values: Sequence[Fraction | float]) -> Fraction | float:
        found: Fraction | float = self.constant
        for (factor, _), value in zip(self.terms, values, strict=True):
            found += factor * value
        return found

    def __str__(self) -> str:
        terms = [f"{path} * {number_text(factor)}" for factor, path in self.terms]
        return " + ".join([*terms, number_text(self.constant)])


Value: TypeAlias = Copy | Constant | Linear


@dataclass(frozen=True, slots=True)
class Construct:
    """An item called `name` for each item, with these fields; no field lies in another."""

    name: str
    fields: tuple[tuple[Path, Value], ...]
    arity: int = 1

    def __post_init__(self) -> None:
        paths = [path for path, _ in self.fields]
        assert not any(below(one, other) for one in paths for other in paths if one is not other)

    @property
    def renaming(self) -> Renaming:
        return Renaming(tuple(found for at, value in self.fields if (found := _stands(at, value)) is not None))

    @property
    def signature(self) -> AccentSignature:
        shown = Paths.of(each.of for each in self.renaming.stands)
        copied = Paths.of(each.of for each in self.renaming.stands if each.is_copy)
        return AccentSignature(
            accumulator=copied.others(),
            absent=shown.others(),
            computes=Paths.of(path for _, value in self.fields if isinstance(value, Linear) for _, path in value.terms),
            renaming=self.renaming,
        )

    def __str__(self) -> str:
        return f"construct {self.name}: {', '.join(f'{at} = {value}' for at, value in self.fields)}"

    def start(self) -> Work:
        failures: list[DynamicError] = []
        return Passing(lambda reading: self._built(reading, failures), failures)

    def _built(self, reading: Reading, failures: list[DynamicError]) -> Iterator[Reading]:
        tree, maps = Element(Name(self.name)), {}
        for at, value in self.fields:
            match value:
                case Copy(path):
                    for node in nodes(reading.tree, path):
                        _place(tree, at, node)
                case Constant(text):
                    _place(tree, at, text)
                case Linear():
                    try:
                        found = _computed(value, reading)
                    except DynamicError as error:
                        failures.append(error)
                        return
                    if isinstance(found, Fraction):
                        _place(tree, at, "0")
                        maps[at] = Affine(Fraction(1), found)
                    elif found is not None:
                        _place(tree, at, spell_double(found))
        for path, by in reading.maps.items():
            maps.update({each.at: by for each in self.renaming.places(path) if each.is_copy})
        unknown = {each.at: reason for path, reason in reading.unknown.items() for each in self.renaming.places(path)}
        yield Reading(tree, maps, unknown)


def _stands(at: Path, value: Value) -> Stands | None:
    match value:
        case Copy(path):
            return Stands(path, at)
        case Linear(((factor, path),), constant):
            return Stands(path, at, factor, constant, is_copy=False)
        case _:
            return None


def _computed(value: Linear, reading: Reading) -> Fraction | float | None:
    """The exact value of a field, None where a value is missing; a double where one of them is INF or NaN."""
    found: list[Fraction | float] = []
    for _, path in value.terms:
        texts = reading.texts(path)
        if len(texts) > 1:
            raise DynamicError(f"arithmetic takes one value at '{path}', not {len(texts)}", code="XPTY0004")
        for text in texts:
            exact = number(text)
            if exact is None:
                raise no_number(text)
            found.append(exact if isinstance(exact, Fraction) else float(exact))
    return value(found) if len(found) == len(value.terms) else None


def _place(tree: Element, at: Path, what: Element | Attribute | str) -> None:
    """Put a value at a path: a copy of a node under its name there, or a text."""
    *above, last = at.steps
    tree = led_to(tree, map(Name, above))
    if last.startswith("@"):
        if tree.get(last[1:]) is None:
            tree.set(Name(last[1:]), what if isinstance(what, str) else string_value(what))
        return
    fresh = Element(Name(last))
    if isinstance(what, Element):
        fresh.namespaces.update(what.namespaces)
        for attribute in what.attributes:
            fresh.set(attribute.name, attribute.value)
        for child in what.children:
            fresh.append(copy(child))
    else:
        fresh.append(Text(what if isinstance(what, str) else what.value))
    tree.append(fresh)
