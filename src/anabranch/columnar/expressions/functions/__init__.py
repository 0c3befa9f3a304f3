"""The functions of the language over columns: one entry of a table each.

A function does with many values what the law's function does with one (`law/functions.py`): by a loop over all of them
(`strings.py`, `numeric.py`, `times.py`), or by the law's function itself, once for each different value (`by_law.py`).
A function that is not in the table is left to the law.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.columnar.expressions.functions.by_law import by_law
from anabranch.columnar.expressions.functions.casts import CAST_FUNCTIONS
from anabranch.columnar.expressions.functions.function import TEXTUAL, ColumnFunction
from anabranch.columnar.expressions.functions.markup import MARKUP_FUNCTIONS
from anabranch.columnar.expressions.functions.numeric import NUMERIC_FUNCTIONS
from anabranch.columnar.expressions.functions.operators import OPERATORS_BETWEEN
from anabranch.columnar.expressions.functions.strings import STRING_FUNCTIONS
from anabranch.columnar.expressions.functions.times import TIME_COLUMNS
from anabranch.columnar.expressions.tree import Kind
from anabranch.law.library.texts import TEXT_FUNCTIONS
from anabranch.values.sequences import Values

_TOKENIZE = TEXT_FUNCTIONS["tokenize"]


def _token(*arguments: Values) -> Values:
    """One of the parts of a text; behind the arguments of `tokenize` stands its place, counted from 1."""
    *given, (place,) = arguments
    assert isinstance(place, int), "the type was checked"
    return _TOKENIZE(*given)[place - 1 : place] if place > 0 else []


FUNCTIONS: Mapping[str, ColumnFunction] = {
    **STRING_FUNCTIONS,
    **NUMERIC_FUNCTIONS,
    **CAST_FUNCTIONS,
    **TIME_COLUMNS,
    **MARKUP_FUNCTIONS,
    **OPERATORS_BETWEEN,
    **{
        name: by_law(TEXT_FUNCTIONS[name], TEXTUAL, result=Kind.STRING)
        for name in ("encode-for-uri", "iri-to-uri", "escape-html-uri", "normalize-unicode")
    },
    "token": by_law(
        _token,
        TEXTUAL,
        (Kind.STRING, Kind.INTEGER),
        (Kind.STRING, Kind.INTEGER),
        (Kind.INTEGER,),
        least=2,
        result=Kind.STRING,
    ),
    "compare": by_law(TEXT_FUNCTIONS["compare"], TEXTUAL, TEXTUAL, result=Kind.INTEGER),
    "codepoint-equal": by_law(TEXT_FUNCTIONS["codepoint-equal"], TEXTUAL, TEXTUAL, result=Kind.FLAG),
    "contains-token": by_law(TEXT_FUNCTIONS["contains-token"], TEXTUAL, TEXTUAL, result=Kind.BOOLEAN),
}
