"""The built-in functions as the checks know them: how many arguments, and what kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.aggregates import AGGREGATES
from anabranch.language.objects import ARRAY, ARRAY_OF, LOOKUP, MEMBER, MEMBERS, OBJECT
from anabranch.language.operators import INFIX, TYPE_OPERATORS
from anabranch.values.casts import CASTS


@dataclass(frozen=True, slots=True)
class Signature:
    """How a function may be called; with `context`, leaving out the argument means the context item."""

    least: int
    most: int
    context: bool = False
    numeric: bool = False
    makes_nodes: bool = False

    def accepts(self, count: int) -> bool:
        return self.least <= count <= self.most or (self.context and count == 0)


_NUMBER = Signature(1, 1, numeric=True)
_ONE = Signature(1, 1)
_TWO = Signature(2, 2)
OF_MESSAGES = ("key", "header")
"""The functions that ask for the message that a node came in, and for no value of the node (LAWS 1.6)."""
PLACES = ("path", "generate-id")
"""The functions that tell where a node stands in its item, which depends on all that is around it (LAWS 2.8)."""
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
"""The types with a zone: `timezone-from-date()`, `adjust-date-to-timezone()`."""

GIVING: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("head", "tail", "reverse", "subsequence", "remove", "sort", "unordered", "trace", "non-null"), (0,)
    ),
    **dict.fromkeys(("zero-or-one", "one-or-more", "exactly-one", "outermost", "innermost"), (0,)),
    **dict.fromkeys(
        ("op:treat", "op:typed", "op:convert", "op:in-order", "op:nodes", "op:intersect", "op:except"), (0,)
    ),
    "op:json-results": (0,),
    "op:union": (0, 1),
    "insert-before": (0, 2),
}
"""Functions whose result is some of the values of their arguments, nodes too: the places of these arguments."""
HIGHER: Mapping[str, int] = {
    **dict.fromkeys(("for-each", "filter"), 2),
    **dict.fromkeys(("fold-left", "fold-right", "for-each-pair"), 3),
}
"""The functions that take a function, which is their last argument, and how many arguments they take."""
MATH = ("exp", "exp10", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan")
"""The functions of one number in XQuery's library of mathematics, `math:sqrt()`."""

SIGNATURES: Mapping[str, Signature] = {
    **dict.fromkeys(AGGREGATES, _NUMBER),
    **dict.fromkeys(("abs", "floor", "ceiling"), _NUMBER),
    **dict.fromkeys(("round", "round-half-to-even"), Signature(1, 2, numeric=True)),
    **dict.fromkeys(("position", "last"), Signature(0, 0, numeric=True)),
    **dict.fromkeys(("head", "tail", "reverse"), _ONE),
    "subsequence": Signature(2, 3),
    **dict.fromkeys(("not", "boolean", "empty", "exists", "upper-case", "lower-case"), _ONE),
    "data": Signature(1, 1, context=True),
    **dict.fromkeys(BOUNDS, _ONE),
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
    **dict.fromkeys((LOOKUP, MEMBER), _TWO),
    **dict.fromkeys((MEMBERS, ARRAY_OF), _ONE),
    **dict.fromkeys((OBJECT, ARRAY), Signature(0, 1_000)),
    # operators
    **dict.fromkeys(INFIX, _TWO),
    **dict.fromkeys(TYPE_OPERATORS, _TWO),
    "op:to": Signature(2, 2, numeric=True),
    "op:idiv": Signature(2, 2, numeric=True),
    "op:empty-rank": _NUMBER,
    **dict.fromkeys(("op:typed", "op:convert"), _TWO),
    **dict.fromkeys(("op:in-order", "op:nodes", "op:json-results"), _ONE),
    "op:call": Signature(1, 1_000),
    "op:try": Signature(3, 1_000),
    **dict.fromkeys(("op:element", "op:attribute", "op:processing-instruction"), Signature(2, 2, makes_nodes=True)),
    **dict.fromkeys(("op:text", "op:comment", "op:document"), Signature(1, 1, makes_nodes=True)),
    # texts
    "compare": Signature(2, 3),
    "codepoint-equal": _TWO,
    **dict.fromkeys(("codepoints-to-string", "encode-for-uri", "iri-to-uri", "escape-html-uri"), _ONE),
    "string-to-codepoints": _NUMBER,
    "contains-token": Signature(2, 3),
    "normalize-unicode": Signature(1, 2),
    **dict.fromkeys(("contains", "starts-with", "ends-with", "substring-before", "substring-after"), Signature(2, 3)),
    "matches": Signature(2, 3),
    "replace": Signature(3, 4),
    "tokenize": Signature(1, 3),
    **dict.fromkeys(("format-integer", "format-number"), Signature(2, 3)),
    **{f"format-{kind}": Signature(2, 5) for kind in ZONED},
    "analyze-string": Signature(2, 3, makes_nodes=True),
    "parse-ietf-date": _ONE,
    "default-collation": Signature(0, 0),
    # numbers
    **{f"math:{name}": _NUMBER for name in MATH},
    **dict.fromkeys(("math:pow", "math:atan2"), Signature(2, 2, numeric=True)),
    "math:pi": Signature(0, 0, numeric=True),
    # sequences
    **dict.fromkeys(
        ("zero-or-one", "one-or-more", "exactly-one", "unordered", "outermost", "innermost", "non-null"), _ONE
    ),
    "insert-before": Signature(3, 3),
    "remove": _TWO,
    "index-of": Signature(2, 3, numeric=True),
    "deep-equal": Signature(2, 3),
    "distinct-values": Signature(1, 2),
    "trace": Signature(1, 2),
    "sort": Signature(1, 3),
    "error": Signature(0, 3),
    **{name: Signature(count, count) for name, count in HIGHER.items()},
    # nodes
    **dict.fromkeys(("root", *PLACES, "has-children", "namespace-uri"), Signature(1, 1, context=True)),
    # messages
    "key": Signature(1, 1, context=True),
    "header": _TWO,
}
