"""Queries that differ only in the literals they compute with: parsed, checked and compiled once for all of them.

Of ten thousand subscriptions most are the same few questions about other numbers.
A text is split at its literals; texts with the same pieces between them, and literals of the same kinds, have one
*shape*, and differ in their *constants*.

Only literals that are compared or computed with are constants, by their places in the syntax tree.
Other literals (in a constructor, in the size of a window) have to be equal.
So a text of a known shape means what the first text of that shape means, with other constants: up to each constant both
are the same characters, and a literal ends where one of its kind ends.
Texts that differ in the names of variables as well have one shape, too: so a query and its twin in SQL are one.

The shape's own query has *marks* in place of constants, numbers and strings that no user writes, by which they are
found again in whatever is compiled from it.

Checking a query takes a millisecond or two; for a query that differs from a known one in its constants only, it is
enough to replace the constants (`CheckedTexts`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.language import ast, parse
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.language.printer import print_query
from anabranch.language.rewrite import children, parts, with_plain_names
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing, standing

Constant: TypeAlias = float | bytes

_LITERAL = re.compile(
    r"""(["'.0-9](?:
        (?<=[0-9])(?<![\w.$][0-9])(?<![\w.]-[0-9])[0-9]*(?:\.[0-9]+)?(?![\w.])
        |(?<=\.)(?<![\w.$]\.)(?<![\w.]-\.)[0-9]+(?![\w.])
        |(?<=")[^"]*"
        |(?<=')[^']*'
    ))""",
    re.VERBOSE,
)
"""A number that is no part of a name or of a longer number, or a string.

