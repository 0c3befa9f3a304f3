"""Queries over several streams of updates at once, and how queries split by entries."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from random import Random

import pytest

from anabranch.errors import DynamicError
from anabranch.law.history.timeline import answer, arrivals
from history.describing import describe
from history.following import Followed, items, replaced
from mass import some

DISTANCE = """declare function local:distance($one, $two) {
    math:sqrt(math:pow($one/v - $two/v, 2) + math:pow($one/@k - $two/@k, 2))
};"""

# --- how queries split ------------------------------------------------------------------------------------

SPLITS = {
    'stream("s")/root/i#1/v': 'each entry of "s"',
    'for $x in stream("s")//i order by $x/v return $x': 'each entry of "s", kept in order',
    'stream("s")//root': 'all of "s", evaluated anew',
    'max(stream("s")//v) - min(stream("s")//v)': 'computed from\n  max over each entry of "s"\n'
    '  min over each entry of "s"',
    '<a>{ stream("s")//v }<b>{ count(stream("s")//i) }</b></a>': '<a>\n  each entry of "s"\n  <b>\n'
    '    computed from\n      count over each entry of "s"',
    'if (some $x in stream("s")//v satisfies $x > 5) then <high/> else ()': "computed from\n"
    '  some over each entry of "s"',
    'let $all := stream("s")//i return (count($all), $all/v)': 'computed from\n  count over each entry of "s"\n'
    'each entry of "s"',
    'sum(stream("s")//i/@k)': 'computed from\n  sum over each entry of "s"',
    '(1, stream("s")//v)': 'fixed\neach entry of "s"',
    '<a>{ stream("s")//i/@k }</a>': 'all of "s", evaluated anew',
    'for $n in (1, 2) return stream("s")//v': 'all of "s", evaluated anew',
    'for $n in (1, 2) return count(stream("s")//v[. = $n])': 'all of "s", evaluated anew',
    '(count(stream("s")//v))?5': 'all of "s", evaluated anew',
    'for $x in stream("s")//i where some $y in stream("t")//i#0 satisfies $y = $x return $x': 'each entry of "s", '
    'against those of "t" with an equal key',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where $x/v > 1 and $y/@k = $x/v return $y': 'each entry of "s", '
    'against those of "t" with an equal key',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where $y < $x return $y': 'each entry of "s", '
    'against those of "t" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where $x/v - 1 <= $y/v and $y/v < 2 + $x/v return $y': "each "
    'entry of "s", against those of "t" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where abs($x/v - $y/v) < 3 return $y': 'each entry of "s", '
    'against those of "t" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where 9 > math:pow($y/v - $x/v, 2) + math:pow($y/@k - $x/@k, 2) '
    "return $y": 'each entry of "s", against those of "t" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where math:sqrt(($x/v - $y/v) * ($x/v - $y/v)) <= 3 return $y': (
        'each entry of "s", against those of "t" in a range'
    ),
    f'{DISTANCE} for $x in stream("s")//i, $y in stream("t")//i#0 where local:distance($x, $y) < 2 return $y': "each "
    'entry of "s", against those of "t" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where abs($x/v - $y/v) > 3 return $y': 'each entry of "s", '
    'against all of "t"',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where math:pow($x/v - $y/v, 3) < 3 return $y': "each entry of "
    '"s", against all of "t"',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where math:pow($x/v - $y/v, 2) - $x/v < 3 return $y': "each "
    'entry of "s", against all of "t"',
    'for $x in stream("s")//i, $y in stream("t")//i#0 let $z := $y/v where $y < $x return $y': 'each entry of "s", '
    'against those of "t" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i#0 let $z := $y/v + 1 where $y < $x return $y': 'each entry of "s", '
    'against all of "t"',
    'for $x in stream("s")//i, $y in stream("t")//i#0 let $z := $y/v + 1 where $y = $x return $y': 'each entry of "s", '
    'against all of "t"',
    'for $x in stream("s")//i where some $y in stream("t")//i, $z in ($y/v + 1) satisfies $y = $x return $x': (
        'each entry of "s", against all of "t"'
    ),
    'for $x in (for $q in stream("s")//i return $q/v + 1), $y in stream("t")//i, $z in $x/w where $y = $x return $z': (
        'each entry of "s", against all of "t"'
    ),
    'for $x in (for $q in stream("s")//i return $q/v), $y in stream("t")//i, $z in $y/w where $y = $x return $z': (
        'each entry of "s", against those of "t" with an equal key'
    ),
    'for $x in stream("s")//i, $y in stream("t")//i, $z in stream("u")//i#0 '
    "where abs($x/v - $y/v) < 1 and $x/v - $z/v < 2 return $z": 'each entry of "s", '
    'against those of "t", "u" in a range',
    'for $x in stream("s")//i, $y in stream("t")//i, $z in stream("u")//i[v > 1] '
    "where abs($x/v - $y/v) < 1 and $x/@k = $z/@k return $z": 'each entry of "s", '
    'against those of "u" with an equal key, against all of "t"',
    'for $x in stream("s")//i, $y in stream("t")//i#0 where $y * 2 < $x return $y': 'each entry of "s", '
    'against all of "t"',
    'for $x in stream("s")//i where every $y in stream("t")//i#0 satisfies $y = $x return $x': 'each entry of "s", '
    'against all of "t"',
    'for $x in stream("s")//i#0, $y in stream("s")//i#0 return <p/>': 'all of "s", evaluated anew',
}


@pytest.mark.parametrize(("query", "expected"), SPLITS.items(), ids=range(len(SPLITS)))
def test_how_a_query_splits(query: str, expected: str) -> None:
    """What distributes over entries is told from the query's writing."""
    assert describe(Followed(query, s="", t="", u="").machine.part) == expected


