"""Which queries have tables for answers, and with what columns; decided from the query alone, before anything runs.

The results must be elements of one name with leaves in them, as in `<hit at="1"><ra>..</ra><en>..</en></hit>`.
Columns are the attributes (`@at`) and the leaves, by name; where an element holds text and no leaves, its text is a
column called like the element.
Nothing is converted: text keeps its spelling (LAWS 2.1).

A leaf may come from a constructor or from a path, `{ $p/en }`.
Whether what a path finds is a leaf, and is there once, is in the data; a piece that turns out to be no row is set aside
by the sink (`parquet.py`).
What the query does not tell, as behind `{ $p/* }`, is learned from the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.errors import UsageError
from anabranch.language import ast
from anabranch.language.rewrite import parts

_TEXT_HINT = "give its text, as in <en>{ $p/en/text() }</en>"


def columns(query: ast.Query) -> tuple[str, ...]:
    """The columns that a checked query tells of, in its order; `UsageError` where its answer cannot be a table."""
    rows = list(_rows(query.body, {}))
    names = list(dict.fromkeys(row.element.name for row in rows))
    if not names:
        raise _no_result()
    if len(names) > 1:
        raise _no_table(f"there are results '{names[0]}' and '{names[1]}'", "one kind of row makes a table")
    return tuple(dict.fromkeys(name for row in rows for name in _columns(row)))


def check_table(name: str, query: ast.Query) -> None:
    """Refuse a sink for tables where the answer to a subscription cannot be one."""
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
    """What an expression gives: attributes and elements by name, as far as known, and whether it may be text too."""

    names: tuple[str, ...] = ()
    text: bool = False

    def __or__(self, other: _Content) -> _Content:
        """One or the other."""
        return _Content(tuple(dict.fromkeys(self.names + other.names)), self.text or other.text)

    @property
    def leaves(self) -> list[str]:
        return [name for name in self.names if not name.startswith("@")]


_Scope: TypeAlias = Mapping[str, _Content]
"""What variables hold, as far as known."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A constructor that makes results, and the variables that it sees."""

    element: ast.ElementConstructor
    scope: _Scope


def _rows(expression: ast.Expression, scope: _Scope) -> Iterator[_Row]:
    """The constructors that make the results, which must all be made by one."""
    match expression:
        case ast.ElementConstructor(content=content) if _reads(expression):  # the frame around the results
            for part in content:
                inner = part.value if isinstance(part, ast.Enclosed) else part
                if _reads(inner) and not isinstance(inner, ast.Characters | ast.CommentConstructor):
                    yield from _rows(inner, scope)
        case ast.ElementConstructor():
            yield _Row(expression, scope)
        case ast.Flwor(result=result):
            yield from _rows(result, _inside(expression, scope))
        case ast.If(_, then, otherwise):
            yield from _rows(then, scope)
            yield from _rows(otherwise, scope)
        case ast.Sequence(items):
            for each in items:
                yield from _rows(each, scope)
        case _:
            raise _no_result()


def _inside(loop: ast.Flwor, scope: _Scope) -> _Scope:
    """The variables that the result of a loop sees."""
    for clause in loop.clauses:
        bound = clause.source if isinstance(clause, ast.For) else clause.value
        try:
            held = _value(bound, scope)
        except UsageError:
            held = _Content()  # no leaf as it stands; what is taken out of it is another matter
        scope = {**scope, clause.variable: held}
    return scope


def _reads(part: object) -> bool:
    """Whether a stream is read in a part of a query; what makes a result reads variables only."""
    return any(isinstance(each, ast.Source) and each.kind == "stream" for each in parts(part))


def _columns(row: _Row) -> Iterable[str]:
    element = row.element
    content = [_given(part, row.scope) for part in element.content]
    names = [f"@{each.name}" for each in element.attributes]
    names += [name for each in content for name in each.names]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise _no_table(f"'{twice[0]}' stands more than once in '{element.name}'", "give each column its own name")
    leaves = any(each.leaves for each in content)
    if leaves and any(isinstance(part, ast.Characters) and part.value.strip() for part in element.content):
        raise _no_table(f"'{element.name}' has text beside its elements", "put the text into an element")
    text = not leaves and (not content or any(each.text for each in content))
    return [*names, element.name] if text else names


def _given(part: ast.Content, scope: _Scope) -> _Content:
    match part:
        case ast.Enclosed(value):
            return _value(value, scope)
        case ast.ElementConstructor():
            return _value(part, scope)
        case ast.Characters():
            return _Content(text=True)
        case ast.CommentConstructor():
            return _Content()


def _value(expression: ast.Expression, scope: _Scope) -> _Content:
    match expression:
        case ast.ElementConstructor(name):
            _check_leaf(expression, scope)
            return _Content((name,))
        case ast.Path(_, steps):
            return _found(steps[-1])
        case ast.Variable(name) if name in scope:
            return scope[name]
        case ast.Filter(base):
            return _value(base, scope)
        case ast.Flwor(result=result):
            return _value(result, _inside(expression, scope))
        case ast.If(_, then, otherwise):
            return _value(then, scope) | _value(otherwise, scope)
        case ast.Sequence(items):
            given = [_value(each, scope) for each in items]
            return _Content(tuple(name for each in given for name in each.names), any(each.text for each in given))
        case _:
            return _Content(text=True)


def _found(step: ast.Step) -> _Content:
    """What a path finds with its last step; a name with a prefix may be written otherwise in the data."""
    match step.axis, step.test:
        case "attribute", ast.NameTest(local, None) if local != "*":
            return _Content((f"@{local}",))
        case "child" | "descendant", ast.NameTest(local, None) if local != "*":
            return _Content((local,))
        case _, ast.KindTest("text"):
            return _Content(text=True)
        case _:
            return _Content()


def _check_leaf(leaf: ast.ElementConstructor, scope: _Scope) -> None:
    if leaf.attributes:
        raise _no_table(f"'{leaf.name}' has attributes", "only the row itself may have them")
    for part in leaf.content:
        for name in _given(part, scope).names:
            kind = "attribute" if name.startswith("@") else "element"
            raise _no_table(f"'{leaf.name}' holds the {kind} '{name.lstrip('@')}'", _TEXT_HINT)
