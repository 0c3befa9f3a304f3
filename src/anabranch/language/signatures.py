"""The built-in functions as the checks know them: how many arguments, and what kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.aggregates import AGGREGATES
from anabranch.language.objects import ARRAY, ARRAY_OF, CALL, LOOKUP, MEMBER, MEMBERS, OBJECT
from anabranch.values.casts import CASTS


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
BOUNDS = ("window-start", "window-end")
"""The functions that give the bounds of a window (LAWS 3.1)."""

COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "dateTime": ("year", "month", "day", "hours", "minutes", "seconds"),
    "date": ("year", "month", "day"),
    "time": ("hours", "minutes", "seconds"),
    "duration": ("years", "months", "days", "hours", "minutes", "seconds"),
}
"""The numbers that times and durations are made of, each with a function, as in `year-from-dateTime()`."""
ZONED = ("dateTime", "date", "time")
"""What has a zone: `timezone-from-date()`, `adjust-date-to-timezone()`."""

SIGNATURES: Mapping[str, Signature] = {
    **dict.fromkeys(AGGREGATES, _NUMBER),
    **dict.fromkeys(("abs", "floor", "ceiling"), _NUMBER),
    **dict.fromkeys(("round", "round-half-to-even"), Signature(1, 2, numeric=True)),
    **dict.fromkeys(("position", "last"), Signature(0, 0, numeric=True)),
    **dict.fromkeys(("head", "tail", "reverse"), _ONE),
    "subsequence": Signature(2, 3),
    **dict.fromkeys(("not", "boolean", "empty", "exists", "data", "distinct-values", "upper-case", "lower-case"), _ONE),
    **dict.fromkeys(BOUNDS, _ONE),
    **dict.fromkeys(("contains", "starts-with", "ends-with", "substring-before", "substring-after"), _TWO),
    **dict.fromkeys(("true", "false"), Signature(0, 0)),
    **dict.fromkeys(("string", "normalize-space", "name", "local-name"), Signature(1, 1, context=True)),
    **dict.fromkeys(("number", "string-length"), Signature(1, 1, context=True, numeric=True)),
    "concat": Signature(2, 1_000),
    "string-join": Signature(1, 2),
    "substring": Signature(2, 3),
    "translate": Signature(3, 3),
    **dict.fromkeys(CASTS, _ONE),
    **dict.fromkeys(("xs:integer", "xs:decimal", "xs:double"), _NUMBER),
    **{f"{part}-from-{kind}": _NUMBER for kind, names in COMPONENTS.items() for part in names},
    **{f"timezone-from-{kind}": _ONE for kind in ZONED},
    **{f"adjust-{kind}-to-timezone": Signature(1, 2) for kind in ZONED},
    "dateTime": _TWO,
    "implicit-timezone": Signature(0, 0),
    **dict.fromkeys((LOOKUP, MEMBER, CALL), _TWO),
    **dict.fromkeys((MEMBERS, ARRAY_OF), _ONE),
    **dict.fromkeys((OBJECT, ARRAY), Signature(0, 1_000)),
}
