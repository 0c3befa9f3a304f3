"""Project: items reduced to some of their paths.

Law: an item comes out with the nodes at the kept paths, all that lies below, and the elements around them.
Paths may be named that no item has yet: an add brings them.

Signature (accents 6.2): all other paths are accumulators, and absent from the output.
Items: reduced. Accents: those on other paths are dropped; accents on kept paths come out with descriptions over kept
paths, an add as soon as it may concern an item described so, a drop or alter when it concerns all of them.
With the policy `abort` a description that names another path aborts, whatever the accent is about (accents 4).
What the signature does not cover: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.algebra.operators.operator import Passing, Work
from anabranch.algebra.reactions.readings import Node, Reading, rebuilt
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.stream.path import Path
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class Project:
    """The items with only the paths `kept`."""

    kept: frozenset[Path]
    arity: int = 1

    @property
    def signature(self) -> AccentSignature:
        others = Paths.of(self.kept).others()
        return AccentSignature(accumulator=others, absent=others)

    def __str__(self) -> str:
        return f"project {', '.join(map(str, sorted(self.kept)))}"

    def start(self) -> Work:
        return Passing(self._reduced)

    def _reduced(self, reading: Reading) -> tuple[Reading]:
        kept = Paths.of(self.kept)

        def visit(steps: tuple[str, ...], node: Node) -> bool | None:
            path = Path(steps)
            return True if path in kept else None if isinstance(node, Element) and kept.meets(path) else False

        return (replace(reading, tree=rebuilt(reading.tree, visit)),)