# --- joins ------------------------------------------------------------------------------------------------

JOINS = [
    'for $x in stream("s")/root/i, $y in stream("t")/root/i#0 where $x/v = $y/v return <p>{ $x/@k, $y/v }</p>',
    'for $x in stream("s")/root/i, $y in stream("t")/root/i/v#1 where $y = $x/v order by $y return <p>{ $x/v, $y }</p>',
    'for $x in stream("s")/root/i where not(some $y in stream("t")//v?[3] satisfies $y = $x/v) return $x/v',
    'for $x in stream("s")/root/i where every $y in stream("t")//v#0 satisfies $y >= $x/v return $x/v',
    '<n>{ count(for $x in stream("s")/root/i, $y in stream("t")/root/i#0 where $y/v = $x/v return $y) }</n>',
]


@pytest.mark.mass
@pytest.mark.parametrize("query", some(JOINS), ids=some(range(len(JOINS))))
def test_joins_show_what_the_law_says(query: str) -> None:
    """Where two streams meet, updates of both show at once, and so does what expires."""
    random = Random(0)

    def stream() -> str:
        updates = [replaced(random.randrange(4), random.randrange(4), f' at="{each}"') for each in range(1, 9)]
        return items(4) + "".join(updates) + '<i s:at="9"><v>2</v></i><s:punctuation at="12"/>'

    shown = {text for _, text in Followed(query, s=stream(), t=stream()).run(put_away=True)}
    assert len(shown) > 3


