"""The functions of the language over columns: one entry of a table each.

A function does with many values what the law's function does with one (`law/functions.py`); a function that is not in
the table is left to the law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.numbers import NO_NUMBER, read_doubles
from anabranch.columnar.expressions.numbers import UNCLEAR as UNCLEAR_NUMBER
from anabranch.columnar.expressions.rounding import ROUNDINGS
from anabranch.columnar.expressions.texts import TextColumn, Translation
from anabranch.columnar.expressions.tree import (
    ColumnComparison,
    ConstantValue,
    Expression,
    FunctionCall,
    Junction,
    Kind,
)
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    UNCLEAR,
    ColumnValue,
    States,
    doubles_of,
    spelled,
    state_of,
    ticks_of,
    worst,
)
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.scan.kernels import Flags, Numbers
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.law.library.regular import Regular, regular, replacement_for
from anabranch.law.library.texts import TEXT_FUNCTIONS
from anabranch.values.operators import ComparisonOperator

KindOf: TypeAlias = Callable[[Sequence[Expression]], Kind | None]
Body: TypeAlias = Callable[[Kind, Sequence[ColumnValue], int], ColumnValue]

_STATES = np.array([ABSENT, UNCLEAR, CLEAR], np.uint8)
"""By outcome of a condition: the state of a value that is there if it holds."""
TEXTUAL = (Kind.UNTYPED, Kind.STRING)
NUMERIC = (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
_SPELLED = (*TEXTUAL, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function over columns."""

    kind_of: KindOf
    """The type of its value for some arguments; None where it does not compile to columns."""
    evaluate: Body
    context: bool = False
    """Whether the context item stands for an argument that is left out."""


def _taking(kinds: Sequence[Kind], counts: Sequence[int], result: Kind) -> KindOf:
    """Arguments that are all of some kinds."""

    def kind_of(values: Sequence[Expression]) -> Kind | None:
        return result if len(values) in counts and all(each.kind in kinds for each in values) else None

    return kind_of


# --- texts ------------------------------------------------------------------------------------------------


def _text(value: ColumnValue, count: int) -> tuple[TextColumn, States | None]:
    """The text of each row, empty where there is none, and the state that marks unclear rows."""
    found = spelled(value, count)
    assert found.texts is not None
    unclear = None if found.state is None else state_of(found.state == UNCLEAR, UNCLEAR)
    return found.texts, unclear


