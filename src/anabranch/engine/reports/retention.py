"""The state of a query about the past, for people: a line for each path that it reads (`explain`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from anabranch.branch.display.families.machine import shares_history
from anabranch.branch.growing.split import growth_of
from anabranch.branch.past.values import growing_values
from anabranch.language import ast
from anabranch.language.printer import print_expression
from anabranch.law.arrivals.past import named
from anabranch.law.arrivals.recall import asks
from anabranch.law.calls import PythonFunction
from anabranch.predicate.writing import number_text
from anabranch.runtime.past.recollection import asked_of
from anabranch.runtime.past.value_histories import histories_of
from anabranch.sharing.explain.text import Explained
from anabranch.sharing.histories import SharedHistory
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import says


def past_explained(
    name: str,
    query: ast.Query,
    edited: Collection[str],
    alike: tuple[str, ...] = (),
    roots: Mapping[str, str] | None = None,
) -> Explained | None:
    """A query over streams of updates, or about the past of items, with its state; None for others.

    `roots` are the names of the streams' roots; a stream whose root is not known has one of its own name.
    """
    if not asks(query) and not any(each in edited for each in named(query)):
        return None
    lines = [*_of_updates(query, edited), *_of_items(query, edited), *_of_values(query), *_growing(query, edited)]
    history = _history(query, edited, roots or {})
    by_itself = "" if history is not None else ", answered by itself"
    said = f"about the past{by_itself}; it keeps" if asks(query) else "on display; it keeps"
    return Explained(name, None, said if lines else f"{said} nothing", alike, tuple(lines), history)


def _history(query: ast.Query, edited: Collection[str], roots: Mapping[str, str]) -> SharedHistory | None:
    """What a query needs of its stream, where it can share that with others."""
    streams = named(query)
    if len(streams) != 1 or streams[0] not in edited:
        return None
    root = roots.get(streams[0], streams[0])
    return SharedHistory(streams[0], needs_of(query), root) if shares_history(query, {streams[0]: root}) else None


def growth_explained(
    name: str, query: ast.Query, functions: Iterable[tuple[str, PythonFunction]], alike: tuple[str, ...] = ()
) -> Explained:
    """A query over items whose answer is a display, with its state that grows with its streams."""
    lines = tuple(dict.fromkeys((*(each.what for each in growth_of(query, dict(functions))), *_of_values(query))))
    said = "on display; it keeps"
    return Explained(name, None, said if lines else f"{said} nothing but its value", alike, lines)


def _of_updates(query: ast.Query, edited: Collection[str]) -> Iterator[str]:
    needs = needs_of(query)
    return (line for stream, line in needs.lines() if stream in edited)


def _of_items(query: ast.Query, edited: Collection[str]) -> Iterator[str]:
    streams = [each for each in named(query) if each not in edited]
    asked = asked_of(query, edited)
    if asked is None:
        yield from (
            f'stream("{each}"): all of it, for it is not known beforehand how much is needed' for each in streams
        )
        return
    for each in asked:
        if each.stream in streams:
            kept = "; ".join(dict.fromkeys(map(_words, each.qualifiers)))
            if each.is_open:
                kept = "all items, or what 'retain' says, for a variable decides how far back it looks"
            yield f"{print_expression(each.path)}: {kept}"


def _of_values(query: ast.Query) -> Iterator[str]:
    """The values that are kept of expressions that are no path."""
    for (expression, _), lookbacks in histories_of(query).items():
        yield f"{print_expression(expression)}: {says(lookbacks).replace('versions', 'values')}"


def _growing(query: ast.Query, edited: Collection[str]) -> Iterator[str]:
    """What is kept to have such values, and grows with streams of items."""
    growing = growing_values(query, edited)
    yield from () if growing is None else dict.fromkeys(each.what for each in growth_of(growing, {}))


def _words(qualifier: ast.Qualifier) -> str:
    amount = number_text(qualifier.amount.exact)
    match qualifier.kind, qualifier.window:
        case "version", _:
            most = int(qualifier.amount.exact)
            return f"the last {most + 1} items that have it" if most else "the last item that has it"
        case _, True:
            return f"items of the last {amount} s"
        case _:
            return f"items of the last {amount} s, and the newest before"
