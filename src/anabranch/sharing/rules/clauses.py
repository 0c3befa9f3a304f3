"""What the clauses of a query are by themselves: loops over streams, and the windows they have."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from anabranch.algebra.window import Extent
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.signatures import AGGREGATES
from anabranch.predicate import Predicate
from anabranch.sharing.rules.conditions import CONTEXT, Names, Nodes, locate
from anabranch.sharing.tree import Steps, WindowAnnotation


def input_name(number: int) -> str:
    """What conditions call an input of a forest: `$1`, `$2` and so on, in the order of the loops."""
    return f"${number + 1}"


def over_stream(clause: ast.For | ast.Let, names: Names) -> bool:
    """Whether a clause loops over a stream, and not over elements of an item."""
    found = locate(clause.source, names) if isinstance(clause, ast.For) else None
    return found is not None and not found.base.path


def aggregates_over(variable: str, rest: Any) -> bool:
    """Whether an aggregate is taken over the item of each round."""
    for part in parts(rest):
        match part:
            case ast.Call(name, (ast.Variable(start) | ast.Path(ast.Variable(start)),)):
                if start == variable and name.removeprefix("fn:") in AGGREGATES:
                    return True
    return False


def window_of(clause: ast.For, item: Steps, pre: Predicate) -> WindowAnnotation | None:
    """The window of a loop over items, one of a single item where it has none; None for a reference without a rule."""
    match clause.window:
        case None:
            return WindowAnnotation(item, Extent(Fraction(1), Fraction(1)), None, pre)
        case ast.CountWindow(size, step):
            return WindowAnnotation(item, _extent(size, step), None, pre)
        case ast.TimeWindow(reference, size, step):
            path = reference_of(reference, item)
            return None if path is None else WindowAnnotation(item, _extent(size, step), path, pre)


def reference_of(reference: ast.Path, item: Steps) -> Steps | None:
    """The absolute path of a window's reference element; None where it is no plain path below the item."""
    absolute = isinstance(reference.start, ast.Root)
    start = ast.Source("stream", "") if absolute else None
    found = locate(replace(reference, start=start), {CONTEXT: Nodes(item)})
    plain = found is not None and found.complete and not found.tails and found.path[: len(item)] == item
    return found.path if found is not None and plain else None


def _extent(size: ast.Number, step: ast.Number | None) -> Extent:
    return Extent(Fraction(Decimal(size.text)), Fraction(Decimal((step or size).text)))
