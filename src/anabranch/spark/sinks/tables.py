"""Which queries have tables for answers, and with what columns; decided from the query alone, before anything runs.

The results must be elements of one name with leaves in them, as in `<hit at="1"><ra>..</ra><en>..</en></hit>`.
Columns are the attributes (`@at`) and the leaves, by name; an element with text and no leaves is a column of its own
name.

What a query computes has a type (`language/value_types.py`), and a column with only such values has that type:
`integer`, `number` (a double) or `boolean`.
Everything else is `text`: what is copied from items keeps its spelling (LAWS 2.1), several values in one place are
text, and so is a column that may come from places of different types, or from a place that the query does not name.

A leaf may come from a constructor or from a path, `{ $p/en }`.
Whether a path finds a leaf, and only one, depends on the data; a piece that is no row is set aside by the sink
(`parquet.py`).
Columns that the query does not name, as behind `{ $p/* }`, are learned from the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.algebra.operators.construct import Construct, Copy, Linear
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.order import Order
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.quantify import Quantify
from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.operators.windowed import WID, Window
from anabranch.algebra.plans.interpret import Apply, Plan
from anabranch.errors import UsageError
from anabranch.language import ast
from anabranch.language.rewrite import bound_by, parts
from anabranch.language.value_types import NOTHING, ValueType, ValueTypes

ColumnType: TypeAlias = Literal["integer", "number", "boolean", "text"]

_TEXT_HINT = "give its text, as in <en>{ $p/en/text() }</en>"


def columns(query: ast.Query) -> dict[str, ColumnType]:
    """The columns that a checked query names, in its order; `UsageError` where its answer cannot be a table."""
    start = _Scope(ValueTypes({each.name: each for each in query.functions}))
    rows = list(_rows(query.body, start))
    names = list(dict.fromkeys(row.element.name for row in rows))
    if not names:
        raise _no_result()
    if len(names) > 1:
        raise _no_table(f"there are results '{names[0]}' and '{names[1]}'", "one kind of row makes a table")
    found = _Content()
    for row in rows:
        found |= _columns(row)
    return {name: _column_type(found, name, given) for name, given in found.named}


def _column_type(found: _Content, name: str, given: ValueType) -> ColumnType:
    if given.many or ("attribute" if name.startswith("@") else "element") in found.open:
        return "text"
    return given.kind if given.kind in ("integer", "number", "boolean") else "text"


def names_in_results(query: ast.Query) -> Set[str] | None:
    """The names of attributes (`@at`) and children that results can have; None where data may bring others."""
    start = _Scope(ValueTypes({each.name: each for each in query.functions}))
    try:
        rows = [(row, [_given(part, row.scope) for part in row.element.content]) for row in _rows(query.body, start)]
    except UsageError:
        return None
    if not rows or any(each.open for _, content in rows for each in content):
        return None
    return {f"@{each.name}" for row, _ in rows for each in row.element.attributes} | {
        name for _, content in rows for each in content for name in each.names
    }


def check_table(name: str, query: ast.Query) -> None:
    """Refuse a table sink for a subscription whose answer cannot be a table."""
    try:
        columns(query)
    except UsageError as error:
        raise UsageError(
            f"subscription '{name}' cannot have a 'parquet' sink: {error.message}", hint=error.hint
        ) from None


def _no_table(reason: str, hint: str) -> UsageError:
    return UsageError(f"the answer is no table: {reason}", hint=hint)


def _no_result() -> UsageError:
    return _no_table("a result is no element constructor", "as in return <row>{ $p/en }</row>")


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of an expression: attributes and elements by name, as far as known, and the text it may be."""

    named: tuple[tuple[str, ValueType], ...] = ()
    """With the type of their content; a name that occurs twice stands here twice."""
    text: ValueType | None = None
    open: frozenset[_Open] = frozenset()
    """Whether it may give elements or attributes whose names are not known."""

    def __or__(self, other: _Content) -> _Content:
        """The content of one or the other."""
        types: dict[str, ValueType] = {}
        for name, given in (*self.named, *other.named):
            types[name] = types[name] | given if name in types else given
        return _Content(tuple(types.items()), self._text_or(other), self.open | other.open)

    def __add__(self, other: _Content) -> _Content:
        """The content of both together."""
        return _Content(self.named + other.named, self._text_or(other), self.open | other.open)

    def _text_or(self, other: _Content) -> ValueType | None:
        return self.text | other.text if self.text and other.text else self.text or other.text

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.named]

    @property
    def leaves(self) -> list[str]:
        return [name for name in self.names if not name.startswith("@")]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The contents of variables, as far as known, and the types of their values."""

    types: ValueTypes
    held: Mapping[str, _Content] = field(default_factory=dict)
    values: Mapping[str, ValueType] = field(default_factory=dict)

    def type_of(self, expression: ast.Expression) -> ValueType:
        return self.types.of(expression, self.values)


_Open: TypeAlias = Literal["element", "attribute"]
_ALL: frozenset[_Open] = frozenset(("element", "attribute"))
_ANYTHING = _Content(open=_ALL)
_COPIED = ValueType("untyped")
_WORDS = ValueType("string")


@dataclass(frozen=True, slots=True)
class _Row:
    """A constructor of results, and the variables in scope there."""

    element: ast.ElementConstructor
    scope: _Scope


def _rows(expression: ast.Expression, scope: _Scope) -> Iterator[_Row]:
    """The constructors of the results, which must have one name."""
    match expression:
        case ast.ElementConstructor(content=content) if _reads(expression):  # the frame around the results
            for part in content:
                inner = part.value if isinstance(part, ast.Enclosed) else part
                if _reads(inner) and not isinstance(inner, ast.Characters | ast.CommentConstructor):
                    yield from _rows(inner, scope)
        case ast.ElementConstructor():
            yield _Row(expression, scope)
        case ast.Flwor(result=result) | ast.Pipeline(result=result):
            yield from _rows(result, _inside(expression, scope))
        case ast.If(_, then, otherwise):
            yield from _rows(then, scope)
            yield from _rows(otherwise, scope)
        case ast.Sequence(items):
            for each in items:
                yield from _rows(each, scope)
        case _:
            raise _no_result()


def _inside(loop: ast.Flwor | ast.Pipeline, scope: _Scope) -> _Scope:
    """The variables in scope in the result of a loop."""
    outside = scope.values
    for place, clause in enumerate(loop.clauses, 1):
        held: dict[str, _Content] = {}
        match clause:
            case ast.For(name, source) | ast.PositionalFor(name, _, source) | ast.Let(name, source):
                held[name] = _held(source, scope)
            case _:
                pass
        values = scope.types.within(loop.clauses[:place], outside)
        numbers = {each: _Content(text=values[each]) for each in bound_by(clause) if each not in held}
        scope = _Scope(scope.types, {**scope.held, **held, **numbers}, values)
    return scope


def _held(bound: ast.Expression, scope: _Scope) -> _Content:
    try:
        return _value(bound, scope)
    except UsageError:
        return _ANYTHING  # an item is no leaf, but a path into it may be


def _reads(part: object) -> bool:
    """Whether a part of a query reads a stream; a constructor of results reads variables only."""
    return any(isinstance(each, ast.Source) and each.kind == "stream" for each in parts(part))


def _columns(row: _Row) -> _Content:
    element, scope = row.element, row.scope
    content = [_given(part, scope) for part in element.content]
    names = [f"@{each.name}" for each in element.attributes]
    names += [name for each in content for name in each.names]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise _no_table(f"'{twice[0]}' stands more than once in '{element.name}'", "give each column its own name")
    leaves = any(each.leaves for each in content)
    if leaves and any(isinstance(part, ast.Characters) and part.value.strip() for part in element.content):
        raise _no_table(f"'{element.name}' has text beside its elements", "put the text into an element")
    found = _Content(tuple((f"@{each.name}", _written(each.value, scope)) for each in element.attributes))
    for each in content:
        found |= _Content(each.named, open=each.open)
    if not leaves and (not content or any(each.text for each in content)):
        found |= _Content(((element.name, _written(element.content, scope)),))
    return found


def _written(parts: tuple[ast.Content, ...], scope: _Scope) -> ValueType:
    """The type of the text in an element or attribute: that of its expression, if there is only one."""
    given = [each for each in parts if not isinstance(each, ast.CommentConstructor)]
    match given:
        case []:
            return NOTHING
        case [ast.Enclosed(value)]:
            return scope.type_of(value)
        case _:
            return _WORDS


def _given(part: ast.Content, scope: _Scope) -> _Content:
    match part:
        case ast.Enclosed(value):
            return _value(value, scope)
        case ast.ElementConstructor():
            return _value(part, scope)
        case ast.Characters():
            return _Content(text=_WORDS)
        case ast.CommentConstructor():
            return _Content()


def _value(expression: ast.Expression, scope: _Scope) -> _Content:
    match expression:
        case ast.ElementConstructor(name):
            _check_leaf(expression, scope)
            return _Content(((name, _written(expression.content, scope)),))
        case ast.Path(_, steps):
            return _found(steps[-1])
        case ast.Variable(name) if name in scope.held:
            return scope.held[name]
        case ast.Filter(base):
            return _value(base, scope)
        case ast.Flwor(result=result) | ast.Pipeline(result=result):
            return _value(result, _inside(expression, scope))
        case ast.If(_, then, otherwise):
            return _value(then, scope) | _value(otherwise, scope)
        case ast.Sequence(items):
            found = _Content()
            for each in items:
                found += _value(each, scope)
            return found
        case ast.Source() | ast.Root() | ast.ContextItem():
            return _ANYTHING
        case _:
            given = scope.type_of(expression)
            return _Content(text=given, open=_ALL if given.nodes else frozenset())


def _found(step: ast.Step) -> _Content:
    """The content that the last step of a path finds; a prefixed name may be written otherwise in the data."""
    match step.axis, step.test:
        case "attribute", ast.NameTest(local, None) if local != "*":
            return _Content(((f"@{local}", _COPIED),))
        case "child" | "descendant", ast.NameTest(local, None) if local != "*":
            return _Content(((local, _COPIED),))
        case _, ast.KindTest("text"):
            return _Content(text=_COPIED)
        case "attribute", _:
            return _Content(open=frozenset(("attribute",)))
        case "child" | "descendant" | "parent", _:
            return _Content(open=frozenset(("element",)))
        case _:
            return _Content(open=_ALL)


def _check_leaf(leaf: ast.ElementConstructor, scope: _Scope) -> None:
    if leaf.attributes:
        raise _no_table(f"'{leaf.name}' has attributes", "only the row itself may have them")
    for part in leaf.content:
        for name in _given(part, scope).names:
            kind = "attribute" if name.startswith("@") else "element"
            raise _no_table(f"'{leaf.name}' holds the {kind} '{name.lstrip('@')}'", _TEXT_HINT)


# --- plans of operators -----------------------------------------------------------------------------------------------


def computed_columns(plan: Plan) -> dict[str, ColumnType]:
    """The columns that a plan computes, by name, where their types are certain."""
    if not isinstance(plan, Apply):
        return {}
    below = computed_columns(plan.inputs[0])
    match plan.operator:
        case Select() | Quantify() | Order():
            return below
        case Project(kept):
            return {name: given for name, given in below.items() if any(str(path) == name for path in kept)}
        case Window():
            return {**below, str(WID): "integer"}
        case Union():
            others = [computed_columns(each) for each in plan.inputs[1:]]
            return {name: given for name, given in below.items() if all(each.get(name) == given for each in others)}
        case Aggregate(_, by, _, named):
            found: dict[str, ColumnType] = {str(path): below[str(path)] for path in by if str(path) in below}
            return found | {
                str(path): "integer" if AGGREGATES[each].kind == "integer" else "number" for path, each in named
            }
        case Construct(_, fields):
            found = {str(at): "number" for at, value in fields if isinstance(value, Linear)}
            copied = ((at, str(value.path)) for at, value in fields if isinstance(value, Copy))
            return found | {str(at): below[path] for at, path in copied if path in below}
        case _:
            return {}  # the inputs of a join may have the same names
