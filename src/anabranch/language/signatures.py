"""The built-in functions as the checks know them: how many arguments, and what kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.aggregates import AGGREGATES


@dataclass(frozen=True, slots=True)
class Signature:
    """How a function may be called; with `context`, leaving out the argument means the context item."""

    least: int
    most: int
    context: bool = False
    numeric: bool = False

    def accepts(self, count: int) -> bool:
        return self.least <= count <= self.most or (self.context and count == 0)


_NUMBER = Signature(1, 1, numeric=True)
_ONE = Signature(1, 1)
_TWO = Signature(2, 2)

SIGNATURES: Mapping[str, Signature] = {
    **dict.fromkeys(AGGREGATES, _NUMBER),
    **dict.fromkeys(("abs", "floor", "ceiling"), _NUMBER),
    **dict.fromkeys(("round", "round-half-to-even"), Signature(1, 2, numeric=True)),
    **dict.fromkeys(("position", "last"), Signature(0, 0, numeric=True)),
    **dict.fromkeys(("head", "tail", "reverse"), _ONE),
    "subsequence": Signature(2, 3),
    **dict.fromkeys(("not", "boolean", "empty", "exists", "data", "distinct-values", "upper-case", "lower-case"), _ONE),
    **dict.fromkeys(("contains", "starts-with", "ends-with", "substring-before", "substring-after"), _TWO),
    **dict.fromkeys(("true", "false"), Signature(0, 0)),
    **dict.fromkeys(("string", "normalize-space", "name", "local-name"), Signature(1, 1, context=True)),
    **dict.fromkeys(("number", "string-length"), Signature(1, 1, context=True, numeric=True)),
    "concat": Signature(2, 1_000),
    "string-join": Signature(1, 2),
    "substring": Signature(2, 3),
    "translate": Signature(3, 3),
}
