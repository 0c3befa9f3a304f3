"""What flows between operators besides items: accents and punctuations, for sets of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from anabranch.predicate import Predicate
from anabranch.stream.elements import Add, Alter, Drop

Evolution: TypeAlias = Add | Drop | Alter


@dataclass(frozen=True, slots=True)
class Change:
    """An accent: the items that it concerns, told by their values at its place, and what changes for them."""

    where: Predicate
    evolution: Evolution


@dataclass(frozen=True, slots=True)
class Closing:
    """A punctuation: none of the items, told by their values at its place, comes any more."""

    where: Predicate


@dataclass(frozen=True, slots=True)
class LetOut:
    """A change that comes out, and the set of items in canonical values."""

    change: Change
    items: Predicate
