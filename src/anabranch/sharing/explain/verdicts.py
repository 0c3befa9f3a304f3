"""In words: what a query finds in another that is already there, and what would have to be done to share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.predicate.writing import number_text
from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.match import Lack, differences, matches, merge
from anabranch.sharing.match_joins import (
    FullResults,
    Level,
    SelectedResults,
    SelectWindows,
    Separate,
    SharedWindows,
    input_differences,
    join_differences,
    level,
)
from anabranch.sharing.render import window_text
from anabranch.sharing.subtract import subtract
from anabranch.sharing.tree import PropertyTree


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a query finds in another one; `level` where both are joins, `input` where it is about one of a join's."""

    words: str
    lacks: tuple[Lack, ...]
    level: Level | None = None
    input: str | None = None
    remainder: PropertyTree | None = None
    """What would have to be sent beside the other's stream, where that is less than all the query needs."""


def verdicts(stream: PropertyForest, query: PropertyForest) -> Iterator[Verdict]:
    """What a query finds in the stream of another; nothing where they read no stream in common."""
    if not set(stream.streams) & set(query.streams):
        return
    if stream.kind != "apart" and query.kind != "apart":
        yield _joins(stream, query)
    elif stream.kind != "apart":
        lacks: Lack = ("join", " and ".join(dict.fromkeys(stream.streams)))
        yield Verdict(_worded((lacks,)), (lacks,))
    elif query.kind != "apart":
        names = {tree.input: label for tree, label in zip(query.trees, labels(query.trees), strict=True)}
        for each in stream.trees:
            for name, found in input_differences(each, query):
                words = f"as input {names[name]} it {_worded(found) if found else _MATCHES}"
                yield Verdict(words, tuple(found), input=names[name])
    else:
        for first in stream.trees:
            for second in query.trees:
                if first.stream == second.stream:
                    yield _trees(first, second)


def _trees(stream: PropertyTree, query: PropertyTree) -> Verdict:
    lacks = tuple(differences(stream, query))
    if not lacks:
        return Verdict(_MATCHES, ())
    merged = merge(stream, query)
    words = _worded(lacks, f" to {window_text(merged.window)}" if merged.window else "")
    remainder = subtract(query, stream)
    less = remainder is not None and not matches(remainder, query)
    return Verdict(words, lacks, remainder=remainder if less else None)


def _joins(stream: PropertyForest, query: PropertyForest) -> Verdict:
    found = level(stream, query)
    lacks = tuple(join_differences(stream, query))
    rest = [each for each in lacks if each[0] in ("path", "selection")]
    added = f"; {_worded(rest)}" if rest else ""
    match found:
        case FullResults():
            return Verdict(f"shares the tuples of the join{added or '; ' + _MATCHES}", lacks, found)
        case SelectedResults(windows, first, second):
            sizes = " and ".join(number_text(each.size) for each in windows)
            own, other = (", ".join(map(number_text, each)) for each in (second, first))
            words = f"shares the tuples of one join over windows of {sizes}, by SELECTJOINRESULT({own})"
            return Verdict(f"{words} beside SELECTJOINRESULT({other}){added}", lacks, found)
        case SharedWindows(windows, _, second):
            extents = " and ".join(f"{number_text(each.size)} every {number_text(each.step)}" for each in windows)
            words = f"shares windows of {extents}, by {' and '.join(map(_operator, second))}"
            return Verdict(f"{words}; joins by itself", lacks, found)
        case Separate(reason):
            return Verdict(f"joins by itself, for {reason}; inputs are shared", lacks, found)


def level_json(found: Level) -> dict[str, Any]:
    """A level of join sharing as data."""
    match found:
        case FullResults():
            return {"level": "full join result sharing"}
        case SelectedResults(windows, first, second):
            return {
                "level": "selective join result sharing",
                "windows": [number_text(each.size) for each in windows],
                "stream": [number_text(each) for each in first],
                "query": [number_text(each) for each in second],
            }
        case SharedWindows(windows, first, second):
            return {
                "level": "selective window sharing",
                "windows": [{"size": number_text(each.size), "step": number_text(each.step)} for each in windows],
                "stream": [_operator(each) for each in first],
                "query": [_operator(each) for each in second],
            }
        case Separate(reason):
            return {"level": "separate joins", "reason": reason}


def _operator(selection: SelectWindows) -> str:
    return f"SELECTWINDOWS({selection.count}, {selection.every}, {selection.step})"


def _worded(lacks: Iterable[Lack], window: str = "") -> str:
    words: dict[str, list[str]] = {}
    for kind, what in lacks:
        words.setdefault(kind, []).append(what)
    said: Sequence[tuple[str, str]] = [(kind, ", ".join(dict.fromkeys(what))) for kind, what in words.items()]
    return "; ".join(_WORDS[kind].format(what=what, window=window) for kind, what in said)


_MATCHES = "matches, nothing is added"
_WORDS = {
    "path": "adds {what}",
    "selection": "widens the selection of {what}",
    "postselection": "widens the postselection of the windows of {what}",
    "aggregate": "adds {what}",
    "window": "relaxes the windows of {what}{window}",
    "no window": "removes the windows and aggregates of {what}, and sends the elements they need",
    "join": "removes the join of {what}, and sends what it needs of each",
}
