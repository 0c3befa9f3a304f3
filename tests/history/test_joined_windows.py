"""Joins of windows over streams of updates (LAWS 5.12), by the law, in production, and by lists of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from random import Random

import pytest

from anabranch.errors import AnabranchError, Unsupported
from history.asking import ask, shown
from history.following import Followed
from history.hosting import Case, Law, replayed
from mass import Mass, enough, some
from spark.bare import BareTrunk


def node(id: str, text: str, at: str = "") -> str:
    """An item whose content is a region."""
    return f'<s:mutable id="{id}"{at}><i><v>{text}</v></i></s:mutable>'


def by_values(one: str, two: str) -> str:
    return (
        f'for $x in stream("s")/root/a/i|{one}|, $y in stream("s")/root/b/i|{two}| '
        'return <p>{ concat($x/v, "-", $y/v) }</p>'
    )


def pairs(text: str) -> list[str]:
    return [each.removesuffix("</p>") for each in text.split("<p>")[1:]]


def test_windows_move_in_the_order_of_their_ends() -> None:
    """Case 134: an update changes what meets, wherever it stands."""
    stream = (
        f"<a>{node('1', '1')}{node('2', '12')}{node('3', '13')}</a><b>{node('4', '3')}{node('5', '11')}</b>"
        '<s:replace target="4"><i><v>15</v></i></s:replace><s:replace target="2"/>'
    )
    assert [pairs(text) for _, text in shown(by_values("v diff 10", "v diff 10"), stream)] == [
        ["1-3", "12-3", "13-3", "12-11", "13-11"],
        ["12-15", "12-11", "13-15", "13-11"],
        ["13-15", "13-11"],
    ]


def test_count_windows_move_by_places() -> None:
    """Case 135: windows that are full move, in the order of their last places."""
    stream = (
        "<a><i><v>a</v></i><i><v>b</v></i><i><v>c</v></i></a><b><i><v>x</v></i><i><v>y</v></i><s:mutable id='1'/></b>"
        "<s:replace target='1'><i><v>z</v></i></s:replace>"
    )
    before = ["a-x", "a-y", "b-x", "b-y", "c-x", "c-y"]
    found = [pairs(text) for _, text in shown(by_values("count 2 step 1", "count 2 step 1"), stream)]
    assert found == [before, [*before, "b-z", "c-z"]]


def test_places_and_values_have_no_common_order() -> None:
    """A count window is refused beside another one, also where a `let` stands for the stream."""
    message = "a count window cannot be joined with one over values in streams of updates"
    for source in ('stream("s")/root', "$r"):
        joined = f"for $v in {source}/n|count 2|, $w in {source}/n|v diff 2| return $v"
        with pytest.raises(Unsupported, match=message):
            ask(f'let $r := stream("s")/root return {joined}', "<n/>")
    with pytest.raises(Unsupported, match=message):
        Followed('for $v in stream("s")/root/i|count 2|, $w in stream("s")/root/i|v diff 2| return $v', s="<i/>")


def test_clauses_behind_a_join_are_refused() -> None:
    """A join that is numbered is refused by name, as it is over items."""
    joined = 'for $v in stream("s")/root/n|count 2|, $w in stream("s")/root/n|count 2| order by $v count $i return $i'
    with pytest.raises(AnabranchError, match="group by or count over a join"):
        Followed(joined, s="<n/>")


# --- lists of numbers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """One side: `v diff size step step`, or with counts."""

    size: Fraction
    step: Fraction
    counts: bool = False

    def __str__(self) -> str:
        return f"{'count' if self.counts else 'v diff'} {float(self.size):g} step {float(self.step):g}"

    def entering(self, values: list[Fraction]) -> list[tuple[Fraction, Fraction, int]]:
        """Of each value that ever enters a window: the end of the first that holds it, its place on the way, and it."""
        found = []
        for place, value in enumerate(values):
            at = Fraction(place) if self.counts else value
            k = max(0, floor((at - self.size) / self.step) + 1)
            end = k * self.step + self.size
            if k * self.step <= at and (not self.counts or end <= len(values)):
                found.append((end, at, place))
        return found


def met(windows: list[Window], sides: list[list[Fraction]]) -> list[str]:
    """The pairs, from the ends at which values enter: a side stands where it has moved last."""
    entering = [window.entering(values) for window, values in zip(windows, sides, strict=True)]
    turns = sorted({(end, side) for side in (0, 1) for end, _, _ in entering[side]})
    stands: list[Fraction | None] = [None, None]
    found: list[str] = []
    for end, side in turns:
        stands[side] = end
        there: list[list[int]] = []
        for each in (0, 1):
            last, window = stands[each], windows[each]
            held = [
                place
                for entered, at, place in entering[each]
                if last is not None and entered <= last and at >= last - window.size
            ]
            new = [place for entered, _, place in entering[each] if entered == end]
            there.append(
                new
                if each == side
                else [place for _, place in sorted((_turn(entering[each], place)) for place in held)]
            )
        found += [
            f"{shown_number(sides[0][one])}-{shown_number(sides[1][two])}" for one in there[0] for two in there[1]
        ]
    return found


def _turn(entering: list[tuple[Fraction, Fraction, int]], place: int) -> tuple[Fraction, int]:
    """Values that entered earlier are held before others."""
    return next((end, place) for end, _, each in entering if each == place)


def shown_number(value: Fraction) -> str:
    return f"{float(value):g}"


class Edited:
    """Two lists of numbers that are edited, as a stream and as lists."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.sides: list[list[Fraction | None]] = [[self.number() for _ in range(random.randrange(6))] for _ in "ab"]
        self.text = ""
        for name, side in zip("ab", self.sides, strict=True):
            nodes = (node(f"{name}{place}", shown_number(each or Fraction(0))) for place, each in enumerate(side))
            self.text += f"<{name}>{''.join(nodes)}</{name}>"

    def number(self) -> Fraction:
        return Fraction(self.random.randrange(0, 40), 2)

    def edit(self) -> str:
        """Replace or delete a number; nothing where there is none."""
        side = self.random.randrange(2)
        if not self.sides[side]:
            return "<s:punctuation at='0'/>"
        place = self.random.randrange(len(self.sides[side]))
        value = None if self.random.random() < 0.3 else self.number()
        self.sides[side][place] = value
        inner = "" if value is None else f"<i><v>{shown_number(value)}</v></i>"
        return f'<s:replace target="{"ab"[side]}{place}">{inner}</s:replace>'

    def lists(self) -> list[list[Fraction]]:
        return [[each for each in side if each is not None] for side in self.sides]


