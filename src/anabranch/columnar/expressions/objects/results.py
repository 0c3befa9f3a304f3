"""Results that leave as JSON, one line for each value (LAWS 7.3): objects, arrays, and what lookups find.

An object is written by its fragments, as an element is, with the values in it as JSON writes them
(`objects/writing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.columnar.expressions.compiling import LookScope
from anabranch.columnar.expressions.computing import is_there
from anabranch.columnar.expressions.junctions import all_of, behind, there_only
from anabranch.columnar.expressions.objects.lookups import there, typed_spot
from anabranch.columnar.expressions.rows.folding import MEMBERS_JOINED
from anabranch.columnar.expressions.scope import behind_first, blaming
from anabranch.columnar.expressions.sequences import CompiledSequence, Needed
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    ConstantValue,
    ContentOf,
    Expression,
    Fragment,
    FunctionCall,
    JsonCopy,
    JsonText,
    Kind,
    Made,
    PartText,
    RecordLine,
    RowLoop,
    RowSource,
    has_constant,
)
from anabranch.language import ast
from anabranch.language.objects import ARRAY, ARRAY_OF, OBJECT
from anabranch.stream.reading.json_items import write_string
from anabranch.values.objects.json_text import json_text

_END = b"\n"
_NOTHING = ContentOf(())


@dataclass(frozen=True, slots=True)
class LineScope(LookScope):
    """Compiles results that are lines of JSON."""

    def gives_pieces(self, expression: ast.Expression) -> bool:
        """Each value is a line, whatever it is."""
        return True

    @blaming
    def result(self, expression: ast.Expression) -> list[Fragment]:
        """What an expression gives, a line for each value."""
        self.work.spend()
        match expression:
            case ast.Sequence(items):
                return [fragment for each in items for fragment in self.result(each)]
            case ast.Flwor((ast.For(name, source, None), *lets), _, order, _) if order:
                return self.ordered_rounds(name, source, lets, expression)
            case ast.Flwor(clauses, where, (), inside):
                return self.rounds(clauses, where, inside)
            case ast.If(condition, one, other):
                sides = (ContentOf(tuple(self.result(each))) for each in (one, other))
                return [Made(Choice(self.truth(condition), *sides))]
            case ast.Call(name) if name in (OBJECT, ARRAY, ARRAY_OF):
                return [*self._json(expression), _END]
            case _ if self.is_path(expression):
                return [fragment for spot in self.filtered_spots(expression) for fragment in self._line_at(spot)]
            case _ if self.may_be_null(expression):
                raise NotColumnar("a value on its own line that is chosen and may be null", "non-null(...) of each")
            case _:
                value = self._value(expression)
                found = FunctionCall("there", (value,), Kind.BOOLEAN)
                return [Made(Choice(found, ContentOf((Made(JsonText(value)), _END)), _NOTHING))]

    def _line_at(self, spot: Spot) -> list[Fragment]:
        if spot == spot.bare and spot.part in spot.look.own:
            return [Made(RecordLine(spot.whole))]
        if not spot.is_typed:
            raise NotColumnar("XML beside JSON")
        if not spot.is_single:
            rows = self.nodes_at(spot)
            content = ContentOf((Made(_written(spot)[0]), _END))
            found = RowLoop(rows.frame, rows.condition, content, self.frame, spot.side)
            return [Made(behind(self.asked([spot]), found))]
        if spot.condition is not None:
            raise NotColumnar("a value that a predicate selects, on its own line", "a loop with `where`")
        written, clear = _written(spot)
        return [Made(behind([clear], Choice(there(spot), ContentOf((Made(written), _END)), _NOTHING)))]

    # --- values in objects ----------------------------------------------------------------------------------

    @blaming
    def _json(self, expression: ast.Expression) -> list[Fragment]:
        """A value in an object or array."""
        self.work.spend()
        match expression:
            case ast.Sequence(()):
                return [b"null"]
            case ast.Sequence((only,)):
                return self._json(only)
            case ast.Call(name, arguments) if name == OBJECT:
                return self._object(arguments[::2], arguments[1::2])
            case ast.Call(name, members) if name == ARRAY:
                return [b"[", *_between([self._json(each) for each in members]), b"]"]
            case ast.Call(name, (members,)) if name == ARRAY_OF:
                return [b"[", Made(self.folded(MEMBERS_JOINED, members, ())), b"]"]
            case ast.Flwor((ast.Let(name, bound), *_), _, ()):
                scope, clear = self.let(name, bound)
                content = ContentOf(tuple(scope._json(behind_first(expression))))
                return [Made(content if clear is None else behind([clear], content))]
            case ast.If(condition, one, other):
                sides = (ContentOf(tuple(self._json(each))) for each in (one, other))
                return [Made(Choice(self.truth(condition), *sides))]
            case ast.Filter(ast.Sequence(items), (ast.Positional(ast.Number("1")),)):
                return self._first_json([*map(_with_type, self.candidates(items))])
            case _ if self.is_path(expression):
                return self._json_at(self.filtered_spots(expression))
            case _:
                return self._json_of(self._value(expression))

    def _json_of(self, value: Expression) -> list[Fragment]:
        if isinstance(value, ConstantValue) and not has_constant(value, self.work.marks):
            return [json_text(value.value).encode()]
        return [Made(JsonText(value))]

    def _first_json(self, values: Sequence[Expression]) -> list[Fragment]:
        """The first value that is there, of whichever type; an error in another one is an error, too."""
        found = self._json_of(values[-1])
        for each in reversed(values[:-1]):
            written = self._json_of(each)
            found = [Made(Choice(is_there(each), ContentOf(tuple(written)), ContentOf(tuple(found))))]
        return [Made(behind([Clear(each) for each in values], ContentOf(tuple(found))))]

    def _object(self, keys: Sequence[ast.Expression], values: Sequence[ast.Expression]) -> list[Fragment]:
        names = [each.value for each in keys if isinstance(each, ast.String)]
        if len(set(names)) < len(keys):
            raise NotColumnar("keys that are computed, or given twice")
        entries: list[list[Fragment]] = [
            [f"{write_string(name)}: ".encode(), *self._json(value)] for name, value in zip(names, values, strict=True)
        ]
        return [b"{", *_between(entries), b"}"]

    def _json_at(self, spots: Sequence[Spot]) -> list[Fragment]:
        if not spots:
            return [b"null"]
        if len(spots) > 1:
            raise NotColumnar("a path to several values")
        (spot,) = spots
        if spot == spot.bare and spot.part in spot.look.own:
            return [Made(RecordLine(spot.whole, is_ended=False))]
        if (spot.is_attribute and not spot.is_typed) or spot.part in spot.look.own:
            raise NotColumnar("an attribute in an object, or an item that is selected", "the keys that are needed")
        if not spot.is_typed:
            spot = typed_spot(spot)
            if spot.is_array:
                raise NotColumnar("a path to several values")
        if not spot.is_single and not spot.is_chosen:
            raise NotColumnar("a path to several values")
        if spot.condition is not None:
            return [Made(JsonText(self._text([spot])))]
        written, _ = _written(spot)
        return [Made(written)]

    def _value(self, expression: ast.Expression) -> Expression:
        return _with_type(self.written(expression))

    # --- members ----------------------------------------------------------------------------------------------

    def clear_of(self, expression: ast.Expression) -> Expression | None:
        """What must be clear for an expression with any number of values, or objects."""
        found = self.sequence(expression, Needed.GIVEN)
        return all_of([*found.clears, *self._value_clears(found)])

    def given_at(self, spot: Spot, use: Needed) -> RowSource:
        """What is at a spot, for some use."""
        if use is not Needed.GIVEN:
            return super(LineScope, self).given_at(spot, use)
        if spot == spot.bare and spot.part in spot.look.own:
            return RowSource(self.frame, None, RecordLine(spot.whole, is_ended=False), self.side)
        if not spot.is_typed:
            raise NotColumnar("nodes in an array", "lookups with dots")
        return replace(self.nodes_at(spot), value=_written(spot)[0])

    def single(self, expression: ast.Expression, use: Needed) -> CompiledSequence:
        """A sequence of one value at most, or of one object."""
        match expression:
            case ast.Call(name) if use is Needed.GIVEN and name in (OBJECT, ARRAY, ARRAY_OF):
                made = ContentOf(tuple(self._json(expression)))
                return CompiledSequence((RowSource(self.frame, None, made, self.side),))
            case _:
                return super(LineScope, self).single(expression, use)

    def used(self, values: CompiledSequence, use: Needed) -> CompiledSequence:
        """Values that were computed, for some use."""
        if use is not Needed.GIVEN:
            return super(LineScope, self).used(values, use)
        return replace(values, sources=tuple(map(_as_json, values.sources)))


def _with_type(value: Expression) -> Expression:
    if value.kind is Kind.UNTYPED:
        raise NotColumnar("text without a type in an object", "string(...) or number(...)")
    return value


def _as_json(source: RowSource) -> RowSource:
    """Values as JSON, where they are there."""
    assert source.value is not None
    if source.value.kind is Kind.UNTYPED:
        raise NotColumnar("text without a type in an object", "string(...) or number(...)")
    if source.value.kind is Kind.CONTENT:
        raise NotColumnar("an object or array that is not just given")
    return replace(source, condition=there_only(source).condition, value=JsonText(source.value))


def _written(spot: Spot) -> tuple[Expression, Expression]:
    """What is at a spot as JSON, and that it is clear."""
    if spot.is_array or not spot.look.parts[spot.part].has_text:
        copy = JsonCopy(spot.whole, spot.side)
        return copy, Clear(copy)
    text = PartText(spot.text, spot.side, spot.kind)
    return JsonText(text), Clear(text)


def _between(pieces: Sequence[list[Fragment]]) -> list[Fragment]:
    """Pieces with commas between them."""
    found: list[Fragment] = []
    for number, each in enumerate(pieces):
        found += [*([b", "] if number else []), *each]
    return found
