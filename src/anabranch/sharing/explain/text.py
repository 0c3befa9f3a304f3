"""Explanations of sharing, for people and for programs.

Each query is shown with its property tree or forest, its *verdict* on each query before it, and its abstract query; at
the end come the joins that several queries share, and each stream with the merge of all trees that read it.
A verdict says in words what a query finds in the stream of another, and what would have to be done to share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from anabranch.predicate.writing import number_text
from anabranch.sharing.explain.trees import forest_json, forest_lines, indented, tree_json, tree_lines
from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.histories import SharedHistory, merged
from anabranch.sharing.match import Lack, differences, matches, merge, merge_all
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
    merge_all_joins,
)
from anabranch.sharing.normalize import unjoined
from anabranch.sharing.render import render, render_join, window_text
from anabranch.sharing.subtract import subtract
from anabranch.sharing.tree import PropertyTree

_NAMED = 4
"""The most equal queries that are listed by name."""


@dataclass(frozen=True, slots=True)
class ColumnsVerdict:
    """Whether a query is answered in columns, or by the law, item by item."""

    does: str
    """What columns do for such a query, as "items are answered"."""
    look: str | None
    """The assumed look of items, to continue "if items look"; None where it does not matter."""
    construct: str | None = None
    """The construct that does not compile; None where all do."""
    expression: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    """A similar construct that compiles."""

    def lines(self) -> Iterator[str]:
        """The verdict in words."""
        supposed = f", if items look {self.look}" if self.look else ""
        if self.construct is None:
            yield f"  in columns: {self.does}{supposed}"
            return
        expression = f": '{self.expression}'" if self.expression else ""
        place = f" (line {self.line}, column {self.column})" if self.line else ""
        yield f"  by the law: {self.construct}{expression}{place}{supposed}"
        if self.hint:
            yield f"    in columns instead: {self.hint}"


@dataclass(frozen=True, slots=True)
class Explained:
    """A query with its trees, or with the reason why it has none."""

    name: str
    forest: PropertyForest | None
    reason: str | None = None
    alike: tuple[str, ...] = ()
    """The names of other queries that are the same."""
    keeps: tuple[str, ...] = ()
    """What a query about the past has to retain, in words."""
    history: SharedHistory | None = None
    """The same, where other queries may share it."""
    columns: ColumnsVerdict | None = None


def explain_text(queries: Sequence[Explained]) -> Iterator[str]:
    """Lines for a person."""
    for number, query in enumerate(queries):
        if number:
            yield ""
        if query.forest is None:
            yield f"{query.name}: {query.reason}"
            yield from indented(query.keeps)
            yield from _alike(query)
            for other, added in _histories_against(query, queries[:number]):
                widens = f"widens its history by {'; '.join(added)}" if added else "is served by its history"
                yield f"  against {other.name}: {widens}"
            yield from _columns(query)
            continue
        against = [*_alike(query), *_columns(query)]
        for other, verdict in _against(query.forest, queries[:number]):
            against.append(f"  against {other.name}: {verdict.words}")
            if verdict.remainder is not None:
                against.append("    beside it would be sent:")
                against += indented(indented(indented(tree_lines(verdict.remainder))))
        if query.forest.kind == "apart":
            for place, tree in enumerate(query.forest.trees):
                yield from _tree_text(f"{query.name}:", tree, [] if place else against)
        else:
            yield from _join_text(f"{query.name}:", query.forest, against)
    for serves, history in _histories(queries):
        yield ""
        yield f'one history of "{history.stream}" for {", ".join(serves)}:'
        yield from indented(history.lines())
    for serves, forest in _joins(queries):
        yield ""
        yield from _join_text("one", forest, [], f" for {', '.join(serves)}:")
    for serves, tree in _streams(queries):
        yield ""
        yield from _tree_text("one", tree, [], f" for {', '.join(serves)}:")


def _alike(query: Explained) -> Iterator[str]:
    if query.alike:
        left = len(query.alike) - _NAMED
        more = f" and {left:,} more" if left > 0 else ""
        yield f"  the same as {', '.join(query.alike[:_NAMED])}{more}"


def _columns(query: Explained) -> Iterator[str]:
    if query.columns is not None:
        yield from query.columns.lines()


def _tree_text(head: str, tree: PropertyTree, against: Sequence[str], tail: str = "") -> Iterator[str]:
    yield f'{head} stream "{tree.stream}"{tail}'
    yield from indented(tree_lines(tree))
    yield from against
    yield "  abstract query:"
    yield from indented(indented(render(tree).splitlines()))


def _join_text(head: str, forest: PropertyForest, against: Sequence[str], tail: str = "") -> Iterator[str]:
    streams = " and ".join(f'"{each}"' for each in forest.streams)
    yield f"{head} {forest.kind} join of {streams}{tail}"
    yield from indented(forest_lines(forest))
    for sizes in forest.smaller:
        yield f"  also fires for windows of {' and '.join(map(number_text, sizes))}"
    yield from against
    yield "  abstract query:"
    yield from indented(indented(render_join(forest).splitlines()))


def explain_json(queries: Sequence[Explained]) -> dict[str, Any]:
    """The explanation as data."""
    found: list[dict[str, Any]] = []
    for number, query in enumerate(queries):
        if query.forest is None:
            keeps: dict[str, Any] = {"keeps": list(query.keeps)} if query.keeps else {}
            beside = [
                {"query": other.name, "widens": added} for other, added in _histories_against(query, queries[:number])
            ]
            more = {**keeps, **({"against": beside} if beside else {})}
            found.append({**_names_json(query), "tree": None, "reason": query.reason, **more})
            continue
        against = [_verdict_json(other, each) for other, each in _against(query.forest, queries[:number])]
        found.append({**_names_json(query), **_forest_json(query.forest), "against": against})
    joins = [{"serves": list(serves), **_forest_json(forest)} for serves, forest in _joins(queries)]
    histories = [
        {"serves": list(serves), "stream": history.stream, "keeps": history.lines()}
        for serves, history in _histories(queries)
    ]
    streams = [
        {"serves": list(serves), "tree": tree_json(tree), "abstract": render(tree)}
        for serves, tree in _streams(queries)
    ]
    return {"queries": found, **({"histories": histories} if histories else {}), "joins": joins, "streams": streams}


def _names_json(query: Explained) -> dict[str, Any]:
    found: dict[str, Any] = {"name": query.name}
    if query.alike:
        found["alike"] = list(query.alike)
    if query.columns is not None:
        found["columns"] = {"answered": query.columns.construct is None, **asdict(query.columns)}
    return found


def _forest_json(forest: PropertyForest) -> dict[str, Any]:
    """A tree that stands alone is `tree`, the trees of a join are its `forest`, several others `inputs`."""
    if forest.kind != "apart":
        return {"forest": forest_json(forest), "abstract": render_join(forest)}
    trees = [{"tree": tree_json(tree), "abstract": render(tree)} for tree in forest.trees]
    return trees[0] if len(trees) == 1 else {"inputs": trees}


def _verdict_json(other: Explained, verdict: Verdict) -> dict[str, Any]:
    found: dict[str, Any] = {"query": other.name}
    if verdict.input is not None:
        found["input"] = verdict.input
    if verdict.level is not None:
        found["join"] = level_json(verdict.level)
    if verdict.remainder is not None:
        found["remainder"] = tree_json(verdict.remainder)
    lacks = [{"kind": kind, "of": what} for kind, what in verdict.lacks]
    return {**found, "matches": not lacks, "lacks": lacks}


def _against(forest: PropertyForest, before: Sequence[Explained]) -> Iterator[tuple[Explained, Verdict]]:
    for other in before:
        if other.forest is not None:
            for found in verdicts(other.forest, forest):
                yield other, found


def _histories_against(query: Explained, before: Sequence[Explained]) -> Iterator[tuple[Explained, list[str]]]:
    """Earlier queries that a query shares a history with, and what it adds to theirs."""
    for other in before if query.history is not None else ():
        if other.history is not None and query.history is not None and other.history.entries == query.history.entries:
            yield other, query.history.added_to(other.history)


def _histories(queries: Sequence[Explained]) -> Iterator[tuple[Sequence[str], SharedHistory]]:
    """The histories that serve several queries, of minimal length for all of them."""
    families: dict[str, list[tuple[str, SharedHistory]]] = {}
    for each in queries:
        if each.history is not None:
            families.setdefault(repr(each.history.entries), []).append((each.name, each.history))
    for found in families.values():
        if len(found) > 1:
            (_, first), *_ = found
            yield [name for name, _ in found], replace(first, needs=merged(each.needs for _, each in found))


def _joins(queries: Sequence[Explained]) -> Iterator[tuple[Sequence[str], PropertyForest]]:
    """The joins that serve several queries, with these."""
    joining = [(each.name, each.forest) for each in queries if each.forest and each.forest.kind != "apart"]
    for served, forest in merge_all_joins([each for _, each in joining]):
        if len(served) > 1:
            yield [joining[number][0] for number in served], forest


def _streams(queries: Sequence[Explained]) -> Iterator[tuple[Sequence[str], PropertyTree]]:
    """For each stream that several queries read, these and the merge of their trees; of joins, of their inputs."""
    readers: dict[str, list[tuple[str, PropertyTree]]] = {}
    for query in queries:
        if query.forest is not None:
            joined = query.forest.kind != "apart"
            for tree in unjoined(query.forest) if joined else query.forest.trees:
                readers.setdefault(tree.stream, []).append((query.name, tree))
    for found in readers.values():
        names = list(dict.fromkeys(name for name, _ in found))
        if len(names) > 1:
            yield names, merge_all([tree for _, tree in found])


# --- verdicts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a query beside another one; `level` where both are joins, `input` for one input of a join."""

    words: str
    lacks: tuple[Lack, ...]
    level: Level | None = None
    input: str | None = None
    remainder: PropertyTree | None = None
    """The remainder to send beside the other's stream, where it is less than all the query needs."""


def verdicts(stream: PropertyForest, query: PropertyForest) -> Iterator[Verdict]:
    """The verdicts on a query beside the stream of another; none where they read no common stream."""
    if not set(stream.streams) & set(query.streams):
        return
    if stream.kind != "apart" and query.kind != "apart":
        yield _join_verdict(stream, query)
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
                    yield _tree_verdict(first, second)


def _tree_verdict(stream: PropertyTree, query: PropertyTree) -> Verdict:
    lacks = tuple(differences(stream, query))
    if not lacks:
        return Verdict(_MATCHES, ())
    both = merge(stream, query)
    words = _worded(lacks, f" to {window_text(both.window)}" if both.window else "")
    remainder = subtract(query, stream)
    less = remainder is not None and not matches(remainder, query)
    return Verdict(words, lacks, remainder=remainder if less else None)


def _join_verdict(stream: PropertyForest, query: PropertyForest) -> Verdict:
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
    listed: Sequence[tuple[str, str]] = [(kind, ", ".join(dict.fromkeys(what))) for kind, what in words.items()]
    return "; ".join(_WORDS[kind].format(what=what, window=window) for kind, what in listed)


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
