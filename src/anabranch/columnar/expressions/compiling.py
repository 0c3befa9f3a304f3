"""The compiler from expressions of the language to trees over the columns of one look (`tree.py`).

Expressions compile if they read one item and their work is bounded by its size: paths of child and attribute steps,
with `//` and `*`, arithmetic, comparisons, `and`, `or`, `if`, `let`, quantifiers, the functions of `functions.py`,
constructors, and loops over repeated parts.
Anything else raises `NotColumnar`, with the construct that is to blame, and is answered by the law.

A part that is repeated makes a *frame*: its occurrences are rows, as items are, and so are rows that are looked up in a
document (`tables/lookups.py`).
A part in an inner frame is a sequence for an expression that is evaluated in an outer one.

The law counts steps (LAWS 2.6) and columns do not, so work is bounded here: a query has at most `MOST_NODES` nodes, an
item that fits at most `LONGEST_FITTING` bytes (`scan/cutter.py`), and loops nest only as elements do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from anabranch.columnar.expressions.conditions import ConditionScope, is_text_path
from anabranch.columnar.expressions.junctions import behind, then
from anabranch.columnar.expressions.scope import CHECKED, blaming
from anabranch.columnar.expressions.sequences import TRUE, Needed
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.start_tags import constructed_tag, copied, escaped
from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    ContentOf,
    Expression,
    Fragment,
    FunctionCall,
    Kind,
    Made,
    PartsInOrder,
    PartText,
    Presence,
    RowKey,
    RowLoop,
    RowSource,
    Taken,
    Wrapped,
)
from anabranch.language import ast
from anabranch.stream.serialize import NOTHING, Scope, escape_attribute, escape_text


@dataclass(frozen=True, slots=True)
class LookScope(ConditionScope):
    """Compiles the results of queries."""

    around: Scope = field(default_factory=lambda: NOTHING)
    """The namespaces that are declared around the result."""

    # --- results ------------------------------------------------------------------------------------------

    @blaming
    def result(self, expression: ast.Expression) -> list[Fragment]:
        """The result of an expression as content, in fragments."""
        self.work.spend()
        match expression:
            case ast.ElementConstructor():
                return self._constructor(expression)
            case ast.Sequence(items):
                return self._in_a_row(items)
            case ast.Flwor((ast.For(), *_)) if not self.gives_nodes(expression):
                return self._values([expression])
            case ast.Flwor((ast.For(name, source, None), *lets), _, order, _) if order:
                return self.ordered_rounds(name, source, lets, expression)
            case ast.Flwor(clauses, where, (), inside):
                return self.rounds(clauses, where, inside)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                return self._each(self.with_text_nodes(start, steps), lambda spot: Taken(spot.text, spot.side))
            case _ if self.is_path(expression) and not self.is_typed(expression):
                return self._each(self.filtered_spots(expression), partial(copied, around=self.around))
            case ast.If(condition, then, otherwise):
                one, other = (ContentOf(tuple(self.result(each))) for each in (then, otherwise))
                return [Made(Choice(self.truth(condition), one, other))]
            case ast.Call("data" | "fn:data", (operand,)) if self.is_path(operand):
                return self._joined(operand)
            case ast.Call("distinct-values" | "fn:distinct-values"):
                return self._joined(expression)
            case ast.Call(name, (operand,)) if name.removeprefix("fn:") in CHECKED and self.gives_nodes(operand):
                clears = self.number_checked(name.removeprefix("fn:"), operand)
                return [Made(behind(clears, ContentOf(tuple(self.result(operand)))))]
            case ast.Filter(ast.Sequence(items), (ast.Positional(ast.Number("1")),)) if items:
                return self._first_result(items)
            case _ if self.gives_nodes(expression, some=True):
                raise NotColumnar("nodes that were chosen before", "an `if` where they are given")
            case _:
                return [Made(escaped(self.written(expression), escape_text))]

    def clear_of(self, expression: ast.Expression) -> Expression | None:
        """What must be clear for an expression with any number of values, or elements."""
        if self.gives_nodes(expression, some=True):
            return Clear(ContentOf(tuple(self.result(expression))))
        return super(LookScope, self).clear_of(expression)

    def _first_result(self, items: Sequence[ast.Expression]) -> list[Fragment]:
        """The first of several things of which each is there at most once; an error in another one is an error, too."""
        for each in items:
            sources = self.sequence(each, Needed.COUNT).sources
            if len(sources) > 1 or any(source.frame != self.frame for source in sources):
                raise NotColumnar("the first of several parts, of which some are repeated")
        *before, last = items
        found: Expression = ContentOf(tuple(self.result(last)))
        for each in reversed(before):
            found = Choice(self._exists(each), ContentOf(tuple(self.result(each))), found)
        clears = [clear for each in items if (clear := self.clear_of(each)) is not None]
        return [Made(behind(clears, found))]

    def gives_pieces(self, expression: ast.Expression) -> bool:
        """Whether what the rounds of a loop give is written one behind the other, with nothing between."""
        return self.gives_nodes(expression)

    def _in_a_row(self, items: Sequence[ast.Expression]) -> list[Fragment]:
        """The results of several expressions one behind the other, with a space between adjacent values."""
        found: list[Fragment] = []
        values: list[ast.Expression] = []
        for each in _flat(items):
            if not self.gives_nodes(each):
                values.append(each)
                continue
            if values and not isinstance(each, ast.ElementConstructor):
                raise NotColumnar("values beside nodes that may be missing", "elements around them")
            found += self._values(values)
            found += self.result(each)
            values = []
        return found + self._values(values)

    def _values(self, items: Sequence[ast.Expression]) -> list[Fragment]:
        """Values with a space between adjacent ones."""
        if len(items) == 1 and not self.is_path(items[0]) and not isinstance(items[0], ast.Flwor):
            return self.result(items[0])
        if not items:
            return []
        if any(self.gives_nodes(each, some=True) for each in items):
            raise NotColumnar("values beside nodes", "elements around them")
        return self._joined(ast.Sequence(tuple(items)))

    def _joined(self, values: ast.Expression) -> list[Fragment]:
        """Values as content, with a space between them."""
        return [Made(escaped(self.folded("string-join", values, (ast.String(" "),)), escape_text))]

    def _each(self, spots: Sequence[Spot], fragment: Callable[[Spot], Taken]) -> list[Fragment]:
        """The nodes of a path, in document order."""
        if not spots:
            return []
        if len(spots) > 1:
            taken = [*map(fragment, spots)]
            if not all(each.bound == self.frame and each.condition is None for each in spots):
                raise NotColumnar("a path to parts of different names that are not all taken")
            if any(each.front for each in taken):
                raise NotColumnar("copies of parts of different names with namespaces")
            found: Expression = PartsInOrder(tuple(each.column for each in taken), self.frame, spots[0].side)
            return [Made(behind(self.asked(spots), found))]
        (spot,) = spots
        if spot.is_single and spot.condition is None:
            return [as_fragment(fragment(spot))]
        if spot.is_single:
            found = Choice(spot.condition or TRUE, ContentOf((fragment(spot),)), ContentOf(()))
        else:
            frame = self.frame_of(spot)
            content = ContentOf((fragment(replace(spot, bound=frame)),))
            found = RowLoop(frame, spot.condition, content, self.frame, spot.side)
        return [Made(behind(self.asked(spots), found))]

    def rounds(
        self, clauses: Sequence[ast.For | ast.Let], where: ast.Expression | None, inside: ast.Expression
    ) -> list[Fragment]:
        """The results of the rounds of a loop, one behind the other; without clauses there is one round."""
        if not clauses:
            content = self.result(inside)
            if where is None:
                return content
            return [Made(Choice(self.truth(where), ContentOf(tuple(content)), ContentOf(())))]
        first, *others = clauses
        match first:
            case ast.Let(name, value):
                scope, clear = self.let(name, value)
                found = scope.rounds(others, where, inside)
                if clear is None:
                    return found
                return [Made(FunctionCall("behind", (clear, ContentOf(tuple(found))), Kind.CONTENT))]
            case ast.For(name, source, None) if self.is_path(source):
                if not self.gives_pieces(ast.Flwor(tuple(clauses), where, (), inside)):
                    raise NotColumnar("a loop whose rounds give values", "elements around them")
                spots, left = self.looped_spots(name, source, where, others)
                if len(spots) > 1:
                    raise NotColumnar("a loop over parts of different names", "a loop for each name")
                return [fragment for spot in spots for fragment in self._rounds(name, spot, others, left, inside)]
            case ast.For(name, source, None):
                if not self.gives_pieces(ast.Flwor(tuple(clauses), where, (), inside)):
                    raise NotColumnar("a loop whose rounds give values", "elements around them")
                each_round, clears = self.value_rounds(name, source)
                contents = [self._value_round(*each, others, where, inside) for each in each_round]
                return [Made(behind(clears, ContentOf(tuple(map(Made, contents)))))]
            case _:
                raise NotColumnar("a loop over windows")

    def _value_round(
        self,
        scope: LookScope,
        rows: RowSource,
        others: Sequence[ast.For | ast.Let],
        where: ast.Expression | None,
        inside: ast.Expression,
    ) -> Expression:
        content = ContentOf(tuple(scope.rounds(others, where, inside)))
        if rows.frame == self.frame:
            return Choice(rows.condition or TRUE, content, ContentOf(()))
        return RowLoop(rows.frame, rows.condition, content, self.frame, rows.side, rows.order)

    def _rounds(
        self,
        name: str,
        spot: Spot,
        others: Sequence[ast.For | ast.Let],
        where: ast.Expression | None,
        inside: ast.Expression,
    ) -> list[Fragment]:
        nodes = self.nodes_at(spot)
        if spot.is_single:
            content = ContentOf(tuple(self.in_round(name, spot).rounds(others, where, inside)))
            found: Expression = Choice(nodes.condition or TRUE, content, ContentOf(()))
        else:
            scope, condition = self.in_round(name, spot), nodes.condition
            if where is not None and not others:
                condition, where = then(condition, scope.truth(where)), None
            content = ContentOf(tuple(scope.rounds(others, where, inside)))
            found = RowLoop(nodes.frame, condition, content, self.frame, spot.side)
        return [Made(behind(self.asked([spot]), found))]

    def ordered_rounds(
        self, name: str, source: ast.Expression, lets: Sequence[ast.For | ast.Let], loop: ast.Flwor
    ) -> list[Fragment]:
        """The results of the rounds of a loop, in the order of its `order by`."""
        if not self.gives_pieces(loop):
            raise NotColumnar("a loop whose rounds give values", "elements around them")
        where = loop.where
        if self.is_path(source):
            spots, where = self.looped_spots(name, source, where, lets)
            rounds, asked = [(self.in_round(name, each), self.nodes_at(each)) for each in spots], self.asked(spots)
        else:
            rounds, asked = self.value_rounds(name, source)
        if len(rounds) != 1:
            raise NotColumnar("a loop with `order by` over something else than one repeated part")
        ((scope, rows),), clears = rounds, []
        for each in lets:
            if not isinstance(each, ast.Let):
                raise NotColumnar("a loop with `order by` and several `for`")
            scope, clear = scope.let(each.variable, each.value)
            clears += [] if clear is None else [clear]
        condition = rows.condition
        if clears or where is not None:
            holds = TRUE if where is None else scope.truth(where)
            condition = then(condition, behind(clears, holds))
        keys = tuple(RowKey(key, each.descending) for each in loop.order for key in scope.order_keys(each.key))
        content = ContentOf(tuple(scope.result(loop.result)))
        if rows.frame == self.frame:
            inside = behind([Clear(each.value) for each in keys], content)
            found: Expression = Choice(condition or TRUE, inside, ContentOf(()))
        else:
            found = RowLoop(rows.frame, condition, content, self.frame, rows.side, (*keys, *rows.order))
        return [Made(behind(asked, found))]

    # --- constructors -------------------------------------------------------------------------------------

    def _constructor(self, constructor: ast.ElementConstructor) -> list[Fragment]:
        names = [constructor.name, *(each.name for each in constructor.attributes)]
        if any(":" in name for name in names[1:]) or len(set(names[1:])) < len(names) - 1:
            raise NotColumnar("a constructor with attributes in namespaces")
        start, around = constructed_tag(constructor, self.around)
        inside = self if around is self.around else replace(self, around=around)
        tag: list[Fragment] = [start.encode()]
        for attribute in constructor.attributes:
            tag += [f' {attribute.name}="'.encode(), *self._attribute_value(attribute), b'"']
        content: list[Fragment] = []
        for part in constructor.content:
            match part:
                case ast.Enclosed(expression):
                    copied, rest = self._copied_attributes(expression, names) if not content else ([], expression)
                    for spot in copied:
                        tag += _copied_attribute(spot)
                        names.append(spot.name)
                    content += inside.result(rest) if rest is not None else []
                case ast.Characters(value):
                    content.append(escape_text(value).encode())
                case ast.CommentConstructor(value):
                    content.append(f"<!--{value}-->".encode())
                case ast.ElementConstructor():
                    content += inside._constructor(part)
        end = f"</{constructor.name}>".encode()
        if not any(content):
            return [*tag, b"/>"]
        if any(isinstance(each, bytes) and each for each in content) or any(map(_is_element, content)):
            return [*tag, b">", *content, end]
        return [*tag, Wrapped(tuple(content), end)]

    def _copied_attributes(
        self, expression: ast.Expression, names: Sequence[str]
    ) -> tuple[list[Spot], ast.Expression | None]:
        """The attributes at the beginning of an expression, copied to an element without such names, and the rest."""
        items = expression.items if isinstance(expression, ast.Sequence) else (expression,)
        found: list[Spot] = []
        for number, each in enumerate(items):
            leads = self.is_path(each) and not (self.is_typed(each) or is_text_path(each))
            spots = self.filtered_spots(each) if leads else []
            known = {*names[1:], *(spot.name for spot in found)}
            fits = len(spots) == 1 and spots[0].is_attribute and spots[0].is_single and spots[0].name not in known
            if not fits or spots[0].condition is not None or ":" in spots[0].name:
                rest = items[number:]
                return found, rest[0] if len(rest) == 1 else ast.Sequence(tuple(rest))
            found += spots
        return found, None

    def _attribute_value(self, attribute: ast.AttributeConstructor) -> list[Fragment]:
        value: list[Fragment] = []
        for part in attribute.value:
            match part:
                case ast.Characters(text):
                    value.append(escape_attribute(text).encode())
                case ast.Enclosed(expression):
                    found = self._joined_value(expression)
                    match found:
                        case PartText(column, side, Kind.UNTYPED):  # what has a type may be unclear
                            value.append(Taken(column, side))
                        case _:
                            value.append(Made(found))
        return value

    def _joined_value(self, expression: ast.Expression) -> Expression:
        """The values of an expression as the text of an attribute, with a space between them."""
        found = self.sequence(expression, Needed.ORDER).sources
        if len(found) == 1 and found[0].frame == self.frame and found[0].condition is None:
            return escaped(self.written(expression), escape_attribute)
        return escaped(self.folded("string-join", expression, (ast.String(" "),)), escape_attribute)


def as_fragment(taken: Taken) -> Fragment:
    """A part of the item as a fragment."""
    return Made(ContentOf((taken,))) if taken.front else taken


def _copied_attribute(spot: Spot) -> list[Fragment]:
    written = ContentOf((f' {spot.name}="'.encode(), Taken(spot.text, spot.side), b'"'))
    return [Made(Choice(Presence(spot.presence, spot.side), written, ContentOf(())))]


def _is_element(fragment: Fragment) -> bool:
    """Whether a fragment always gives an element."""
    return isinstance(fragment, Wrapped)


def _flat(items: Sequence[ast.Expression]) -> Iterator[ast.Expression]:
    """The items of nested sequences."""
    for each in items:
        if isinstance(each, ast.Sequence):
            yield from _flat(each.items)
        else:
            yield each
