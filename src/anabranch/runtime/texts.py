"""Query texts that were checked, and what others of their shape would be printed as.

Checking a query takes a millisecond or two; for the ten thousandth that differs from others in its constants only, it
is enough to put its constants where theirs were.
Whoever keeps this begins anew when anything changes that checks depend on: streams, schemas, registered functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.language import ast, parse
from anabranch.language.printer import print_query
from anabranch.language.rewrite import parts
from anabranch.law.calls import PythonFunction
from anabranch.runtime.shapes import Cut, compared
from anabranch.runtime.standing import standing

_STRINGS = {"\0'", '\0"'}
"""The kinds of strings."""


@dataclass(frozen=True, slots=True)
class _Known:
    """How texts of one shape are printed."""

    fixed: Mapping[int, str]
    """The literals that are no constants, by number: they must be the same."""
    printed: Cut
    constants: Mapping[int, int]
    """For each constant of the printed text, by number, its number in the text."""


class Texts:
    """The shapes of texts that were checked."""

    def __init__(self, functions: Mapping[str, PythonFunction] | None = None) -> None:
        self._functions = functions or {}
        self._known: dict[tuple[str, ...], _Known] = {}

    def printed(self, text: str) -> str | None:
        """A text as it would be printed when checked; None where that has to be seen."""
        cut = Cut.of(text)
        known = self._known.get(cut.key)
        if known is None or any(cut.literals[number] != literal for number, literal in known.fixed.items()):
            return None
        kinds = known.printed.key[1::2]
        return known.printed.with_literals(
            {at: _quoted(cut.literals[number], kinds[at]) for at, number in known.constants.items()}
        )

    def learn(self, text: str, query: ast.Query) -> str:
        """Remember a text that was checked; gives it printed."""
        printed = print_query(query)
        twin = parse(printed)
        cut, other = Cut.of(text), Cut.of(printed)
        spans = {span: number for number, span in enumerate(cut.spans)}
        places: dict[tuple[int, int], int] = {}
        for here, there in zip(parts(query), parts(twin), strict=True):
            if isinstance(here, ast.Number | ast.String) and (here.span.start, here.span.end) in spans:
                places[there.span.start, there.span.end] = spans[here.span.start, here.span.end]
        constants: dict[int, int] = {}
        for at in compared(other, standing(twin, self._functions)):
            number = places.get(other.spans[at])
            if number is not None and _alike(cut.key[2 * number + 1], other.key[2 * at + 1]):
                constants[at] = number
        if len(set(constants.values())) == len(constants):
            chosen = set(constants.values())
            fixed = {number: each for number, each in enumerate(cut.literals) if number not in chosen}
            self._known[cut.key] = _Known(fixed, other, constants)
        return printed


def _alike(kind: str, other: str) -> bool:
    """Whether one literal can stand for the other: both are strings, or numbers of one kind."""
    return kind == other or {kind, other} == _STRINGS


def _quoted(literal: str, kind: str) -> str:
    """A literal as it is printed: strings have the same quotes everywhere."""
    return f"{kind[1]}{literal[1:-1]}{kind[1]}" if kind in _STRINGS else literal
