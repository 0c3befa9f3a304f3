"""Where lookups lead: `$o.customer.country`, `$o.tags[]`, `$o.lines[[1]].sku` (LAWS 7.1).

A lookup leads to a typed part of a part (`scan/look.py`): what the part holds as far as it is of the type that the
look has learned.
So it is a spot like any other, whose texts have a type.
A key that is mostly an array leads to the array as it stands in the record; its members are the rows of the repeated
part, under the condition that there is an array.
`null` is nothing to an expression that computes with it, and the typed part is absent there; where `null` and a missing
key differ, the part itself is asked, which is present for `null`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.columnar.expressions.junctions import either, then
from anabranch.columnar.expressions.scope import PathScope
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Choice,
    ColumnComparison,
    ConstantValue,
    Expression,
    FunctionCall,
    Junction,
    Kind,
    PartText,
    Presence,
    RowFold,
    RowPlace,
    RowQuantifier,
    RowSource,
    Truth,
)
from anabranch.columnar.scan.look import Look
from anabranch.language import ast
from anabranch.language.objects import CALL, LOOKUP, MEMBER, MEMBERS
from anabranch.stream.reading.json_names import step_of_key
from anabranch.values.operators import ComparisonOperator

_WORDS: Mapping[bool, str] = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class ObjectScope(PathScope):
    """Compiles lookups in items of JSON."""

    def looked_up(self, lookup: ast.Call) -> list[Spot]:
        match lookup:
            case ast.Call(name, (base, ast.String(key))) if name == LOOKUP:
                return [found for spot in self.filtered_spots(base) for found in _under(spot, key)]
            case ast.Call(name, (base,)) if name == MEMBERS:
                return [members_of(each) for each in self.filtered_spots(base)]
            case ast.Call(name, (base, ast.Number(place))) if name == MEMBER and place.isdigit() and int(place):
                return [_member(each, int(place)) for each in self.filtered_spots(base)]
            case ast.Call(name, (base, argument)) if name == CALL:
                return [_called(each, argument) for each in self.filtered_spots(base)]
            case _:
                raise NotColumnar("a place of a member that is computed", "a whole number")

    def opened(self, spots: Sequence[Spot]) -> list[Spot]:
        """Spots with the members of arrays in the place of these, as they stand for them where values are meant."""
        return [members_of(each) if each.is_array else each for each in spots]


def _under(spot: Spot, key: str) -> list[Spot]:
    """What a key has in what is at a spot; nothing where no item has such a key."""
    if not spot.look.is_json:
        raise NotColumnar("a lookup in XML", "paths with `/`")
    if spot.is_array:
        raise NotColumnar("a key of what is an array in most items", "`[]` for its members")
    look = spot.look
    name = step_of_key(key)
    found = [each for each in look.children(look.shown(spot.part)) if look.parts[each].name == name]
    return [typed_spot(replace(spot, part=each)) for each in found]


def typed_spot(spot: Spot) -> Spot:
    """The value at a part that a key leads to: its array, or what it holds as far as that is of one type."""
    look, part = spot.look, spot.look.parts[spot.part]
    if part.repeated:
        return replace(spot, part=look.array(spot.part))
    return replace(spot, part=_typed(look, spot.part))


def _typed(look: Look, part: int) -> int:
    found = look.typed(part)
    if found < 0:
        raise NotColumnar("a key of which no value was seen yet, but `null`")
    return found


def members_of(spot: Spot) -> Spot:
    """The members of an array, one for each row of the repeated part."""
    if not spot.is_array:
        raise NotColumnar("the members of what is no array in most items")
    there = Presence(spot.presence, spot.side)
    part = _typed(spot.look, spot.look.shown(spot.part))
    return replace(spot, part=part, condition=then(spot.condition, there))


def _member(spot: Spot, place: int) -> Spot:
    """The member at a place."""
    found = members_of(spot)
    frame = spot.look.shown(spot.part)
    if spot.look.frames[spot.part] != spot.bound:
        raise NotColumnar("a member of each of several arrays")
    here = ColumnComparison("=", RowPlace(frame, False, None, spot.bound), ConstantValue(place))
    return replace(found, condition=then(found.condition, here), is_chosen=True)


def _called(spot: Spot, argument: ast.Expression) -> Spot:
    """What a call of an array or object gives: the member at a place, which must be there, or the value of a key."""
    match argument:
        case ast.Number(place) if spot.is_array and spot.is_single and place.isdigit() and int(place):
            found = _member(spot, int(place))
            frame = spot.look.shown(spot.part)
            count = RowFold("count", (RowSource(frame, None, None, spot.side),), (), Kind.INTEGER, spot.bound)
            is_there = Junction(
                True,
                (Presence(spot.presence, spot.side), ColumnComparison(">=", count, ConstantValue(int(place)))),
            )
            needed = FunctionCall("needed", (is_there,), Kind.BOOLEAN)
            return replace(found, asked=(*found.asked, (spot.bound, needed)))
        case ast.String(key) if spot == spot.bare and spot.is_single and spot.is_typed and not spot.is_array:
            needed = FunctionCall("needed", (Presence(spot.presence, spot.side),), Kind.BOOLEAN)
            for found in _under(spot, key):
                return replace(found, condition=needed, asked=((spot.bound, needed),))
    raise NotColumnar("a call of what is no array in most items")


def there(spot: Spot) -> Expression:
    """Whether there is a value at a typed spot, be it `null`, or of a type that is not the usual one."""
    look, shown = spot.look, spot.look.shown(spot.part)
    typed = Presence(spot.presence, spot.side)
    if spot.is_array:
        members = RowQuantifier(shown, True, ConstantValue(True), look.frames[spot.part], spot.side)
        return either([typed, members])  # what is no array is a row of its own
    if look.frames[shown] == shown:
        return ConstantValue(True)
    return either([typed, Presence(look.presence(shown), spot.side)])


def null_last(spots: Sequence[Spot]) -> list[Expression]:
    """What tells `null` from what is missing among keys of an order: it stands behind that (LAWS 7.1)."""
    return [there(each) for each in spots if each.is_typed and each.condition is None and not each.is_array]


# --- values that have a type ------------------------------------------------------------------------------------


def untyped(value: Expression) -> Expression:
    """A value for whoever computes with it: a number of JSON is text there that is a number (LAWS 7.1)."""
    return _with_kind(value, Kind.NUMBER, Kind.UNTYPED)


def untyped_source(source: RowSource) -> RowSource:
    """The same for the values of a sequence."""
    return source if source.value is None else replace(source, value=untyped(source.value))


def as_text(value: Expression) -> Expression:
    """A value as its text: also a truth value of JSON."""
    return _with_kind(untyped(value), Kind.FLAG, Kind.STRING)


def as_flag(value: Expression) -> Expression:
    """A condition as a value that may be absent; any other value as it is."""
    return FunctionCall("flag", (value,), Kind.FLAG) if value.kind is Kind.BOOLEAN else value


def _with_kind(value: Expression, old: Kind, new: Kind) -> Expression:
    if value.kind is not old:
        return value
    match value:
        case PartText() | RowFold():
            return replace(value, kind=new)
        case Choice(condition, one, other):
            return Choice(condition, _with_kind(one, old, new), _with_kind(other, old, new))
        case FunctionCall("behind" | "where", (first, operand)):
            return replace(value, arguments=(first, _with_kind(operand, old, new)), kind=new)
        case FunctionCall() if old is Kind.FLAG:
            return replace(value, kind=new)
        case _:
            raise AssertionError("what has such a type was read, or chosen from such")


def typed_truth(value: Expression) -> Expression:
    """The effective boolean value of what has a type."""
    match value.kind:
        case Kind.FLAG:
            return ColumnComparison("=", as_text(value), ConstantValue("true"))
        case Kind.NUMBER:
            return ColumnComparison("!=", value, ConstantValue(0))
        case _:
            return Truth(value)


def compared(operator: ComparisonOperator, left: Expression, right: Expression) -> Expression:
    """Two values that can be compared; truth values of JSON compare as the two words that they are."""
    if Kind.FLAG not in (left.kind, right.kind):
        return ColumnComparison(operator, left, right)
    sides: list[Expression] = []
    for each in (left, right):
        match each:
            case ConstantValue(bool() as value):
                sides.append(ConstantValue(_WORDS[value]))
            case _ if each.kind is Kind.FLAG:
                sides.append(as_text(each))
            case _:
                raise NotColumnar("a truth value of JSON compared with what is computed")
    if operator not in ("=", "!="):
        raise NotColumnar("an order of truth values")
    return ColumnComparison(operator, *sides)
