"""Streams whose items have gone through unit changes, and the same streams written in the units of their start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anabranch.algebra.accents.evolution import Evolution
from anabranch.language import check, parse
from anabranch.law import Answer, Input, evaluate, stream_input, text_input
from anabranch.law.calls import PythonFunction
from anabranch.law.evolution.canonical import canonical
from anabranch.stream.elements import Accent, Item
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import implied_root


def evolved(accents: Iterable[Accent]) -> Evolution:
    """The place behind these accents."""
    evolution = Evolution()
    for accent in accents:
        assert evolution.apply(accent) is None
    return evolution


def behind(text: str, *accents: Accent, name: str = "s", time: str | None = None) -> Input:
    """A stream, all of whose items come behind these accents, as a query from before them sees it."""
    return measured([text], evolved(accents), name=name, time=time)


def measured(partitions: Sequence[str], evolution: Evolution, *, name: str = "s", time: str | None = None) -> Input:
    """A stream of these partitions, all of whose items are at the place that the evolution has reached."""
    read = [text_input(text, name=name) for text in partitions]
    items = [[Item(canonical(each.item, evolution), each.place) for each in stream.arrivals] for stream in read]
    root = implied_root(str(read[0].root.name))
    return stream_input(root, items, time=Path.parse(time) if time else None)[0]


def ask(query: str, inputs: dict[str, Input], functions: dict[str, PythonFunction] | None = None) -> Answer:
    """The answer of a query over streams."""
    checked = check(parse(query), query, inputs=dict.fromkeys(inputs), functions=tuple(functions or ()))
    return evaluate(checked.query, inputs, functions=functions, name="q")
