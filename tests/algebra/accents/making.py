"""Accented streams for tests, written as short text."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.algebra.accents.sets import UNDECLARED, Domains, items_of
from anabranch.predicate import Predicate
from anabranch.stream import affine, description
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item, Place, Punctuation, StreamElement
from anabranch.stream.path import Path
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, Name, Text

PLACE = Place("sensors", "0", 0)


def path(text: str) -> Path:
    return Path.parse(text)


def items(text: str, domains: Domains = UNDECLARED) -> Predicate:
    """The set that a description describes."""
    return items_of(description.parse(text), domains)


def add(of: str, where: str = "") -> Accent:
    return Accent(description.parse(where), Add(path(of)), PLACE)


def drop(of: str, where: str = "") -> Accent:
    return Accent(description.parse(where), Drop(path(of)), PLACE)


def alter(of: str, by: str, where: str = "") -> Accent:
    return Accent(description.parse(where), Alter(path(of), affine.parse(by)), PLACE)


def closed(where: str) -> Punctuation:
    return Punctuation(description.parse(where), PLACE)


def tree(**values: object) -> Element:
    """`<r>` with one child per value."""
    root = Element(Name("r"))
    for name, value in values.items():
        child = Element(Name(name))
        child.append(Text(str(value)))
        root.append(child)
    return root


def item(**values: object) -> Item:
    return Item(tree(**values), PLACE)


def shown(elements: Iterable[StreamElement]) -> list[str]:
    """Elements as short text: `s=1 t=20`, `add p where s = 1`, `alter t by . * 2 where true()`."""
    return [_shown(each) for each in elements]


def _shown(element: StreamElement) -> str:
    match element:
        case Item(root):
            return " ".join(f"{each.name}={_text(each)}" for each in root.children if isinstance(each, Element))
        case Accent(where, evolution):
            by = f" by {evolution.by}" if isinstance(evolution, Alter) else ""
            return f"{type(evolution).__name__.lower()} {evolution.path}{by} where {where}"
        case Punctuation(where):
            return f"closed {where}"
        case _:
            raise AssertionError(element)


def _text(element: Element) -> str:
    return serialize(element).partition(">")[2].rpartition("<")[0]
