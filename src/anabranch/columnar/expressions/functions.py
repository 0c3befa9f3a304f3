"""The functions of the language over columns: one entry of a table each.

What a function of the law does with one value (`law/functions.py`) is done here with many; a function that is not in
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
from anabranch.columnar.expressions.tree import ConstantValue, Expression, Kind
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    UNCLEAR,
    ColumnValue,
    States,
    spelled,
    state_of,
    ticks_of,
    worst,
)
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.scan.kernels import Flags, Numbers

KindOf: TypeAlias = Callable[[Sequence[Expression]], Kind | None]
Body: TypeAlias = Callable[[Kind, Sequence[ColumnValue], int], ColumnValue]

_STATES = np.array([ABSENT, UNCLEAR, CLEAR], np.uint8)
"""By outcome of a condition: the state of what is there if it holds."""
_TEXTUAL = (Kind.UNTYPED, Kind.STRING)
_NUMERIC = (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
_SPELLED = (*_TEXTUAL, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function over columns."""

    kind_of: KindOf
    """The type of its value for some arguments; None where they are not for columns."""
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
    """A text by row, empty where there is none, and where it is unclear."""
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
    """A translation of bytes, or what it stands for where a text has characters of several."""

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        text, state = _text(values[0], count)
        found, wide = texts.translate(text, translation)
        if wide.any():
            found = found.where(~wide, texts.changed(text, wide, change), len(wide))
        return ColumnValue(kind, state, texts=found)

    return body


def _translate_kind(values: Sequence[Expression]) -> Kind | None:
    match values:
        case (text, ConstantValue(str() as old), ConstantValue(str() as new)) if text.kind in _TEXTUAL:
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
    fits = len(places) in (1, 2) and text.kind in _TEXTUAL and all(each.kind in _NUMERIC for each in places)
    return Kind.STRING if fits else None


def _substring(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = _text(values[0], count)
    places: list[Numbers] = []
    for each in values[1:]:
        numbers, other = _doubles(each)
        state = worst(state, None if other is None else state_of(other != CLEAR, UNCLEAR))  # nothing is an error there
        places.append(numbers)
    return ColumnValue(kind, state, texts=texts.substring(text, *places))


# --- numbers ----------------------------------------------------------------------------------------------


def _doubles(value: ColumnValue) -> tuple[Numbers, States | None]:
    """The doubles that values are; text that is no number is unclear."""
    if value.kind is not Kind.UNTYPED:
        assert value.numbers is not None
        return value.numbers, value.state
    assert value.texts is not None
    read, wrong = np.empty(len(value.texts.starts)), np.empty(len(value.texts.starts), np.uint8)
    read_doubles(value.texts, read, wrong)
    return read, worst(value.state, state_of(wrong != 0, UNCLEAR, value.state))


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
        numbers, state = _doubles(values[0])
        return ColumnValue(kind, state, change(numbers))

    return body


def _number(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """What is no number, and nothing at all, is NaN."""
    (value,) = values
    if value.kind not in _TEXTUAL:
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


_ONE_TEXT = _taking(_TEXTUAL, (1,), Kind.STRING)
_TWO_TEXTS = _taking(_TEXTUAL, (2,), Kind.STRING)
_TEXT_TEST = _taking(_TEXTUAL, (2,), Kind.BOOLEAN)

FUNCTIONS: Mapping[str, ColumnFunction] = {
    "string": ColumnFunction(_taking(_SPELLED, (1,), Kind.STRING), _string, context=True),
    "number": ColumnFunction(_taking((*_NUMERIC, Kind.STRING), (1,), Kind.DOUBLE), _number, context=True),
    "concat": ColumnFunction(_taking(_SPELLED, range(2, 100), Kind.STRING), _concat),
    "contains": ColumnFunction(_TEXT_TEST, _tested(texts.contains)),
    "starts-with": ColumnFunction(_TEXT_TEST, _tested(texts.starts_with)),
    "ends-with": ColumnFunction(_TEXT_TEST, _tested(texts.ends_with)),
    "substring": ColumnFunction(_substring_kind, _substring),
    "substring-before": ColumnFunction(_TWO_TEXTS, _cut(texts.substring_before)),
    "substring-after": ColumnFunction(_TWO_TEXTS, _cut(texts.substring_after)),
    "string-length": ColumnFunction(_taking(_TEXTUAL, (1,), Kind.INTEGER), _string_length, context=True),
    "normalize-space": ColumnFunction(_ONE_TEXT, _made(texts.normalize_space), context=True),
    "upper-case": ColumnFunction(_ONE_TEXT, _translated(texts.UPPER_CASE, str.upper)),
    "lower-case": ColumnFunction(_ONE_TEXT, _translated(texts.LOWER_CASE, str.lower)),
    "xs:dateTime": ColumnFunction(_taking(_TEXTUAL, (1,), Kind.MOMENT), _moment),
    "translate": ColumnFunction(_translate_kind, _translate),
    "text-node": ColumnFunction(_taking((Kind.UNTYPED,), (1,), Kind.UNTYPED), _text_node),
    "where": ColumnFunction(lambda values: values[1].kind, _where),
    "there": ColumnFunction(lambda values: Kind.BOOLEAN, _there),
    "not": ColumnFunction(_taking((Kind.BOOLEAN,), (1,), Kind.BOOLEAN), _not),
    **{name: ColumnFunction(_rounding_kind, _rounding(change)) for name, change in ROUNDINGS.items()},
}