Every text that is registered is split here, and Python finds the next match several times as fast where a pattern
begins with a class of characters; so what must not stand before a number is looked for behind its first character.
"""
_PLAIN = re.compile(r"[^\"'&<>{}\s]*(?: [^\"'&<>{}\s]+)*")
_LONGEST, _LONGEST_INTEGER = 15, 30
"""Numbers of up to so many characters are constants: a short one is exactly a double, a longer integer is compared as
the nearest double (`columnar/expressions/scope.py`); longer literals belong to the shape."""
_MARK = 700_000_000
_MOST_SHAPES, _MOST_TEXTS = 20_000, 1_000_000
"""The number of shapes that are cached, and of texts."""


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text split at its literals."""

    key: tuple[str, ...]
    """The pieces, and between them the kind of each literal."""
    literals: tuple[str, ...]

    @staticmethod
    def of(text: str) -> SplitText:
        pieces = _LITERAL.split(text)
        literals = tuple(pieces[1::2])
        pieces[1::2] = map(_kind, literals)
        return SplitText(tuple(pieces), literals)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The places of the literals in the text."""
        found: list[tuple[int, int]] = []
        at = 0
        for piece, literal in zip(self.key[::2], self.literals, strict=False):
            at += len(piece)
            found.append((at, at + len(literal)))
            at += len(literal)
        return found

    def with_literals(self, others: Mapping[int, str]) -> str:
        """The text with some literals replaced, given by number."""
        pieces = list(self.key)
        pieces[1::2] = (others.get(number, each) for number, each in enumerate(self.literals))
        return "".join(pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The common part of queries that differ in constants only; each shape is one object."""

    standing: Standing
    """The query with marks in place of its constants, so its literals are not the user's."""
    marks: tuple[Constant, ...]
    computes_results: bool = False
    """Whether results are computed from constants: then the accents that come out depend on them."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """A query: its shape, and its constants in the order of the marks; equal for equivalent queries."""

    shape: Shape
    constants: tuple[Constant, ...]
    long: tuple[str, ...] = ()
    """The constants that are long integers, as they are written: several may have the same nearest double."""


class Shapes:
    """The known shapes, for queries with the same registered functions."""

    def __init__(self, functions: Mapping[str, PythonFunction] | None = None) -> None:
        self._functions = functions or {}
        self._known: dict[tuple[str, ...], _Known] = {}
        self._shaped: dict[str, Shaped] = {}

    def of(self, text: str) -> Shaped:
        """The shape of a checked and printed query."""
        found = self._shaped.get(text)
        if found is None:
            if len(self._shaped) >= _MOST_TEXTS:
                self._shaped.clear()
            found = self._shaped[text] = self._of(text)
        return found

    def _of(self, text: str) -> Shaped:
        cut = SplitText.of(text)
        known = self._known.get(cut.key)
        if known is None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            known = self._known[cut.key] = self._twins(cut, text)
        return known.shaped(cut, text, self._functions)

    def _twins(self, cut: SplitText, text: str) -> _Known:
        """The shapes of a text with new pieces: those of a text that differs in the names of variables only, if any."""
        query = parse(text)
        plain = SplitText.of(print_query(with_plain_names(query)))
        if len(plain.literals) != len(cut.literals):  # a name looked like a literal
            return _Known.of(cut, standing(query, self._functions))
        if plain.key not in self._known:
            self._known[plain.key] = _Known.of(cut, standing(query, self._functions))
        return self._known[plain.key]


@dataclass(frozen=True, slots=True)
class _Known:
    """The shapes of texts with the same pieces, by the literals that are no constants."""

    constants: tuple[int, ...]
    """The indices of the literals that are constants."""
    long: tuple[int, ...]
    """The indices of the constants that are long integers."""
    fixed: tuple[int, ...]
    """The indices of the other literals."""
    shapes: dict[tuple[str, ...], Shape]

    @staticmethod
    def of(cut: SplitText, query: Standing) -> _Known:
        constants = constants_in(cut, query)
        fixed = tuple(number for number in range(len(cut.literals)) if number not in constants)
        return _Known(constants, tuple(each for each in constants if cut.key[2 * each + 1] == _LONG), fixed, {})

    def shaped(self, cut: SplitText, text: str, functions: Mapping[str, PythonFunction]) -> Shaped:
        literals = cut.literals
        fixed = tuple([literals[number] for number in self.fixed])
        shape = self.shapes.get(fixed) or self.shapes.get(literals)
        if shape is None:
            if len(self.shapes) >= _MOST_SHAPES:
                self.shapes.clear()
            shape = _shape(cut, text, self.constants, functions)
            self.shapes[fixed if shape.marks else literals] = shape
        if not shape.marks:
            return Shaped(shape, ())
        constants = tuple([_value(literals[number]) for number in self.constants])
        return Shaped(shape, constants, tuple([literals[number] for number in self.long]))


_LONG = "\0long"


def _kind(literal: str) -> str:
    """What literals must have in common to be interchangeable: all integers, long integers, decimals, or strings in
    the same quotes.

    A literal with several spellings, or that is no simple number, must be equal.
    """
    if literal[0] in "\"'":
        is_plain = len(literal) > 2 and _PLAIN.fullmatch(literal, 1, len(literal) - 1)  # every text begins with ""
        return f"\0{literal[0]}" if is_plain else literal
    if len(literal) > _LONGEST:
        return _LONG if len(literal) <= _LONGEST_INTEGER and literal.isdecimal() and literal[0] != "0" else literal
    return "\0." if "." in literal else "\0"


def _value(literal: str) -> Constant:
    return literal[1:-1].encode() if literal[0] in "\"'" else float(literal)


_COMPUTING = frozenset(
    (
        *("contains", "starts-with", "ends-with", "substring", "substring-before", "substring-after"),
        *("xs:dateTime", "xs:date"),
    )
)
"""The functions whose literal arguments are constants."""


_COMPARING = frozenset(f"op:{word}" for word in VALUE_COMPARISONS)


def _operands(part: object) -> tuple[ast.Expression, ...]:
    """The operands that an expression compares or computes with."""
    match part:
        case ast.Comparison(_, left, right):
            return left, right
        case ast.Arithmetic(first, rest):
            return first, *(operand for _, operand in rest)
        case ast.Call(name, arguments) if name.removeprefix("fn:") in _COMPUTING or name in _COMPARING:
            return arguments
        case _:
            return ()


def constants_in(cut: SplitText, query: Standing) -> tuple[int, ...]:
    """The indices of a text's literals that a query compares or computes with, for each item."""
    places: set[tuple[int, int]] = set()
    for part in parts(query.hole) if query.kind == "items" else ():
        for side in _operands(part):
            literal = side.operand if isinstance(side, ast.Negation) else side
            if isinstance(literal, ast.Number | ast.String):
                places.add((literal.span.start, literal.span.end))
    kinds = zip(cut.spans, cut.literals, cut.key[1::2], strict=True)
    return tuple(number for number, (span, each, kind) in enumerate(kinds) if span in places and kind != each)


