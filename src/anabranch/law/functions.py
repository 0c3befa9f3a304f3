"""The built-in functions: what those of `language/signatures.py` do.

Each takes its arguments as sequences and gives a sequence; the meaning is XQuery's, but for aggregates, which are exact
(`aggregates/`; LAWS 2.1, 2.2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.errors import DynamicError
from anabranch.language.objects import ARRAY, ARRAY_OF, LOOKUP, MEMBER, MEMBERS, OBJECT
from anabranch.law.bounds import window_end, window_start
from anabranch.law.library.arguments import check_collation, needed_text
from anabranch.law.library.ietf_dates import parse_ietf_date
from anabranch.law.library.operators import OPERATOR_FUNCTIONS
from anabranch.law.library.sequences import SEQUENCE_FUNCTIONS, size_of
from anabranch.law.library.texts import TEXT_FUNCTIONS
from anabranch.law.library.time_pictures import FORMATTED_TIMES
from anabranch.law.steps import text_steps
from anabranch.law.time_functions import TIME_FUNCTIONS
from anabranch.stream.reading.json_names import key_of_step
from anabranch.stream.tree import Attribute, Element, Instruction, JsonMark, MessageNotes, Node
from anabranch.values.atomic import (
    Atomic,
    Identity,
    Measured,
    Untyped,
    as_number,
    exact_value,
    identity,
    kind_of,
    spell,
    to_double,
)
from anabranch.values.numbers import nearest_double
from anabranch.values.objects.lookups import looked_up, made_array, made_object, member, members
from anabranch.values.sequences import NODES, Value, Values, at_most_one, atomize, non_null, operands, truth

Body: TypeAlias = Callable[..., Values]

_MOST_DIGITS = 5_000
"""How many digits rounding looks at, behind the point or before it; no number of a query has more."""
_EXACT = Context(prec=_MOST_DIGITS)
_SPACES = re.compile(r"[ \t\r\n]+")  # XML's white space, and no other


# --- strings ----------------------------------------------------------------------------------------------


def _text(values: Values, what: str = "a string function") -> str:
    """An argument of type xs:string?; nothing is the empty string."""
    value = at_most_one(values, what)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DynamicError(f"{what} takes text, not a {kind_of(value)}", code="XPTY0004")
    return str(value)


def _string(values: Values) -> Values:
    value = at_most_one(values, "string()")
    return ["" if value is None else spell(value)]


def _concat(*arguments: Values) -> Values:
    parts = (at_most_one(each, "concat()") for each in arguments)
    return ["".join("" if part is None else spell(part) for part in parts)]


def _string_join(values: Values, separator: Values | None = None) -> Values:
    between = "" if separator is None else needed_text(separator, "string-join()")
    return [between.join(spell(each) for each in operands(values))]


def _substring(values: Values, start: Values, length: Values | None = None) -> Values:
    text = _text(values, "substring()")
    first = _round_half_up(_needed_double(start, "substring()"))
    last = math.inf if length is None else first + _round_half_up(_needed_double(length, "substring()"))
    return ["".join(each for place, each in enumerate(text, 1) if first <= place < last)]


def _around(before: bool) -> Body:
    def body(values: Values, mark: Values, collation: Values | None = None) -> Values:
        check_collation(collation)
        text, separator = _text(values), _text(mark)
        if before:
            return [text.partition(separator)[0] if separator and separator in text else ""]
        return [text.partition(separator)[2] if separator else text]

    return body


def _translate(values: Values, old: Values, new: Values) -> Values:
    characters, replacements = needed_text(old, "translate()"), needed_text(new, "translate()")
    table: dict[int, str | None] = {}
    for index, character in enumerate(characters):
        table.setdefault(ord(character), replacements[index] if index < len(replacements) else None)
    return [_text(values).translate(table)]


def _on_text(change: Callable[[str], Value]) -> Body:
    return lambda values: [change(_text(values))]


def _on_texts(test: Callable[[str, str], bool]) -> Body:
    def body(values: Values, other: Values, collation: Values | None = None) -> Values:
        check_collation(collation)
        return [test(_text(values), _text(other))]

    return body


# --- numbers ----------------------------------------------------------------------------------------------


def _number(values: Values) -> Values:
    value = at_most_one(values, "number()")
    if value is None:
        return [math.nan]
    try:
        return [to_double(Untyped(value) if isinstance(value, str) else value)]
    except DynamicError:
        return [math.nan]


def _needed_double(values: Values, what: str) -> float:
    value = at_most_one(values, what)
    if value is None:
        raise DynamicError(f"{what} needs a number", code="XPTY0004")
    return to_double(as_number(value))


def _round_half_up(value: float) -> float:
    if not math.isfinite(value):
        return value
    return float(math.floor(Fraction(value) + Fraction(1, 2)))


def _rounded(change: Callable[[Decimal], int]) -> Body:
    def body(values: Values) -> Values:
        value = at_most_one(values, "a rounding function")
        if value is None:
            return []
        number = as_number(value)
        if isinstance(number, float):
            if not math.isfinite(number) or number == 0:
                return [float(number)]
            return [math.copysign(float(change(Decimal(number))), number)]
        return [number if isinstance(number, int) else Decimal(change(number))]

    return body


def _to_digits(half_up: bool) -> Body:
    """`round` and `round-half-to-even`: to a number of digits behind the point, or before it where that is negative."""
    name = "round()" if half_up else "round-half-to-even()"

    def body(values: Values, digits: Values | None = None) -> Values:
        value = at_most_one(values, name)
        precision = 0 if digits is None else _whole(digits, name)
        if value is None:
            return []
        number = as_number(value)
        if isinstance(number, float):
            if not math.isfinite(number) or number == 0:
                return [float(number)]
            scaled = _scaled(Fraction(number), precision, half_up)
            return [math.copysign(nearest_double(scaled / Fraction(10) ** precision), number)]
        exponent = 0 if isinstance(number, int) else number.as_tuple().exponent
        assert isinstance(exponent, int), "a decimal is a number"
        if precision >= -exponent:  # it has no more digits
            return [number]
        scaled = _scaled(Fraction(number), precision, half_up)
        if isinstance(number, int):
            return [scaled * 10**-precision]
        return [Decimal(scaled).scaleb(-precision, _EXACT)]

    return body


def _whole(values: Values, what: str) -> int:
    value = _needed_double(values, what)
    if value != value // 1:
        raise DynamicError(f"{what} takes a whole number of digits", code="XPTY0004")
    return int(max(-_MOST_DIGITS, min(value, _MOST_DIGITS)))


def _scaled(number: Fraction, precision: int, half_up: bool) -> int:
    """A number rounded to `precision` digits, in units of the last of them."""
    scaled = number * Fraction(10) ** precision
    return math.floor(scaled + Fraction(1, 2)) if half_up else round(scaled)


def _abs(values: Values) -> Values:
    value = at_most_one(values, "abs()")
    if value is None:
        return []
    number = as_number(value)
    return [number.copy_abs() if isinstance(number, Decimal) else abs(number)]


# --- sequences and nodes ----------------------------------------------------------------------------------


def _subsequence(values: Values, start: Values, length: Values | None = None) -> Values:
    first = _round_half_up(_needed_double(start, "subsequence()"))
    end = math.inf if length is None else first + _round_half_up(_needed_double(length, "subsequence()"))
    return [each for place, each in enumerate(values, 1) if first <= place < end]


def _not_here() -> Values:
    raise AssertionError("the evaluator knows the position of its context item")


class DistinctAtoms:
    """Tells values that equal none before them; text meets a measured value as the number it is (LAWS 2.3)."""

    def __init__(self) -> None:
        self._seen: set[Identity] = set()

    def add(self, value: Atomic, *, measured: bool = True) -> bool:
        """Take the next value and say whether it is new; `measured` says whether measured values may be among them."""
        equal, own = _equal_and_own(value, measured)
        if is_new := self._seen.isdisjoint(equal):
            self._seen.update(own)
        return is_new


def _distinct(values: Values, collation: Values | None = None) -> Values:
    """The values that equal none before them."""
    check_collation(collation)
    atoms, known = atomize(values), DistinctAtoms()
    measured = any(isinstance(each, Measured) for each in atoms)
    return [each for each in atoms if known.add(each, measured=measured)]


def _equal_and_own(value: Atomic, measured: bool) -> tuple[tuple[Identity, ...], tuple[Identity, ...]]:
    """The identities of what a value equals, and its own; among measured values, text is also what it spells."""
    own = identity(value)
    if not measured or not isinstance(value, Untyped):
        return (own,), (own,)
    number = exact_value(value)
    if isinstance(value, Measured):
        return (own, ("spelt", number)), (own,)
    return (own, ("measured", number)), (own, ("spelt", number))


def _json_key(node: Element | Attribute) -> str | None:
    """The key that an element or attribute was read from, without its `@`; None where there was none (LAWS 7.1)."""
    match node:
        case Element(mark=JsonMark(record=False)):
            return key_of_step(node.name.local)
        case Attribute(parent=Element(mark=JsonMark())):
            key = key_of_step(f"@{node.name.local}")
            return None if key is None else key[1:]
        case _:
            return None


def _name(local: bool) -> Body:
    def body(values: Values) -> Values:
        if not values:
            return [""]
        if len(values) > 1 or not isinstance(values[0], NODES):
            raise DynamicError("name() takes one node", code="XPTY0004")
        match values[0]:
            case Element() | Attribute() as node if (key := _json_key(node)) is not None:
                return [key]
            case Element(name=name) | Attribute(name=name):
                return [name.local if local else str(name)]
            case Instruction(target=target):
                return [target]
            case _:
                return [""]

    return body


def _notes(values: Values, name: str) -> MessageNotes | None:
    """The key and the headers of the message that a node came in (LAWS 1.6)."""
    if len(values) > 1 or not all(isinstance(each, NODES) for each in values):
        raise DynamicError(f"{name}() takes one node", code="XPTY0004")
    at: Node | None = values[0] if values else None  # type: ignore[assignment]  # just asked
    while at is not None:
        if isinstance(at, Element) and at.message is not None:
            return at.message
        at = at.parent
    return None


def _key(values: Values) -> Values:
    found = _notes(values, "key")
    return [] if found is None or found.key is None else [Untyped(found.key)]


def _header(values: Values, named: Values) -> Values:
    found = _notes(values, "header")
    name = needed_text(named, "header()")
    return [] if found is None else [Untyped(value) for each, value in found.headers if each == name]


BUILTINS: Mapping[str, Body] = {
    **{name: function.law for name, function in AGGREGATES.items()},
    "not": lambda values: [not truth(values)],
    "boolean": lambda values: [truth(values)],
    "true": lambda: [True],
    "false": lambda: [False],
    "empty": lambda values: [not values],
    "exists": lambda values: [bool(values)],
    "non-null": non_null,
    "data": lambda values: [*atomize(values)],
    "distinct-values": _distinct,
    "head": lambda values: values[:1],
    "tail": lambda values: values[1:],
    "reverse": lambda values: values[::-1],
    "subsequence": _subsequence,
    "position": _not_here,
    "last": _not_here,
    "string": _string,
    "number": _number,
    "concat": _concat,
    "string-join": _string_join,
    "contains": _on_texts(lambda text, part: part in text),
    "starts-with": _on_texts(str.startswith),
    "ends-with": _on_texts(str.endswith),
    "substring": _substring,
    "substring-before": _around(True),
    "substring-after": _around(False),
    "string-length": _on_text(len),
    "normalize-space": _on_text(lambda text: _SPACES.sub(" ", text).strip(" ")),
    "upper-case": _on_text(str.upper),
    "lower-case": _on_text(str.lower),
    "translate": _translate,
    "abs": _abs,
    "floor": _rounded(math.floor),
    "ceiling": _rounded(math.ceil),
    "round": _to_digits(half_up=True),
    "round-half-to-even": _to_digits(half_up=False),
    "window-start": window_start,
    "window-end": window_end,
    "name": _name(local=False),
    "local-name": _name(local=True),
    "key": _key,
    "header": _header,
    **TIME_FUNCTIONS,
    LOOKUP: lambda values, key: looked_up(values, key[0]),
    MEMBER: member,
    MEMBERS: members,
    OBJECT: lambda *entries: [made_object(entries)],
    ARRAY: lambda *found: [made_array(found)],
    ARRAY_OF: lambda values: [made_array([[each] for each in values])],
    **OPERATOR_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **FORMATTED_TIMES,
    "parse-ietf-date": parse_ietf_date,
    **SEQUENCE_FUNCTIONS,
}
TEXTUAL = frozenset(
    (
        *("string", "concat", "string-join", "contains", "starts-with", "ends-with", "substring", "substring-before"),
        *("substring-after", "string-length", "normalize-space", "upper-case", "lower-case", "translate"),
        *TIME_FUNCTIONS,
        *FORMATTED_TIMES,
        "parse-ietf-date",
        *(name for name in TEXT_FUNCTIONS if name not in ("tokenize", "string-to-codepoints")),
    )
)
"""Functions that read or make texts, whose steps grow with the length of these."""
COUNTED = frozenset(
    (
        *("tokenize", "string-to-codepoints", "insert-before", "index-of", "deep-equal"),
        *("op:union", "op:intersect", "op:except", "outermost", "innermost"),
    )
)
"""Functions that read or make many values, each of which is a step."""


def library_steps(name: str, arguments: list[Values], values: Values) -> int:
    """The steps that a call of a built-in function takes, beyond the one that asks for it (LAWS 2.6)."""
    if name in TEXTUAL:
        return text_steps(arguments, values)
    if name in COUNTED:
        return len(values) + sum(map(size_of if name == "deep-equal" else len, arguments))
    return 0
