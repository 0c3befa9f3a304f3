"""LAWS 2.9 where windows and sessions are aggregated as they come: what ends a query follows from its items alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import gcd
from random import Random

import pytest

from anabranch.stream.limits import CostCaps
from branch.counting import Stream
from mass import enough, some


@dataclass(frozen=True)
class _Item:
    """An item in tenths of a second."""

    value: int
    key: str
    is_time: bool = False

    @property
    def text(self) -> str:
        shown = f"{self.value / 10:g}"
        if self.is_time:
            shown = f"{(datetime(1970, 1, 1) + timedelta(milliseconds=100 * self.value)).isoformat()}Z"
        return f"<i><t>{shown}</t><k>{self.key}</k></i>"


def some_items(random: Random) -> list[_Item]:
    """Items with mostly rising values, and more and more keys at times."""
    now, kinds = random.choice((0, 0, -80)), random.choice(((False,), (True,), (False, True)))
    items: list[_Item] = []
    for number in range(random.randint(1, 70)):
        now += random.choice((0, 1, 1, 2, 5, -1, -4, random.choice((12, 60))))
        key = random.choice((str(number), "a", "b", random.choice("cdefgh")))
        items.append(_Item(now, key, random.choice(kinds)))
    return items


def in_time(items: Sequence[_Item], slack: int) -> Iterator[_Item]:
    """The items that are not late (LAWS 3.2)."""
    largest: int | None = None
    for each in items:
        if largest is None or each.value >= largest - slack:
            largest = each.value if largest is None else max(largest, each.value)
            yield each


def windows(
    items: Sequence[_Item], size: int, step: int, room: int, *, grouped: bool, counted: bool = False
) -> tuple[str, bool]:
    """What tumbling or sliding windows answer, by the rule: up to the first that holds more panes than `room`."""
    held: dict[int, list[_Item]] = {}
    for each in items:
        for k in range((each.value - size) // step + 1, each.value // step + 1):
            if k >= 0 or each.is_time:
                held.setdefault(k, []).append(each)
    texts: list[str] = []
    for _, those in sorted(held.items()):
        groups: dict[str, int] = {}
        for each in those:
            groups[each.key] = groups.get(each.key, 0) + 1
        panes = {(each.key if grouped else "", each.value // gcd(size, step)) for each in those}
        if len(panes) > room:
            return "".join(texts), True
        if counted and len(those) < size:
            continue  # it is not full (LAWS 3.3)
        shown = [f'<g k="{key}">{count}</g>' for key, count in groups.items()]
        texts += shown if grouped else [f"<w>{len(those)}</w>"]
    return "".join(texts), False


def sessions(items: Sequence[_Item], gap: int, room: int) -> tuple[str, bool]:
    """What sessions by key answer, by the rule: those that end before the first value at which too much is open."""

    def runs(upto: int | None) -> Iterator[tuple[int, str, list[_Item]]]:
        """The sessions of the items up to a value: where each ends, its key, and its items."""
        for key in dict.fromkeys(each.key for each in items):
            run: list[_Item] = []
            for each in sorted((each for each in items if each.key == key), key=lambda each: each.value):
                if upto is not None and each.value > upto:
                    break
                if run and each.value >= run[-1].value + gap:
                    yield run[-1].value + gap, key, run
                    run = []
                run.append(each)
            if run:
                yield run[-1].value + gap, key, run

    def open_panes(value: int) -> int:
        return sum(len({each.value // gap for each in run}) for end, _, run in runs(value) if end > value)

    crowded = min((each.value for each in items if open_panes(each.value) > room), default=None)
    ended = [each for each in runs(None) if crowded is None or each[0] <= crowded]
    ended.sort(key=lambda each: (each[0], min(map(items.index, each[2]))))
    return "".join(f'<s k="{key}">{len(run)}</s>' for _, key, run in ended), crowded is not None


GROUPED = 'for $w in stream("s")/r/i {} for $o in $w group by $k := $o/k return <g k="{{$k}}">{{ count($o) }}</g>'
PLAIN = 'for $w in stream("s")/r/i {} return <w>{{ count($w) }}</w>'
SESSIONS = 'for $w in stream("s")/r/i |t gap {} by k| return <s k="{{ $w[1]/k }}">{{ count($w) }}</s>'


def one_case(name: str) -> tuple[bool, bool]:
    """Compare one case; whether it has ended, and behind some answer."""
    random = Random(name)
    items, slack, room = some_items(random), random.choice((0, 0, 3, 8)), random.choice((1, 2, 3, 5, 8, 15))
    taken = list(in_time(items, slack))
    kind = random.choice(("grouped", "plain", "sessions", "sessions"))
    if kind == "sessions":
        gap = random.choice((1, 3, 5, 10, 25))
        query, (expected, is_over) = SESSIONS.format(float(gap / 10)), sessions(taken, gap, room)
    elif random.random() < 0.2:
        size, step = random.choice(((10, 10), (15, 10), (20, 3)))
        query = (GROUPED if kind == "grouped" else PLAIN).format(f"|count {size} step {step}|")
        placed = [_Item(number, each.key) for number, each in enumerate(items)]
        expected, is_over = windows(placed, size, step, room, grouped=kind == "grouped", counted=True)
    else:
        size, step = random.choice(((10, 10), (30, 10), (15, 10), (50, 2), (10, 25), (400, 1)))
        window = f"|t diff {size / 10:g} step {step / 10:g}|"
        query = (GROUPED if kind == "grouped" else PLAIN).format(window)
        expected, is_over = windows(taken, size, step, room, grouped=kind == "grouped")
    stream = Stream([each.text for each in items], str(slack / 10))
    plan = stream.plan(query)
    assert plan is not None
    text, found = stream.by_panes(query, plan, random, caps=CostCaps(held=room))
    shown = f"case {name}, {room} panes\n{query}\n{stream}"
    assert text == expected, shown
    assert (found.capped is not None) == is_over, shown
    if not is_over:
        assert text == stream.by_law(query).text, shown
    return is_over, is_over and bool(text)


def test_the_end_follows_from_the_items_alone() -> None:
    """However a stream is cut into ranges and epochs, the answer ends where a count of all items says it does."""
    found = [one_case(f"caps {number}") for number in some(range(400))]
    assert sum(over for over, _ in found) > enough(100)
    assert sum(behind for _, behind in found) > enough(40)


@pytest.mark.parametrize(
    ("query", "most"),
    [
        (GROUPED.format("|t diff 1000000|"), 0),
        (GROUPED.format("|t diff 2 step 1|"), 8 * 20),
        (PLAIN.format("|t diff 1000 step 999.9|"), 20),
        (SESSIONS.format(1), 8 * 20),
    ],
)
def test_what_is_remembered_is_bounded(query: str, most: int) -> None:
    """A new key, or a new pane, for every item: a branch keeps no more than the windows that are open may hold."""
    items = [_Item(number if number < 100 else 96 + number // 25, str(number)) for number in range(2_000)]
    stream = Stream([each.text for each in items], "6")
    plan = stream.plan(query)
    assert plan is not None
    whole, free = stream.by_panes(query, plan, Random(1), ends=False)
    for room in (20, 5):
        text, found = stream.by_panes(query, plan, Random(room), ends=False, caps=CostCaps(held=room))
        assert found.most <= most * room // 20 < free.most
        assert found.capped == f"it holds more than {room} panes of its windows; 'max_held' allows more"
        assert whole.startswith(text)
