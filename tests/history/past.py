"""What the tests of the past share: streams of small items with times, asked at every moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import merge
from itertools import count

from anabranch.language import Checked, check, parse
from anabranch.law import Input, evaluate, text_input
from anabranch.law.calls import PythonFunction
from anabranch.runtime.past.timeline import Timeline


def item(time: object, **children: object) -> str:
    """`<i><t>time</t><name>value</name>...</i>`"""
    inside = "".join(f"<{name}>{value}</{name}>" for name, value in children.items())
    return f"<i><t>{time}</t>{inside}</i>"


def stream(*items: str) -> str:
    return f"<r>{''.join(items)}</r>"


def given(streams: Mapping[str, str | Input]) -> dict[str, Input]:
    """Streams, from their documents; items have their time at `t`."""
    return {
        name: text_input(each, name=name, time="t") if isinstance(each, str) else each for name, each in streams.items()
    }


def checked(query: str, names: Iterable[str], functions: Mapping[str, PythonFunction] | None = None) -> Checked:
    return check(parse(query), query, inputs=dict.fromkeys(names), functions=tuple(functions or ()))


def asked(query: str, streams: Mapping[str, str | Input], functions: Mapping[str, PythonFunction] | None = None) -> str:
    """The answer at the end; nothing may be set aside."""
    found = evaluate(checked(query, streams, functions).query, given(streams), functions=functions)
    assert found.dead == []
    return found.text


def timeline(
    query: str, streams: Mapping[str, str | Input], functions: Mapping[str, PythonFunction] | None = None
) -> list[tuple[str, str]]:
    """What is shown, and when."""
    asked = checked(query, streams, functions).query
    law = Timeline(asked, given(streams), functions=functions)
    found = list(law)
    assert not law.dead
    return [(str(each.at), each.text) for each in found]


def merged(streams: Sequence[Sequence[Fraction]]) -> list[tuple[int, int]]:
    """By hand, the order of LAWS 1.2: the streams' numbers and their items', where times rise in each stream."""
    marked = ([(time, rank, number) for time, number in zip(each, count())] for rank, each in enumerate(streams))
    return [(rank, number) for _, rank, number in merge(*marked)]