def _made(change: Callable[[TextColumn], TextColumn]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        text, state = _text(values[0], count)
        return ColumnValue(kind, state, texts=change(text))

    return body


def _tested(test: Callable[[TextColumn, TextColumn], Flags]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        (text, one), (part, other) = (_text(each, count) for each in values)
        verdicts = np.broadcast_to(test(text, part), count).astype(np.uint8) * np.uint8(YES)
        return ColumnValue.truth(_doubtful(verdicts, worst(one, other)))

    return body


def _doubtful(verdicts: np.ndarray[tuple[int], np.dtype[np.uint8]], state: States | None) -> States:
    if state is not None:
        verdicts[state == UNCLEAR] = 1
    return verdicts


def _cut(cut: Callable[[TextColumn, TextColumn], TextColumn]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        (text, one), (part, other) = (_text(each, count) for each in values)
        return ColumnValue(kind, worst(one, other), texts=cut(text, part))

    return body


def _translated(translation: Translation, change: Callable[[str], str]) -> Body:
    """A translation of bytes, and the function on characters for texts with characters of several bytes."""

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        text, state = _text(values[0], count)
        found, wide = texts.translate(text, translation)
        if wide.any():
            found = found.where(~wide, texts.changed(text, wide, change), len(wide))
        return ColumnValue(kind, state, texts=found)

    return body


def _translate_kind(values: Sequence[Expression]) -> Kind | None:
    match values:
        case (text, ConstantValue(str() as old), ConstantValue(str() as new)) if text.kind in TEXTUAL:
            return Kind.STRING if Translation.of(old, new) else None
        case _:
            return None


def _translate(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    old, new = (bytes(each.texts.data).decode() for each in values[1:] if each.texts is not None)
    translation = Translation.of(old, new)
    assert translation is not None, "it was compiled"
    characters: dict[int, str | None] = {}
    for place, character in enumerate(old):
        characters.setdefault(ord(character), new[place] if place < len(new) else None)
    return _translated(translation, lambda each: each.translate(characters))(kind, values, count)


def _concat(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    found = [_text(each, count) for each in values]
    made, full = texts.concat([TextColumn.of(b"").repeated(count), *(text for text, _ in found)])
    return ColumnValue(kind, worst(*(state for _, state in found), state_of(full, UNCLEAR)), texts=made)


def _string(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = _text(values[0], count)
    return ColumnValue(kind, state, texts=text)


def _text_node(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """An element without text has no text node."""
    (value,) = values
    assert value.texts is not None
    empty = value.texts.ends == value.texts.starts
    return replace(value, state=worst(value.state, state_of(empty, ABSENT)))


def _where(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """A value where a condition holds, and none where it does not."""
    verdicts, value = values[0].verdicts, values[1]
    assert verdicts is not None
    state = _STATES[np.broadcast_to(verdicts, count)]
    if value.state is not None:
        state = np.where(state == CLEAR, value.state, state)
    return replace(value, kind=kind, state=state)


def _there(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """Whether there is a value."""
    (value,) = values
    state = np.zeros(count, np.uint8) if value.state is None else value.state
    found = np.array([YES, NO, 1], np.uint8)[state]
    return ColumnValue.truth(found).unclear_where(np.broadcast_to(value.unclear, count))


def _string_length(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = _text(values[0], count)
    return ColumnValue(kind, state, texts.string_length(text).astype(np.float64))


def _substring_kind(values: Sequence[Expression]) -> Kind | None:
    text, *places = values
    fits = len(places) in (1, 2) and text.kind in TEXTUAL and all(each.kind in NUMERIC for each in places)
    return Kind.STRING if fits else None


def _substring(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = _text(values[0], count)
    places: list[Numbers] = []
    for each in values[1:]:
        numbers, other = doubles_of(each)
        state = worst(state, None if other is None else state_of(other != CLEAR, UNCLEAR))  # nothing is an error there
        places.append(numbers)
    return ColumnValue(kind, state, texts=texts.substring(text, *places))


# --- numbers ----------------------------------------------------------------------------------------------


def _rounding_kind(values: Sequence[Expression]) -> Kind | None:
    match values:
        case (value,) if value.kind in (Kind.UNTYPED, Kind.DOUBLE):
            return Kind.DOUBLE
        case (value,) if value.kind is Kind.INTEGER:
            return Kind.INTEGER
        case _:
            return None


def _rounding(change: Callable[[Numbers], Numbers]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        numbers, state = doubles_of(values[0])
        return ColumnValue(kind, state, change(numbers))

    return body


def _number(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """Values as numbers; text that is no number, and an absent value, is NaN."""
    (value,) = values
    if value.kind not in TEXTUAL:
        assert value.numbers is not None
        numbers, unclear = value.numbers, np.zeros(len(value.numbers), np.bool_)
    else:
        assert value.texts is not None
        numbers, found = np.empty(len(value.texts.starts)), np.empty(len(value.texts.starts), np.uint8)
        read_doubles(value.texts, numbers, found)
        numbers[found == NO_NUMBER] = np.nan
        unclear = found == UNCLEAR_NUMBER
    if value.state is not None:
        numbers = np.where(value.state == ABSENT, np.nan, numbers)
        unclear = (unclear & (value.state == CLEAR)) | (value.state == UNCLEAR)
    return ColumnValue(kind, state_of(unclear, UNCLEAR), numbers)


def _moment(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    ticks, state = ticks_of(values[0])
    return ColumnValue(kind, state, ticks=ticks)


def _not(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    verdicts = values[0].verdicts
    assert verdicts is not None
    return ColumnValue.truth(np.uint8(YES - NO) - verdicts)


# --- operators --------------------------------------------------------------------------------------------

VALUE_OPERATORS: Mapping[str, ComparisonOperator] = dict(
    zip((f"op:{word}" for word in VALUE_COMPARISONS), ("=", "!=", "<", "<=", ">", ">="), strict=True)
)
"""By name of a value comparison: the general comparison that is the same between single values."""
_EXACT_QUOTIENT = 2.0**50
"""Below this, a quotient of whole numbers in doubles lies on the same side of each whole number as the true one."""
_MOST_RANGE = 64


def value_compared(operator: ComparisonOperator, left: Expression, right: Expression) -> Expression | None:
    """A value comparison as a condition, false for the empty sequence; None where the law has to raise an error."""
    untyped = [each.kind is Kind.UNTYPED for each in (left, right)]
    if not any(untyped):
        return ColumnComparison(operator, left, right)
    if any(each.kind not in TEXTUAL for each in (left, right)):
        return None
    return ColumnComparison(operator, *(_as_text(each) for each in (left, right)))


def _as_text(value: Expression) -> Expression:
    """Untyped text as a string, which is compared by its characters."""
    return FunctionCall("as-text", (value,), Kind.STRING) if value.kind is Kind.UNTYPED else value


def deeply_equal(left: Expression, right: Expression) -> Expression | None:
    """Whether two values, each of which may be nothing, are deep-equal; None where columns cannot tell."""
    if left.kind not in TEXTUAL or right.kind not in TEXTUAL:
        return None
    equal = ColumnComparison("=", _as_text(left), _as_text(right))
    if isinstance(left, ConstantValue) or isinstance(right, ConstantValue):
        return equal
    nothing = (
        FunctionCall("not", (FunctionCall("there", (each,), Kind.BOOLEAN),), Kind.BOOLEAN) for each in (left, right)
    )
    return Junction(False, (equal, Junction(True, tuple(nothing))))


def spread(expression: ast.Expression) -> ast.Expression:
    """A short range between literals as the numbers in it; everything else as it is."""
    match expression:
        case ast.Call("op:to", (ast.Number(first), ast.Number(last))) if first.isdigit() and last.isdigit():
            numbers = range(int(first), int(last) + 1)
            if len(numbers) <= _MOST_RANGE:
                return ast.Sequence(tuple(ast.Number(str(each), span=expression.span) for each in numbers))
    return expression


def _whole_quotient_kind(values: Sequence[Expression]) -> Kind | None:
    fits = len(values) == 2 and all(each.kind in (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER) for each in values)
    return Kind.INTEGER if fits else None


def _whole_quotient(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """A quotient without its fraction; what fails, and what is too large to be sure of, is left to the law."""
    (left, one), (right, other) = (doubles_of(each) for each in values)
    with np.errstate(all="ignore"):
        quotient = np.trunc(left / right)
    doubtful = ~np.isfinite(quotient) | ~np.isfinite(right) | (np.abs(left) >= _EXACT_QUOTIENT) | (right == 0)
    doubtful |= np.abs(quotient) >= _EXACT_QUOTIENT
    found = np.where(doubtful, 0.0, quotient) + 0.0  # no negative zero
    state = worst(one, other)
    return ColumnValue(kind, worst(state, state_of(np.broadcast_to(doubtful, count), UNCLEAR, state)), found)


# --- regular expressions ----------------------------------------------------------------------------------


def _regular(values: Sequence[Expression], flags: int) -> Regular | None:
    """The pattern of a call, where it is a valid literal; `flags` is the place of its flags among the arguments."""
    asked = (values[1], *values[flags : flags + 1])
    given = [each.value for each in asked if isinstance(each, ConstantValue) and isinstance(each.value, str)]
    if len(given) < len(asked):
        return None
    try:
        return regular(given[0], "".join(given[1:]))
    except DynamicError:
        return None  # an error for each item, which the law reports


def _matches_kind(values: Sequence[Expression]) -> Kind | None:
    fits = len(values) in (2, 3) and values[0].kind in TEXTUAL and _regular(values, 2)
    return Kind.BOOLEAN if fits else None


def _replace_kind(values: Sequence[Expression]) -> Kind | None:
    if len(values) not in (3, 4) or values[0].kind not in TEXTUAL:
        return None
    found = _regular(values, 3)
    match values[2]:
        case ConstantValue(str() as text) if found is not None and not found.found_in(""):
            try:
                replacement_for(found, text)
            except DynamicError:
                return None
            return Kind.STRING
        case _:
            return None


def _given_text(value: ColumnValue) -> str:
    assert value.texts is not None
    return bytes(value.texts.data[value.texts.starts[0] : value.texts.ends[0]]).decode()


def _strings(text: TextColumn) -> list[str]:
    spans = zip(text.starts.tolist(), text.ends.tolist(), strict=True)
    return [bytes(text.data[start:end]).decode() for start, end in spans]


def _matches(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = _text(values[0], count)
    found = regular(_given_text(values[1]), "".join(map(_given_text, values[2:])))
    verdicts = np.array(found.all_found_in(_strings(text)), np.uint8) * np.uint8(YES)
    return ColumnValue.truth(_doubtful(np.broadcast_to(verdicts, count).copy(), state))


def _replace(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = _text(values[0], count)
    found = regular(_given_text(values[1]), "".join(map(_given_text, values[3:])))
    made = [
        each.encode() for each in found.all_replaced(_strings(text), replacement_for(found, _given_text(values[2])))
    ]
    ends = np.cumsum([len(each) for each in made], dtype=np.int32)
    sizes = np.array([len(each) for each in made], np.int32)
    return ColumnValue(kind, state, texts=TextColumn.of(b"".join(made)).spans(ends - sizes, ends))


def _changed_text(change: Callable[[str], str]) -> Body:
    """A function of texts, taken one by one."""

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        text, state = _text(values[0], count)
        return ColumnValue(kind, state, texts=texts.changed(text, np.ones(len(text.starts), np.bool_), change))

    return body


def _by_law(name: str) -> Body:
    return _changed_text(lambda each: str(TEXT_FUNCTIONS[name]([each])[0]))


def _root(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    numbers, state = doubles_of(values[0])
    with np.errstate(invalid="ignore"):
        return ColumnValue(kind, state, np.sqrt(numbers))


_ONE_TEXT = _taking(TEXTUAL, (1,), Kind.STRING)
_TWO_TEXTS = _taking(TEXTUAL, (2,), Kind.STRING)
_TEXT_TEST = _taking(TEXTUAL, (2,), Kind.BOOLEAN)

FUNCTIONS: Mapping[str, ColumnFunction] = {
    "string": ColumnFunction(_taking(_SPELLED, (1,), Kind.STRING), _string, context=True),
    "number": ColumnFunction(_taking((*NUMERIC, Kind.STRING), (1,), Kind.DOUBLE), _number, context=True),
    "concat": ColumnFunction(_taking(_SPELLED, range(2, 100), Kind.STRING), _concat),
    "contains": ColumnFunction(_TEXT_TEST, _tested(texts.contains)),
    "starts-with": ColumnFunction(_TEXT_TEST, _tested(texts.starts_with)),
    "ends-with": ColumnFunction(_TEXT_TEST, _tested(texts.ends_with)),
    "substring": ColumnFunction(_substring_kind, _substring),
    "substring-before": ColumnFunction(_TWO_TEXTS, _cut(texts.substring_before)),
    "substring-after": ColumnFunction(_TWO_TEXTS, _cut(texts.substring_after)),
    "string-length": ColumnFunction(_taking(TEXTUAL, (1,), Kind.INTEGER), _string_length, context=True),
    "normalize-space": ColumnFunction(_ONE_TEXT, _made(texts.normalize_space), context=True),
    "upper-case": ColumnFunction(_ONE_TEXT, _translated(texts.UPPER_CASE, str.upper)),
    "lower-case": ColumnFunction(_ONE_TEXT, _translated(texts.LOWER_CASE, str.lower)),
    "xs:dateTime": ColumnFunction(_taking(TEXTUAL, (1,), Kind.MOMENT), _moment),
    "translate": ColumnFunction(_translate_kind, _translate),
    "text-node": ColumnFunction(_taking((Kind.UNTYPED,), (1,), Kind.UNTYPED), _text_node),
    "where": ColumnFunction(lambda values: values[1].kind, _where),
    "there": ColumnFunction(lambda values: Kind.BOOLEAN, _there),
    "as-text": ColumnFunction(
        _taking((Kind.UNTYPED,), (1,), Kind.STRING), lambda kind, values, _: replace(values[0], kind=kind)
    ),
    "op:idiv": ColumnFunction(_whole_quotient_kind, _whole_quotient),
    "matches": ColumnFunction(_matches_kind, _matches),
    "replace": ColumnFunction(_replace_kind, _replace),
    "math:sqrt": ColumnFunction(_taking((Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER), (1,), Kind.DOUBLE), _root),
    **{
        name: ColumnFunction(_ONE_TEXT, _by_law(name))
        for name in ("encode-for-uri", "iri-to-uri", "escape-html-uri", "normalize-unicode")
    },
    "not": ColumnFunction(_taking((Kind.BOOLEAN,), (1,), Kind.BOOLEAN), _not),
    **{name: ColumnFunction(_rounding_kind, _rounding(change)) for name, change in ROUNDINGS.items()},
}
