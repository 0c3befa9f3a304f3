"""The state of a query about the past, for people: a line for each path that it reads (`explain`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from anabranch.branch.growing.split import growth_of
from anabranch.language import ast
from anabranch.language.printer import print_expression
from anabranch.law.arrivals.past import named
from anabranch.law.arrivals.recall import asks
from anabranch.law.calls import PythonFunction
from anabranch.predicate.writing import number_text
from anabranch.runtime.past.recollection import asked_of
from anabranch.sharing.explain.text import Explained
from anabranch.sharing.needs import needs_of


def past_explained(
    name: str, query: ast.Query, edited: Collection[str], alike: tuple[str, ...] = ()
) -> Explained | None:
    """A query over streams of updates, or about the past of items, with its state; None for others."""
    if not asks(query) and not any(each in edited for each in named(query)):
        return None
    lines = [*_of_updates(query, edited), *_of_items(query, edited)]
    said = "about the past, answered by itself; it keeps" if asks(query) else "on display; it keeps"
    return Explained(name, None, said if lines else f"{said} nothing", alike, tuple(lines))


def growth_explained(
    name: str, query: ast.Query, functions: Iterable[tuple[str, PythonFunction]], alike: tuple[str, ...] = ()
) -> Explained:
    """A query over items whose answer is a display, with its state that grows with its streams."""
    lines = tuple(dict.fromkeys(each.what for each in growth_of(query, dict(functions))))
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
            yield f"{print_expression(each.path)}: {kept}"


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
