"""Select: the items that fulfil a condition.

Law: an item comes out, unchanged, if and only if the condition holds for its canonical values.
An item that cannot be compared (a word with a number) does not fulfil a comparison, and fulfils its `not(...)`.

Signature (accents 6.2): the paths of the condition are foundation.
Items: unchanged. Accents: pass at once; an alter of a compared path needs no adjusted constants, since the condition is
evaluated on canonical values, exactly (LAWS 4.3). Punctuations: pass.
What the signature does not cover: nothing. The paper contradicts itself on an add of a foundation path (4: not
propagated, 6.1: propagated); we propagate it, and a valid stream has no such accent.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra.accents.sets import items_of
from anabranch.algebra.operators.operator import Passing, Work
from anabranch.algebra.reactions.readings import holds
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.stream.description import Description, paths


@dataclass(frozen=True, slots=True)
class Select:
    """The items for which `condition` holds."""

    condition: Description
    arity: int = 1

    @property
    def signature(self) -> AccentSignature:
        return AccentSignature(foundation=Paths.of(paths(self.condition)))

    def __str__(self) -> str:
        return f"select {self.condition}"

    def start(self) -> Work:
        condition = items_of(self.condition)
        return Passing(lambda reading: (reading,) if holds(condition, reading) else ())
