"""Quantify: the items of which some, or all, of the elements at a path fulfil a condition.

Law: an item comes out, unchanged, if for some (every) element at the path `over` the condition holds for that element;
its paths are relative to the element, its comparisons are those of canonical values.
`some c: ra > 5 and dec > 5` is not `c/ra > 5 and c/dec > 5`, which two elements may fulfil together (LAWS case 4).
Of no elements, `some` is false and `every` true.

Signature: the paths of the condition, below `over`, are foundation (LAWS 4.6: they stand in a `satisfies`).
Items: as they came. Accents: pass at once, as for Select. Punctuations: pass.
What the signature does not cover: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anabranch.algebra.accents.items import nodes
from anabranch.algebra.accents.sets import below, items_of
from anabranch.algebra.operators.operator import Passing, Work
from anabranch.algebra.reactions.readings import Reading, holds
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.stream.description import Description, paths
from anabranch.stream.path import Path
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class Quantify:
    """The items of which `some` or `every` element at `over` fulfils `condition`."""

    quantifier: Literal["some", "every"]
    over: Path
    condition: Description
    arity: int = 1

    @property
    def signature(self) -> AccentSignature:
        inner = [Path((*self.over.steps, *each.steps)) for each in paths(self.condition)]
        return AccentSignature(foundation=Paths.of(inner or [self.over]))

    def __str__(self) -> str:
        return f"{self.quantifier} {self.over}: {self.condition}"

    def start(self) -> Work:
        return Passing(lambda reading: (reading,) if self._holds(reading) else ())

    def _holds(self, reading: Reading) -> bool:
        condition, depth = items_of(self.condition), len(self.over.steps)
        maps = {Path(at.steps[depth:]): by for at, by in reading.maps.items() if below(at, self.over)}
        inner = (each for each in nodes(reading.tree, self.over) if isinstance(each, Element))
        verdicts = (holds(condition, Reading(each, maps)) for each in inner)
        return any(verdicts) if self.quantifier == "some" else all(verdicts)