def _shape(cut: SplitText, text: str, constants: tuple[int, ...], functions: Mapping[str, PythonFunction]) -> Shape:
    query = standing(parse(text), functions)
    if not constants or constants != constants_in(cut, query):
        return Shape(query, ())
    marks = {number: _mark(cut.literals[number], at) for at, number in enumerate(constants)}
    marked = standing(parse(cut.with_literals(marks)), functions)
    values = tuple(_value(mark) for mark in marks.values())
    written = Counter(_written(part) for part in parts(marked.hole) if isinstance(part, ast.Number | ast.String))
    if any(written[value] != 1 for value in values):
        return Shape(query, ())  # the text contains the mark itself, as in 7e8
    return Shape(marked, values, _computes_with(marked.hole, frozenset(values)))


def _computes_with(node: object, marks: frozenset[Constant]) -> bool:
    """Whether a result is computed with one of the marks; conditions only select."""
    match node:
        case ast.Comparison() | ast.Quantified():
            return False
        case ast.Call(name) if name in _COMPARING:
            return False
        case ast.Number() | ast.String():
            return _written(node) in marks
        case ast.Flwor(clauses, _, _, result):
            return _computes_with((*clauses, result), marks)
        case ast.Pipeline(clauses, result):
            kept = tuple(each for each in clauses if not isinstance(each, ast.Where | ast.OrderBy))
            return _computes_with((*kept, result), marks)
        case ast.If(_, then, otherwise):
            return _computes_with((then, otherwise), marks)
        case _:
            return any(_computes_with(each, marks) for each in children(node))


def _written(literal: ast.Number | ast.String) -> Constant:
    return float(literal.text) if isinstance(literal, ast.Number) else literal.value.encode()


def _mark(literal: str, number: int) -> str:
    """A literal of the same kind that no user writes."""
    if literal[0] in "\"'":
        return f"{literal[0]}\ue000{number}{literal[0]}"
    if "." in literal:
        return f"{_MARK + number}.5"
    return f"{_MARK + number}{'0' * 10 if len(literal) > _LONGEST else ''}"


_STRINGS = {"\0'", '\0"'}
"""The kinds of strings."""


@dataclass(frozen=True, slots=True)
class _PrintedShape:
    """How texts of one shape are printed."""

    fixed: Mapping[int, str]
    """By number: the literals that are no constants, which must be the same."""
    printed: SplitText
    constants: Mapping[int, int]
    """By number of a constant in the printed text: its number in the text."""


class CheckedTexts:
    """The shapes of texts that were checked."""

    def __init__(self, functions: Mapping[str, PythonFunction] | None = None) -> None:
        self._functions = functions or {}
        self._known: dict[tuple[str, ...], _PrintedShape] = {}

    def printed(self, text: str) -> str | None:
        """The printed form of a text of a known shape; None where the text has to be checked."""
        cut = SplitText.of(text)
        known = self._known.get(cut.key)
        if known is None or any(cut.literals[number] != literal for number, literal in known.fixed.items()):
            return None
        kinds = known.printed.key[1::2]
        return known.printed.with_literals(
            {at: _quoted(cut.literals[number], kinds[at]) for at, number in known.constants.items()}
        )

    def learn(self, text: str, query: ast.Query) -> str:
        """Cache a checked text; gives its printed form."""
        printed = print_query(query)
        twin = parse(printed)
        cut, other = SplitText.of(text), SplitText.of(printed)
        spans = {span: number for number, span in enumerate(cut.spans)}
        places: dict[tuple[int, int], int] = {}
        for here, there in zip(parts(query), parts(twin), strict=True):
            if isinstance(here, ast.Number | ast.String) and (here.span.start, here.span.end) in spans:
                places[there.span.start, there.span.end] = spans[here.span.start, here.span.end]
        constants: dict[int, int] = {}
        for at in constants_in(other, standing(twin, self._functions)):
            number = places.get(other.spans[at])
            if number is not None and _alike(cut.key[2 * number + 1], other.key[2 * at + 1]):
                constants[at] = number
        if len(set(constants.values())) == len(constants):
            chosen = set(constants.values())
            fixed = {number: each for number, each in enumerate(cut.literals) if number not in chosen}
            self._known[cut.key] = _PrintedShape(fixed, other, constants)
        return printed


def _alike(kind: str, other: str) -> bool:
    """Whether one literal can replace the other: both are strings, or numbers of one kind."""
    return kind == other or {kind, other} == _STRINGS


def _quoted(literal: str, kind: str) -> str:
    """A literal as it is printed: strings have the same quotes everywhere."""
    return f"{kind[1]}{literal[1:-1]}{kind[1]}" if kind in _STRINGS else literal
