"""Sessions that are counted by panes: the answer, the dead letters and what is late are the law's."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.panes import sessions
from anabranch.branch.panes.group import PaneGroup, Served
from anabranch.branch.panes.opening import windows_of
from anabranch.branch.panes.panes import PaneState, pack, unpack
from anabranch.branch.state import BranchState
from anabranch.columnar.panes.query import shared
from branch.counting import Found, Stream
from branch.test_grouped import one_json_stream, one_stream
from mass import Mass

_PATHS = ("$w/n", "$w/n", "$w", "$w/p/q", "$w/t", "$w/n[. > 1]", "$w/missing", "for $i in $w return $i/n * 2")
_GAPS = ("1", "0.5", "0.25", "0.3", "2", "0.07", "6", "PT0.4S", "0.125")


def one_query(random: Random, is_json: bool = False) -> str:
    """Sessions with a key or without one, seen through aggregates, their bounds and their key."""
    key = random.choice((None, "k", "k", "k", "@c", "p/q", "missing", "/r/i/k", "k/text()"))
    key = key.replace("@", "") if key is not None and is_json else key

    def call() -> str:
        return f"{random.choice(('min', 'max', 'sum', 'count', 'avg'))}({random.choice(_PATHS)})"

    def shown() -> str:
        named = ["window-start($w)", "window-end($w)", call(), call(), *(["$a"] if first else [])]
        if key is not None:
            named += [f"distinct-values($w/{key})", f"data($w[1]/{key})", f"data(($w/{key})[last()])"]
        return ", ".join(random.sample(named, random.choice((1, 2, 2, 3))))

    first = f"let $a := {call()} " if random.random() < 0.4 else ""
    where = random.choice(("", "", f"where {call()} >= 1 ", f"where {call()} > 1 or count($w) = 1 "))
    attribute = shown()
    if key is not None and random.random() < 0.3:
        attribute = random.choice((f"$w[1]/{key}", f"{call()}, $w[last()]/{key}", f"string($w[1]/{key})"))
    results = (f'<s k="{{ {attribute} }}">{{ {shown()} }}</s>', f"<s><a>{{ {shown()} }}</a>{{ {shown()} }}</s>", "<s/>")
    other = f"<s>{{ {call()} * 2, string(window-end($w)) }}</s>"
    result = random.choice((*results, *results, *results, other))
    by = "" if key is None else f" by {key}"
    chosen = random.choice(("", "", "", "[n >= 1]", "[k]", "[not(n < 2)]"))
    reference = random.choice(("t", "t", "t", "/r/i/t"))
    return (
        f'for $w in stream("s")/r/i{chosen} |{reference} gap {random.choice(_GAPS)}{by}| {first}{where}return {result}'
    )


def one_case(random: Random) -> tuple[Stream, str]:
    """A stream, whose times may be dateTimes, and a query over it."""
    is_json = random.random() < 0.3
    stream = (one_json_stream if is_json else one_stream)(random)
    if not is_json and random.random() < 0.3:
        some = random.choice((1.0, 1.0, 0.5))
        items = [_with_time(each) if random.random() < some else each for each in stream.items]
        stream = Stream(items, stream.slack, stream.origin, stream.time, stream.late)
    return stream, one_query(random, is_json)


def _with_time(item: str) -> str:
    """An item with a dateTime in the place of its number."""
    before, begin, rest = item.partition("<t>")
    number, end, behind = rest.partition("</t>")
    if not end:
        return item
    seconds = Fraction(number) + 5
    text = f"1970-01-01T00:{int(seconds) // 60:02d}:{float(seconds % 60):07.4f}Z" if seconds >= 0 else "1969-12-31"
    return f"{before}{begin}{text}{end}{behind}"


def is_the_law(name: str) -> bool:
    """Compare one case; whether it was counted by panes."""
    random = Random(name)
    stream, query = one_case(random)
    plan = stream.plan(query)
    if plan is None:
        return False
    law = stream.by_law(query)
    text, found = stream.by_panes(query, plan, random)
    shown = f"case {name}\n{query}\n{stream}"
    assert text == law.text, shown
    assert sorted(map(str, found.dead)) == sorted(map(str, law.dead)), shown
    assert list(dict.fromkeys(found.places)) == law.late, shown
    return True


@pytest.mark.parametrize(("family", "most_bytes"), [(0, 1 << 26), (1, 100)])
def test_sessions_by_panes_are_the_law(family: int, most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a stream is cut into ranges and epochs, and its sessions into such as are written together."""
    monkeypatch.setattr(sessions, "MOST_BYTES", most_bytes)
    counted = [is_the_law(f"sessions {family} {number}") for number in range(30)]
    assert sum(counted) > 20, "most of these queries are counted by panes"


def test_many_sessions_by_panes_are_the_law(mass: Mass) -> None:
    """The same, for many cases."""
    for number in mass.cases(3_000):
        is_the_law(f"many sessions {number}")
