"""Union: the items of several inputs, in the order in which they arrive.

Law: every item comes out once, unchanged except for its units. A stream of several partitions is the Union of its
partitions (LAWS 1.4).

Signature (accents 6.2): all paths are merge paths.
Items: pass; a value whose unit has changed on some inputs only is written in the old unit.
Accents: an add comes out where no input had the path before, a drop where none has it any more, an alter where it is
next for all inputs (LAWS 4.2 d). The state is sets of items per input, which also handles what the paper's lists of
accents lose, a path added twice or alters in different orders.
Punctuations: come out when all inputs have given them.
What the signature does not cover: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra.operators.operator import Passing, Work
from anabranch.algebra.reactions.signature import ALL_PATHS, AccentSignature


@dataclass(frozen=True, slots=True)
class Union:
    """The items of `arity` inputs."""

    arity: int = 2

    @property
    def signature(self) -> AccentSignature:
        return AccentSignature(merge=ALL_PATHS)

    def __str__(self) -> str:
        return "union"

    def start(self) -> Work:
        return Passing(lambda reading: (reading,))