def check_lists(number: int) -> int:
    """Compare the law and production with lists, behind each edit; gives how many pairs met."""
    random = Random(number)
    counts = random.random() < 0.4
    windows = [
        Window(
            Fraction(random.choice((1, 2, 3) if counts else (2, 3, 5, 10))), Fraction(random.choice((1, 2, 4))), counts
        )
        for _ in "ab"
    ]
    edited = Edited(random)
    expected = [[], met(windows, edited.lists())]  # behind each of the two lists
    stream = edited.text
    for _ in range(8):
        stream += edited.edit()
        expected.append(met(windows, edited.lists()))
    followed = Followed(by_values(*map(str, windows)), s=stream)
    found = [pairs(text) for _, text in followed.run(put_away=random.random() < 0.5)]
    assert found == expected, number
    return sum(map(len, expected))


@pytest.mark.mass
def test_as_lists_of_numbers() -> None:
    """What meets is told from the ends at which numbers enter, and from nothing else."""
    assert sum(check_lists(number) for number in some(range(200))) > enough(1_000)


def test_very_many_lists_of_numbers(mass: Mass) -> None:
    """The same, very often."""
    for number in mass.cases(5_000):
        check_lists(1_000 + number)


# --- several streams, on a trunk ----------------------------------------------------------------------------


QUERIES = (
    'for $x in stream("s")/root/i|v diff 4 step 2|, $y in stream("t")/root/i|v diff 3| where $x/@k = $y/@k '
    "return <p>{ $x/v, $y/v }</p>",
    'for $x in stream("s")/root/i|count 2|, $y in stream("t")/root/i|count 3 step 1| return <p>{ $x/v * $y/v }</p>',
    'count(for $x in stream("s")/root/i|v diff 5|, $y in stream("s")/root/i|v diff 5| where $x/v < $y/v return $y)',
    'for $x in stream("s")/root/i|v diff 4|, $y in stream("t")/root/i|v diff 4| order by $y/v descending return $y/v',
)


def edited_items(random: Random) -> str:
    """Items with values and keys, which are replaced and deleted."""

    def item() -> str:
        return f'<i k="{random.randrange(2)}"><v>{random.choice(("1", "2", "5", "6", "9", "word", "7.5"))}</v></i>'

    regions = "".join(f'<s:mutable id="{each}" at="{each}">{item()}</s:mutable>' for each in range(6))
    return regions + "".join(
        f'<s:replace target="{random.randrange(6)}" at="{at}">{item() if random.random() < 0.8 else ""}</s:replace>'
        for at in range(6, 20)
    )


@pytest.mark.mass
def test_on_a_trunk(tmp_path: Path) -> None:
    """Two streams in epochs show what the law shows after each moment, with what is set aside."""
    random = Random(3)
    case = Case("", {name: [edited_items(random)] for name in "st"})
    sources = case.sources(tmp_path)
    trunk = BareTrunk(tmp_path / "state", sources, random, finite=True)
    queries = {f"q{number}": query for number, query in enumerate(QUERIES)}
    trunk.run(queries, [200, 500], [1, 2])
    for name, query in queries.items():
        read = [each for each in sources if f'stream("{each.name}")' in query]
        law = Law.of(Case(query, {each.name: case.streams[each.name] for each in read}), read)
        assert replayed(trunk.log, name) == law.shown, query
        assert len(law.shown) > 5
