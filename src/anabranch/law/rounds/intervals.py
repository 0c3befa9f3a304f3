"""Interval joins that can be answered before their streams end: those whose condition compares declared times.

Items that are far enough apart never meet, so an item may be forgotten once the other streams are beyond its interval;
how far they are, only a declared time tells (LAWS 1.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.intervals import Bound, PathTerm, interval_bounds, ties
from anabranch.law.inputs import Arrival, Input, Signal, texts_at
from anabranch.law.rounds.windows import Progress
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.stream.cover import passed
from anabranch.stream.path import Path
from anabranch.stream.tree import Element
from anabranch.values.atomic import finite_value


def time_bounds(
    fors: Sequence[ast.For], where: ast.Expression | None, times: Mapping[str, Path | None]
) -> tuple[Bound, ...]:
    """What a condition says of the distances between declared times; nothing where that does not tie all streams.

    `times` are the time paths of the streams that the variables run over.
    """
    paths = {clause.variable: clause.source for clause in fors}

    def is_time(term: PathTerm) -> bool:
        path = path_in_item(paths[term.variable], term.path, Spelling())
        return path is not None and path == times.get(term.variable)

    variables = list(paths)
    found = tuple(each for each in interval_bounds(where, variables) if is_time(each.left) and is_time(each.right))
    return found if ties(found, variables) else ()


def declared_time(item: Element, path: Path) -> Fraction:
    """An item's value at its stream's time path, which must be one number."""
    texts = texts_at(item, path)
    if len(texts) != 1:
        raise DynamicError(f"the time '{path}' has {len(texts)} values in this item, not one", code="XPTY0004")
    time = finite_value(texts[0])
    if time is None:
        raise DynamicError(f"the time '{texts[0][:40]}' is no number", code="FORG0001")
    return time


def judged_by_time(stream: Input) -> dict[Arrival, DynamicError | Literal["late"] | None]:
    """All items of a stream in order, and what is wrong with their times: late by the declared path, or no number."""
    assert stream.time is not None
    progress = Progress(stream.slack, stream.partitions)
    judged: dict[Arrival, DynamicError | Literal["late"] | None] = {}
    for element in stream.elements:
        if isinstance(element, Signal):
            if (value := passed(element.punctuation, stream.time, stream.time)) is not None:
                progress.passed(element.partition, value)
            continue
        try:
            time = declared_time(element.item, stream.time)
        except DynamicError as error:
            judged[element] = error
            continue
        judged[element] = "late" if progress.is_late(element.partition, time) else None
    return judged
