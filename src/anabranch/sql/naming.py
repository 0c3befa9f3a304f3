"""What a construct that is not translated is called in its refusal, and what to write instead where several share it.

Most are called as they are written; those that `refusals.py` has a hint for go by the name that they have there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from anabranch.sql.functions import CLOCKS

_REFUSED: Mapping[type[exp.Expr], str] = {
    **dict.fromkeys((exp.Subquery, exp.Select, exp.Exists, exp.Values), "subquery"),
    exp.Lateral: "LATERAL",
    **dict.fromkeys(
        (exp.Window, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Lag, exp.Lead), "window function"
    ),
    **dict.fromkeys((exp.Parameter, exp.Placeholder), "parameter"),
    **dict.fromkeys(
        (
            *(exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONBContains),
            *(exp.JSONBContainsTopKey, exp.JSONBContainsAllTopKeys, exp.JSONBContainsAnyTopKeys),
        ),
        "operator of JSON",
    ),
    **dict.fromkeys(
        (
            *(exp.Array, exp.ArraySize, exp.ArrayContains, exp.ArrayContainsAll, exp.ArrayContainedBy),
            *(exp.ArrayOverlaps, exp.Slice),
        ),
        "array",
    ),
    **dict.fromkeys((exp.Unnest, exp.Explode), "UNNEST"),
    exp.Tuple: "row value",
    exp.ILike: "ILIKE",
    **dict.fromkeys(
        (exp.RegexpLike, exp.RegexpILike, exp.RegexpReplace, exp.RegexpCount, exp.SimilarTo), "regular expression"
    ),
    exp.AtTimeZone: "zone",
    exp.Star: "'*' beside other columns",
    **dict.fromkeys(CLOCKS, "clock"),
    **dict.fromkeys((exp.Rand, exp.Uuid), "random value"),
    exp.Order: "ORDER BY in an aggregate",
    exp.Collate: "COLLATE",
}
_REFUSED_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(
        ("NOW", "PROCTIME", "CLOCK_TIMESTAMP", "STATEMENT_TIMESTAMP", "TRANSACTION_TIMESTAMP"),
        "clock",
    ),
    **dict.fromkeys(("CARDINALITY", "ARRAY_POSITION", "ARRAY_APPEND"), "array"),
    **dict.fromkeys(("REGEXP_MATCH", "REGEXP_MATCHES", "REGEXP_SPLIT_TO_ARRAY"), "regular expression"),
    **dict.fromkeys(("JSON_BUILD_OBJECT", "JSONB_BUILD_OBJECT", "ROW"), "object inside a row"),
    **dict.fromkeys(
        (f"{window}{end}" for window in ("TUMBLE", "HOP", "SESSION") for end in ("", "_START", "_END")),
        "window outside FROM",
    ),
}
"""Functions that sqlglot does not know, by their names."""
_AGGREGATES = ("JSONB_AGG", "JSON_AGG", "JSONB_OBJECT_AGG")
AGGREGATE_HINT = "aggregates are COUNT, SUM, AVG, MIN, MAX, MEDIAN, PERCENTILE_CONT(0.5) and STDDEV"
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_CALLED_AROUND = re.compile(r"([A-Za-z_]\w*)\s*\(\s*$")


def refused_name(node: exp.Expr, text: str, start: int) -> str:
    """What a value that is not translated is called; it begins at `start` in the text."""
    if (name := _REFUSED.get(type(node))) is not None:
        return name
    if isinstance(node, exp.All | exp.Any):
        return "subquery" if isinstance(node.this, exp.Subquery | exp.Select) else "ANY and ALL"
    if isinstance(node, exp.Anonymous) and (name := _REFUSED_FUNCTIONS.get(str(node.this).upper())) is not None:
        return name
    word = _CALLED.match(text, start)
    if word is None and isinstance(node, exp.Func):
        word = _CALLED_AROUND.search(text, 0, start)
    return kind_of(node) if word is None else f"function {word[1].upper()}"


def refused_hint(node: exp.Expr) -> str | None:
    """What to write instead of a value that has no row in the table of refusals."""
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    is_aggregate = isinstance(inner, exp.AggFunc) or (
        isinstance(inner, exp.Anonymous) and str(inner.this).upper() in _AGGREGATES
    )
    return AGGREGATE_HINT if is_aggregate else None


def kind_of(node: exp.Expr) -> str:
    """The name of a construct as a user of SQL knows it."""
    if isinstance(node, exp.Anonymous):
        return f"function {str(node.this).upper()}"
    if isinstance(node, exp.Func):
        return f"function {node.sql_name()}"
    words = "".join(f" {each}" if each.isupper() else each for each in type(node).__name__).split()
    return " ".join(words).upper()