CONDITIONS = (
    "$x/v < $y/v",
    "$x/v >= $y/v",
    "$x/v - $y/v <= 2 and $y/v - $x/v <= 2",
    "$y/v > $x/v - 1.5 and $y/v <= $x/v + 1.5",
    "10 - $y/v >= 8.1 - $x/v",
    "$x/v - 0.1 - $y/v < 0.2 and $x/v + 0.3 >= $y/v",
    "$x/@k <= $y/v and $y/v <= $x/v",
    "$x/v < $y/v and 1 div $y/v > 0",
    "abs($x/v - $y/v) < 1.5",
    "0.3 >= abs($y/v - $x/v - 0.5)",
    "abs($x/v - $y/@k) <= 1 and 1 div $y/v > 0",
    "abs($x/v - $y/v) < -1",
    "math:sqrt(math:pow($x/v - $y/v, 2) + math:pow($x/@k - $y/@k, 2)) < 1.2",
    "($x/v - $y/v) * ($x/v - $y/v) + ($x/@k - $y/@k) * ($x/@k - $y/@k) <= 0.02",
    "math:pow($x/v - $y/v, 2) + math:pow($x/@k - 1, 2) < 2 and $x/v <= $y/v",
    "math:sqrt(($x/v - $y/v) * ($x/v - $y/v)) <= 0.1",
    "local:distance($x, $y) < 1",
    "local:distance($x, $y) <= 0.1",
)
NUMBERS = (
    "0",
    "1",
    "1.5",
    "2",
    "0.1",
    "0.2",
    "0.3",
    "3",
    "1e400",
    "NaN",
    "INF",
    "word",
    "-2",
    "",
    "2026-01-01T00:00:00Z",
)


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(3 * len(CONDITIONS))))
def test_ranges_show_what_the_law_says(number: int) -> None:
    """Numbers, words, several values and none: who is not compared would not have met, nor failed."""
    random = Random(f"range {number}")
    condition = CONDITIONS[number % len(CONDITIONS)]
    query = DISTANCE + random.choice((
        f'for $x in stream("s")/root/i, $y in stream("t")/root/i#0 where {condition} return <p>{{ $x/v, $y/v }}</p>',
        f'for $x in stream("s")/root/i where some $y in stream("t")/root/i#0 satisfies {condition} return $x/v',
        f'count(for $x in stream("s")/root/i, $y in stream("t")/root/i#1 where {condition} return $y)',
    ))  # fmt: skip

    def value() -> str:
        return random.choice(NUMBERS[:8] if random.random() < 0.8 else NUMBERS)

    def stream() -> str:
        found = ""
        for each in range(5):
            several = "".join(f"<v>{value()}</v>" for _ in range(random.choice((1, 1, 1, 1, 1, 2, 0))))
            found += f'<s:mutable id="{each}"><i k="{value()}">{several}</i></s:mutable>'
        for time in range(1, 9):
            several = "".join(f"<v>{value()}</v>" for _ in range(random.choice((1, 1, 1, 1, 2, 0))))
            target = random.randrange(5)
            found += f'<s:replace target="{target}" at="{time}"><i k="{value()}">{several}</i></s:replace>'
        return found

    given = {"s": stream(), "t": stream()}
    assert sum(1 for _ in Followed(query, **given).run(put_away=True)) == 26
    assert letters(Followed(query, **given)) == []


def letters(followed: Followed) -> list[tuple[str, str]]:
    """The dead letters that only the law has, or only the machine, at moments at which the query does not fail."""
    told: dict[tuple[str, str], None] = {}
    due: dict[tuple[str, str], None] = {}
    for each in arrivals(followed.law, followed.given):
        moments = followed.law[each.stream].take(each.element, each.at, each.partition)
        for change in followed.machine.take(each.stream, each.element, each.at, each.partition):
            next(moments)
            told |= dict.fromkeys((str(letter.place), letter.reason) for letter in change.dead)
            with suppress(DynamicError):
                found = answer(followed.query, followed.law).dead
                due |= dict.fromkeys((str(letter.place), letter.reason) for letter in found)
        assert next(moments, None) is None
    return sorted(told.keys() ^ due.keys())


