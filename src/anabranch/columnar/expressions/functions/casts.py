"""Casts between types of values, and whether they are possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anabranch.columnar.expressions.functions.by_law import by_law
from anabranch.columnar.expressions.functions.function import TEXTUAL, ColumnFunction
from anabranch.columnar.expressions.tree import TIMES, Expression, FunctionCall, Kind
from anabranch.columnar.expressions.values import ColumnValue, doubles_of
from anabranch.law.time_functions import TIME_FUNCTIONS, castable
from anabranch.values.casts import CASTS

_NUMBERS = (Kind.NUMBER, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
_ANY = (*TEXTUAL, *_NUMBERS, Kind.BOOLEAN, Kind.FLAG)
_TESTED: Mapping[str, str] = {f"castable {name}": name for name in CASTS}


def _to_double() -> ColumnFunction:
    """To doubles, of which texts without a type are read by a loop."""
    law = by_law(TIME_FUNCTIONS["xs:double"], _ANY, result=Kind.DOUBLE)

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        if values[0].kind not in (Kind.UNTYPED, *_NUMBERS):
            return law.evaluate(kind, values, count)
        numbers, state = doubles_of(values[0])
        return ColumnValue(kind, state, numbers)

    return replace(law, evaluate=body)


CAST_FUNCTIONS: Mapping[str, ColumnFunction] = {
    "xs:double": _to_double(),
    "xs:integer": by_law(TIME_FUNCTIONS["xs:integer"], _ANY, result=Kind.INTEGER),
    "xs:decimal": by_law(TIME_FUNCTIONS["xs:decimal"], _ANY, result=Kind.DECIMAL),
    "xs:boolean": by_law(TIME_FUNCTIONS["xs:boolean"], _ANY, result=Kind.FLAG),
    **{
        test: by_law(
            lambda values, name=name: [castable(name, values)] if values else [False],
            (*_ANY, *TIMES),
            result=Kind.BOOLEAN,
        )
        for test, name in _TESTED.items()
    },
}


def is_castable(value: Expression, name: str) -> Expression | None:
    """Whether a value can be cast to a type, which nothing cannot; None for an unknown type."""
    test = f"castable {name}"
    return FunctionCall(test, (value,), Kind.BOOLEAN) if test in CAST_FUNCTIONS else None
