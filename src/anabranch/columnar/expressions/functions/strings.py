"""Functions of texts over columns, and regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.functions.function import (
    NUMERIC,
    SPELLED,
    TEXTUAL,
    Body,
    ColumnFunction,
    doubtful,
    taking,
    text_of,
)
from anabranch.columnar.expressions.texts import TextColumn, Translation
from anabranch.columnar.expressions.tree import ConstantValue, Expression, Kind
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    UNCLEAR,
    ColumnValue,
    doubles_of,
    spelled,
    state_of,
    worst,
)
from anabranch.columnar.match.condition import YES
from anabranch.columnar.scan.kernels import Flags, Numbers
from anabranch.errors import DynamicError
from anabranch.law.library.regular import Regular, regular, replacement_for


def _made(change: Callable[[TextColumn], TextColumn]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        text, state = text_of(values[0], count)
        return ColumnValue(kind, state, texts=change(text))

    return body


def _tested(test: Callable[[TextColumn, TextColumn], Flags]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        (text, one), (part, other) = (text_of(each, count) for each in values)
        verdicts = np.broadcast_to(test(text, part), count).astype(np.uint8) * np.uint8(YES)
        return ColumnValue.truth(doubtful(verdicts, worst(one, other)))

    return body


def _cut(cut: Callable[[TextColumn, TextColumn], TextColumn]) -> Body:
    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        (text, one), (part, other) = (text_of(each, count) for each in values)
        return ColumnValue(kind, worst(one, other), texts=cut(text, part))

    return body


def _translated(translation: Translation, change: Callable[[str], str]) -> Body:
    """A translation of bytes, and the function on characters for texts with characters of several bytes."""

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        text, state = text_of(values[0], count)
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
    found = [text_of(each, count) for each in values]
    made, full = texts.concat([TextColumn.of(b"").repeated(count), *(text for text, _ in found)])
    return ColumnValue(kind, worst(*(state for _, state in found), state_of(full, UNCLEAR)), texts=made)


def _string(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = text_of(values[0], count)
    return ColumnValue(kind, state, texts=text)


def _text_node(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """An element without text has no text node."""
    (value,) = values
    assert value.texts is not None
    empty = value.texts.ends == value.texts.starts
    return replace(value, state=worst(value.state, state_of(empty, ABSENT)))


def _string_length(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = text_of(values[0], count)
    return ColumnValue(kind, state, texts.string_length(text).astype(np.float64))


def _substring_kind(values: Sequence[Expression]) -> Kind | None:
    text, *places = values
    fits = len(places) in (1, 2) and text.kind in TEXTUAL and all(each.kind in NUMERIC for each in places)
    return Kind.STRING if fits else None


def _substring(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = text_of(values[0], count)
    places: list[Numbers] = []
    for each in values[1:]:
        numbers, other = doubles_of(each)
        state = worst(state, None if other is None else state_of(other != CLEAR, UNCLEAR))  # nothing is an error there
        places.append(numbers)
    return ColumnValue(kind, state, texts=texts.substring(text, *places))


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
    text, state = text_of(values[0], count)
    found = regular(_given_text(values[1]), "".join(map(_given_text, values[2:])))
    verdicts = np.array(found.all_found_in(_strings(text)), np.uint8) * np.uint8(YES)
    return ColumnValue.truth(doubtful(np.broadcast_to(verdicts, count).copy(), state))


def _replace(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = text_of(values[0], count)
    found = regular(_given_text(values[1]), "".join(map(_given_text, values[3:])))
    made = [
        each.encode() for each in found.all_replaced(_strings(text), replacement_for(found, _given_text(values[2])))
    ]
    ends = np.cumsum([len(each) for each in made], dtype=np.int32)
    sizes = np.array([len(each) for each in made], np.int32)
    return ColumnValue(kind, state, texts=TextColumn.of(b"".join(made)).spans(ends - sizes, ends))


ENDED = "ended"
"""A text with a byte behind it that is in no text, so that what contains a pattern with that byte ends with it."""


def _ended(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    text, state = text_of(values[0], count)
    made, full = texts.concat([TextColumn.of(b"").repeated(count), text, TextColumn.of(b"\xff")])
    return ColumnValue(kind, worst(state, state_of(full, UNCLEAR)), texts=made)


def _cast_to_text(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """Values as strings; nothing stays nothing."""
    return replace(spelled(values[0], count), kind=kind, numbers=None, ticks=None)


_ONE_TEXT = taking(TEXTUAL, (1,), Kind.STRING)
_TWO_TEXTS = taking(TEXTUAL, (2,), Kind.STRING)
_TEXT_TEST = taking(TEXTUAL, (2,), Kind.BOOLEAN)

STRING_FUNCTIONS: Mapping[str, ColumnFunction] = {
    "string": ColumnFunction(taking(SPELLED, (1,), Kind.STRING), _string, context=True),
    "xs:string": ColumnFunction(taking(SPELLED, (1,), Kind.STRING), _cast_to_text),
    "concat": ColumnFunction(taking(SPELLED, range(2, 100), Kind.STRING), _concat),
    "contains": ColumnFunction(_TEXT_TEST, _tested(texts.contains)),
    "starts-with": ColumnFunction(_TEXT_TEST, _tested(texts.starts_with)),
    "ends-with": ColumnFunction(_TEXT_TEST, _tested(texts.ends_with)),
    ENDED: ColumnFunction(_ONE_TEXT, _ended),
    "substring": ColumnFunction(_substring_kind, _substring),
    "substring-before": ColumnFunction(_TWO_TEXTS, _cut(texts.substring_before)),
    "substring-after": ColumnFunction(_TWO_TEXTS, _cut(texts.substring_after)),
    "string-length": ColumnFunction(taking(TEXTUAL, (1,), Kind.INTEGER), _string_length, context=True),
    "normalize-space": ColumnFunction(_ONE_TEXT, _made(texts.normalize_space), context=True),
    "upper-case": ColumnFunction(_ONE_TEXT, _translated(texts.UPPER_CASE, str.upper)),
    "lower-case": ColumnFunction(_ONE_TEXT, _translated(texts.LOWER_CASE, str.lower)),
    "translate": ColumnFunction(_translate_kind, _translate),
    "text-node": ColumnFunction(taking((Kind.UNTYPED,), (1,), Kind.UNTYPED), _text_node),
    "as-text": ColumnFunction(
        taking((Kind.UNTYPED,), (1,), Kind.STRING), lambda kind, values, _: replace(values[0], kind=kind)
    ),
    "matches": ColumnFunction(_matches_kind, _matches),
    "replace": ColumnFunction(_replace_kind, _replace),
}