THREE = (
    "abs($x/v - $y/v) < 1.5 and abs($x/@k - $z/v) <= 1",
    "$x/@k = $z/v and local:distance($x, $y) < 1",
    "1 div $z/v > 0 and $x/v <= $y/v and $y/v - $x/v <= 1 and $z/@k = $x/@k",
    "$x/v < $z/v and $y/v = $x/v and 1 div ($y/v - $z/v) > 0",
)


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(4 * len(THREE))))
def test_three_streams_show_what_the_law_says(number: int) -> None:
    """Each of two streams meets the first in its own way: what is left out would have given nothing, and not failed."""
    random = Random(f"three {number}")
    condition = THREE[number % len(THREE)]
    query = DISTANCE + random.choice((
        f'for $x in stream("s")/root/i, $y in stream("t")/root/i#0, $z in stream("u")/root/i '
        f"where {condition} return <p>{{ $x/v, $y/v, $z/v }}</p>",
        f'for $x in stream("s")/root/i, $z in stream("u")/root/i, $y in stream("t")/root/i let $w := $y/v '
        f"where {condition} return <p>{{ $x/v, $w, $z/v }}</p>",
        f'for $x in stream("s")/root/i, $y in stream("t")/root/i, $z in stream("u")/root/i let $w := $z/v + 1 '
        f"where {condition} return $w",
        f'for $x in stream("s")/root/i where some $y in stream("t")/root/i, $z in stream("u")/root/i '
        f"satisfies {condition} return $x/v",
    ))  # fmt: skip

    def entry() -> str:
        several = "".join(f"<v>{random.choice(NUMBERS)}</v>" for _ in range(random.choice((1, 1, 1, 1, 1, 2, 0))))
        return f'<i k="{random.choice(NUMBERS[:8])}">{several}</i>'

    def stream() -> str:
        found = "".join(f'<s:mutable id="{each}">{entry()}</s:mutable>' for each in range(3))
        return found + "".join(f'<s:replace target="{time % 3}" at="{time}">{entry()}</s:replace>' for time in (1, 2))

    given = {"s": stream(), "t": stream(), "u": stream()}
    assert sum(1 for _ in Followed(query, **given).run(put_away=True)) == 15
    assert letters(Followed(query, **given)) == []


NEAR = (
    "$x/v - $y/v <= 1 and $y/v - $x/v <= 1",
    "abs($x/v - $y/v) <= 1",
    "math:sqrt(math:pow($x/v - $y/v, 2)) <= 1",
    "($x/v - $y/v) * ($x/v - $y/v) < 1.21",
)


@pytest.mark.mass
@pytest.mark.parametrize("condition", NEAR)
def test_a_range_narrows_a_join_down(condition: str) -> None:
    """An update is evaluated for the entries that lie near what it was, or is, and for no other."""
    query = f'for $x in stream("s")/root/i, $y in stream("t")/root/i where {condition} return <p>{{ $x/v, $y/v }}</p>'
    counts = []
    for count in (20, 60):
        followed = Followed(query, s=items(count), t=items(count) + replaced(3, 9))
        for stream in ("s", "t"):
            for element in followed.given[stream][0]:
                before = followed.machine.evaluated
                list(followed.machine.take(stream, element, Fraction(0)))
        counts.append(followed.machine.evaluated - before)
    assert counts[0] == counts[1] <= 7  # the number of the entry, and three that met it before and three that do now


def test_ranges_narrow_a_join_of_three_down() -> None:
    """An update is evaluated for the entries that lie near it, though a third stream is joined with them, too."""
    query = (
        'for $x in stream("s")/root/i, $y in stream("t")/root/i, $z in stream("u")/root/i '
        "where abs($x/v - $y/v) <= 1 and abs($x/v - $z/v) < 1 return <p>{ $x/v, $y/v, $z/v }</p>"
    )
    counts = []
    for count in (20, 40):
        followed = Followed(query, s=items(count), t=items(count), u=items(count) + replaced(3, 9))
        for stream in ("s", "t", "u"):
            for element in followed.given[stream][0]:
                before = followed.machine.evaluated
                list(followed.machine.take(stream, element, Fraction(0)))
        counts.append(followed.machine.evaluated - before)
    assert counts == [7, 7]  # the number of the entry, and three that met it before and three that do now


def test_an_equal_key_narrows_a_join_down() -> None:
    """An update is evaluated for the entries that have a key in common with what it was, or is, and for no other."""
    counts = []
    for count in (10, 60):
        followed = Followed(JOINS[0], s=items(count), t=items(count) + replaced(3, 5))
        for stream in ("s", "t"):
            for element in followed.given[stream][0]:
                before = followed.machine.evaluated
                list(followed.machine.take(stream, element, Fraction(0)))
        counts.append(followed.machine.evaluated - before)
        assert followed.machine.text.count("<p") == count  # one pair less, and one more
    assert counts == [3, 3]  # the key of the entry, and what met it before and meets it now
