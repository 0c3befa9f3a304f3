"""The reference and Saxon side by side; this is the one place here that calls the reference."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.language import check, parse, print_query
from anabranch.law import Input, evaluate, stream_input, text_input
from anabranch.stream.elements import Item
from anabranch.stream.path import Path
from anabranch.stream.tree import Element
from oracle.saxon import canonical, judge


def reference(query: str, inputs: Mapping[str, str], times: Mapping[str, str] | None = None) -> str:
    """The reference's answer to the checked query, canonical; `NAME.1` is a further partition of the stream `NAME`."""
    partitions: dict[str, list[str]] = {}
    for name, text in inputs.items():
        partitions.setdefault(name.partition(".")[0], []).append(text)
    checked = check(parse(query), query, inputs=dict.fromkeys(partitions))
    given = {name: _stream(name, texts, (times or {}).get(name)) for name, texts in partitions.items()}
    return canonical(evaluate(checked.query, given).text)


def _stream(name: str, partitions: list[str], time: str | None) -> Input:
    read = [text_input(text, name=name) for text in partitions]
    items = [[Item(arrival.item, arrival.place) for arrival in each.arrivals] for each in read]
    root = Element(read[0].root.name, read[0].root.namespaces)
    return stream_input(root, items, time=Path.parse(time) if time else None)[0]


def saxon(query: str, inputs: Mapping[str, str], times: Mapping[str, str] | None = None) -> str:
    """Saxon's answer to the translated query, canonical."""
    return judge(parse(query), inputs, times)


def difference(query: str, inputs: Mapping[str, str], times: Mapping[str, str] | None = None) -> str | None:
    """Query, inputs and both answers, where these differ; also if printing and parsing the query changes it."""
    tree = parse(query)
    printed = print_query(tree)
    if parse(printed) != tree:
        return f"not read back as it was written\nquery: {query}\nprinted: {printed}"
    try:
        ours = reference(query, inputs, times)
    except Exception as error:  # a crash is a difference too, to be shown with its query
        ours = repr(error)
    theirs = judge(tree, inputs, times)
    if ours == theirs:
        return None
    given = "\n".join(f"{name}: {text}" for name, text in inputs.items())
    return f"query: {query}\n{given}\ntime paths: {times or 'none'}\nreference: {ours}\nsaxon:     {theirs}"
