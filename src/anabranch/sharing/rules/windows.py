"""The windows of loops, as annotations of trees: rules (4) and (5) of the sharing paper."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from anabranch.algebra.window import Extent
from anabranch.language import ast
from anabranch.predicate import Predicate, and_
from anabranch.sharing.rules.conditions import (
    CONTEXT,
    LocatedPath,
    StreamNodes,
    conditions_at_nodes,
    locate,
    raises_first,
)
from anabranch.sharing.rules.findings import Environment, Findings
from anabranch.sharing.tree import ITEM, Steps, WindowAnnotation


def window_annotation(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> WindowAnnotation | None:
    """The window of a loop over items, one of a single item where it has none; None where there is no rule for it.

    Several predicates are one condition to it, so where it has to fail as they do, all but the last must not raise.
    """
    conditions = conditions_at_nodes(source, env.names, found.aggregate)
    if conditions is None or len(source.path) != ITEM:
        return None
    if found.letters and raises_first(source, env.names, found.aggregate):
        return None
    pre = and_(*(condition for _, condition in conditions))
    match each.window:
        case None:
            return WindowAnnotation(source.path, Extent(Fraction(1), Fraction(1)), None, pre)
        case ast.CountWindow():
            return count_window(each.window, source.path, pre)
        case ast.TimeWindow():
            return time_window(each.window, source.path, pre)
        case ast.SessionWindow():
            return None


def count_window(window: ast.CountWindow, item: Steps, pre: Predicate) -> WindowAnnotation:
    """Rule (4): a count window has no reference element.

    for $w in stream("s")/r/i[k = "u"]|count 4 step 2| return <o>{ $w/a }</o>
    ->
    r
      i  ω |count 4 step 2|, pre-σ k = 'u'
        a •
        k
    """
    return WindowAnnotation(item, _extent(window), None, pre)


def time_window(window: ast.TimeWindow, item: Steps, pre: Predicate) -> WindowAnnotation | None:
    """Rule (5): a time window has a reference element; None where that is no plain path below the item.

    None also where a size is a duration: its length in units of the reference depends on the stream.

    for $w in stream("s")/r/i|t diff 4| return <o>{ $w/a }</o>
    ->
    r
      i  ω |t diff 4 step 4|
        a •
        t
    """
    if isinstance(window.size, ast.Duration) or isinstance(window.step, ast.Duration):
        return None
    reference = reference_path(window.reference, item)
    return None if reference is None else WindowAnnotation(item, _extent(window), reference, pre)


def reference_path(reference: ast.Path, item: Steps) -> Steps | None:
    """The absolute path of a window's reference element; None where it is no plain path below the item."""
    start = ast.Source("stream", "") if isinstance(reference.start, ast.Root) else None
    at = locate(replace(reference, start=start), {CONTEXT: StreamNodes(item)})
    plain = at is not None and at.complete and not at.tails and at.path[: len(item)] == item
    return at.path if at is not None and plain else None


def _extent(window: ast.CountWindow | ast.TimeWindow) -> Extent:
    size, step = window.size, window.step or window.size
    return Extent(size.exact, step.exact)
