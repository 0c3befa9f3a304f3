"""Panes that several windows are made of: counted once, for windows that differ in sizes and steps only.

Windows over the same items with the same reference and the same aggregated paths can all be put together from panes as
wide as the greatest common divisor of theirs (the sharing paper's section 4.3, *relaxed* windows).
Only the count of a range is shared: what a branch keeps are panes of its own width, into which it puts the others.
So whoever comes or goes, and whenever, nobody's windows change.

Relaxed panes may be many: 20 and 21 have 1 in common.
Windows are counted together where that makes no more panes than they have apart, and none has to put its own together
from too many.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from anabranch.algebra.window import Panes
from anabranch.columnar.panes.query import PaneQuery
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.signatures import SIGNATURES

_MOST = 8
"""Of so many relaxed panes a pane may be made."""


def shared(queries: Sequence[PaneQuery]) -> list[list[int]]:
    """The numbers of queries that are counted together, each once."""
    alike: dict[Hashable, list[int]] = {}
    for number, query in enumerate(queries):
        key = _key(query)
        alike.setdefault(number if key is None else key, []).append(number)
    found: list[list[int]] = []
    for numbers in alike.values():
        groups: list[list[int]] = []
        for number in sorted(numbers, key=lambda each: queries[each].panes.width):
            joined = next((each for each in groups if _is_worth_it([queries[n] for n in (*each, number)])), None)
            if joined is None:
                groups.append([number])
            else:
                joined.append(number)
        found += groups
    return found


def _is_worth_it(queries: Sequence[PaneQuery]) -> bool:
    """Whether relaxed panes are no more than those of all queries apart, and not too many for any of them."""
    widths = [each.panes.width for each in queries]
    common = reduce(_common, widths)
    return not queries[0].is_timed or (1 / common <= sum(1 / each for each in widths) and max(widths) <= _MOST * common)


def relaxed(queries: Sequence[PaneQuery]) -> PaneQuery:
    """What is counted for queries that are counted together."""
    first = queries[0]
    if len(queries) == 1:
        return first
    width = reduce(_common, (each.panes.width for each in queries))
    asked = tuple(frozenset().union(*each) for each in zip(*(each.asked for each in queries), strict=True))
    return replace(first, asked=asked, panes=Panes(width, 1, 1))


def _key(query: PaneQuery) -> Hashable:
    """What queries have in common that are counted together; None for one that is counted alone."""
    window = query.clause.window
    reference = window.reference if isinstance(window, ast.TimeWindow) else None
    looked_at = (query.clause.source, reference, query.paths)
    if not query.plain or any(_looks_out(each, query.clause.variable) for each in parts(looked_at)):
        return None
    return query.clause.variable, *looked_at, query.slack, query.origin


def _looks_out(part: object, window: str) -> bool:
    """Whether a part may mean something else in another query."""
    match part:
        case ast.Variable(name):
            return name != window
        case ast.Call(name):
            return name.removeprefix("fn:") not in SIGNATURES
        case _:
            return False


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The greatest common divisor of two widths."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
