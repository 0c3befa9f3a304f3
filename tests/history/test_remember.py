"""Queries about the past from a short memory: the law's answers, and no more kept than they need."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

import papers
from anabranch.branch.past.queries import recalled_query
from anabranch.language import ast, parse
from anabranch.law import evaluate
from anabranch.law.arrivals.past import Past
from anabranch.law.inputs import Arrival, Input
from anabranch.law.paths import base_of
from anabranch.law.slices import WholeNeeded
from anabranch.runtime.past.recollection import Recollection, asked_of, only_past
from anabranch.runtime.units import NOTHING, piece_of
from history.past import checked, given, item, stream
from mass import some

PATHS = ("stream('b')/r/i", "stream('b')//i", "stream('b')/r/i[v > 2]", "stream('a')/r/i[v != 1]", "stream('b')/r/i/v")
QUALIFIERS = ("#0", "#1", "#3", "#[2]", "?0", "?1.5", "?4", "?[0]", "?[1.5]", "?[6]")
BODIES = (
    "for $x in stream('a')/r/i where not(some $s in {0} satisfies $s = $x/v or $s/v = $x/v) return $x/v",
    "for $x in stream('a')/r/i return <n>{{ {0}, count({1}) }}</n>",
    "<o>{{ for $x in stream('a')/r/i[v > 0], $y in {0} where $y/v >= $x/v return <p>{{ $x/v, $y }}</p> }}</o>",
    "for $x in stream('a')/r/i let $w := {0} return sum(($w/v, $w#1/v, {1}/v))",
    "for $x in stream('a')//v return (count(stream('b')/r/i[v = $x]?[3]), $x#0, $x#1)",
    "for $x in stream('a')/r/i return $x/v + {0}/t#0",
    "for $x in stream('a')/r/i return <n>{{ stream('b')/r/i[v = $x/v]#1, count(stream('b')/r/i[v >= $x/v]#[2]) }}</n>",
    "for $x in stream('a')/r/i return <n>{{ ({0})[1], ({1})[last()], ({0})[position() > 1]/v }}</n>",
    "for $x in stream('a')/r/i let $y := {0} return <n>{{ stream('a')/r/i[v = $y/v]?1.5, $x/v }}</n>",
    "for $x in stream('a')/r/i let $w := {0} return <n>{{ (count($w))#1, (sum($w/t) + $x/t)?[2] }}</n>",
)


class Remembering:
    """Answers a query whose results stand, item by item, as a branch does, and notes how much it holds."""

    def __init__(self, query: str, streams: dict[str, Input]) -> None:
        self._streams = streams
        found = recalled_query(checked(query, streams).query)
        assert found is not None, query
        assert found.standing is not None, query
        self._query, self._standing = found.query, found.standing
        self.recollection = Recollection(found.query, found.asked, streams, name="q")
        self.held: list[int] = []

    def answer(self) -> str:
        """The answer to all that its streams bring."""
        whole, hole = self._standing, self._standing.hole
        assert hole is not None
        source = base_of(whole.fors[0].source if isinstance(hole, ast.Flwor) else hole)
        assert isinstance(source, ast.Source)
        text, ended = "", False
        for moment in Past(self._query, self._streams).moments:
            self.recollection.take(moment.place.stream, moment.element)
            if isinstance(moment.element, Arrival) and moment.place.stream == source.name:
                piece = piece_of(self.recollection.value(hole, whole.env, moment.element), whole.scope)
                text += f" {piece.text}" if ended and piece.begins else piece.text
                ended = piece.ends if piece != NOTHING else ended
            self.held.append(self.recollection.held)
        return f"{whole.opening}{text}{whole.closing}" if text else whole.empty


def compare(query: str, streams: dict[str, Input]) -> None:
    """The law and the short memory say the same, and set the same aside."""
    asked = checked(query, streams).query
    law = evaluate(asked, streams, name="q")
    remembering = Remembering(query, streams)
    text = remembering.answer()
    assert (text, set(remembering.recollection.dead)) == (law.text, set(law.dead)), query


def most_held(query: str, streams: dict[str, Input]) -> list[int]:
    """How many items are remembered after each element."""
    remembering = Remembering(query, streams)
    remembering.answer()
    return remembering.held


def some_stream(random: Random, items: int, straight: bool = False) -> str:
    """Items whose times rise, or mostly so, with heartbeats and values that are no numbers among them."""
    found: list[str] = []
    time = 0.0
    for _ in range(items):
        time += random.choice((0, 0, 0.5, 0.5, 1, 3))
        if random.random() < 0.2:
            found.append(f'<s:punctuation xmlns:s="urn:anabranch:stream" at="{time}"/>')
        shown = time - random.choice((0, 0, 0, 0, 1)) if time > 1 and not straight else time
        found.append(item(f"{shown:g}", v=random.choice((0, 1, 2, 3, 4, "x" if random.random() < 0.3 else 5))))
    return stream(*found)


@pytest.mark.parametrize("seed", some(range(40)))
def test_the_law_from_a_short_memory(seed: int) -> None:
    """Random queries of the shape over random streams, also out of order, give what the law gives."""
    random = Random(seed)
    asked = [random.choice(PATHS) + random.choice(QUALIFIERS) for _ in range(2)]
    query = random.choice(BODIES).format(*asked)
    streams = given({name: some_stream(random, random.randrange(1, 14)) for name in ("a", "b")})
    retain = random.choice((None, Fraction(1), Fraction(3)))
    compare(query, {name: replace(each, retain=retain) for name, each in streams.items()})


def test_the_past_of_a_path_in_another_namespace() -> None:
    """Prefixes that a constructor declares mean there what they mean in the law."""
    query = "for $x in stream('a')/r/i return <p:n xmlns:p='urn:p'>{ count(stream('b')/r/p:i?[5]), $x/v }</p:n>"
    other = stream(item(1, v=1), item(2, v=2).replace("<i>", '<i xmlns="urn:p">'))
    compare(query, given({"a": stream(item(1, v=1), item(3, v=2)), "b": other}))


@pytest.mark.parametrize(
    ("qualifier", "most"), [("#0", 1), ("#[4]", 5), ("?[10]", 11), ("?10", 11), ("?[0]", 1), ("#3", 4)]
)
def test_no_more_is_remembered_than_needed(qualifier: str, most: int) -> None:
    """Of an item a second, what the query may still choose is kept, and nothing for the items it answers."""
    query = f"for $x in stream('a')/r/i return count(stream('b')/r/i[v = 1]{qualifier})"
    beats = stream(*(item(time, v=int(time % 7 != 0)) for time in range(100)))
    held = most_held(query, given({"a": stream(item(50)), "b": beats}))
    assert max(held) <= most
    assert held[-1] >= most - 2


@pytest.mark.parametrize(("retain", "expected", "most"), [(None, "<v>1</v>", 100), (Fraction(30), "", 31)])
def test_retain_bounds_what_is_not_known(retain: Fraction | None, expected: str, most: int) -> None:
    """Case 231: the last reading of the same sensor may be long ago; what the stream retains is what counts."""
    query = "for $x in stream('a')/r/i return stream('b')/r/i[s = $x/s]#0/v"
    beats = stream(item(0, s="rare", v=1), *(item(time, s="usual", v=2) for time in range(1, 100)))
    streams = {"a": stream(item("99.5", s="rare")), "b": beats}
    read = {name: replace(each, retain=retain) for name, each in given(streams).items()}
    assert evaluate(checked(query, streams).query, read).text == expected
    compare(query, read)
    assert most - 1 <= max(most_held(query, read)) <= most


def test_query_3_remembers_a_minute() -> None:
    """However many packets there are, those of the last minute are kept, and of acknowledgements none."""
    syn = "".join(f"<packet><t>{time}</t><id>{time}</id></packet>" for time in range(0, 600, 2))
    streams = given({"ack": "<a><packet><t>300</t><id>250</id></packet></a>", "syn": f"<s>{syn}</s>"})
    compare(papers.PACKETS, streams)
    assert max(most_held(papers.PACKETS, streams)) == 31


@pytest.mark.parametrize(
    "query",
    [
        "stream('s')/r/i#0",
        "stream('s')/r/i[v = stream('t')/r/i#0/v]",
        "count(stream('s')/r/i)",
        "for $x in stream('s')/r/i?[1] return $x",
        "for $x in stream('s')/r/i return (count(stream('t')/r/i))?5",
        "for $x in stream('s')/r/i order by $x/v return stream('t')/r/i#0",
        "for $x in stream('s')/r/i return stream('t')/r#0",
        "for $x in stream('s')/r/i return stream('t')/r/i[v = stream('s')/r/i#0/v]#0",
    ],
)
def test_other_shapes(query: str) -> None:
    """What is corrected, ordered, or needs more than arrivals that can be told beforehand, is left to the law."""
    found = recalled_query(checked(query, ("s", "t")).query)
    assert found is None or found.standing is None


def test_time_is_exact() -> None:
    """A tenth of a second is a tenth: what arrived exactly so long ago is in."""
    streams = given({"a": stream(item("0.3")), "b": stream(item("0.1"), item("0.2"))})
    query = "for $x in stream('a')/r/i return count(stream('b')/r/i?[0.2])"
    compare(query, streams)
    assert most_held(query, streams)[-1] == 2


def test_a_path_that_reaches_the_root_is_left_to_the_law() -> None:
    """Whether `//i` reaches the root shows in the data only."""
    streams = given({"a": stream(item(1)), "b": "<i><i><t>1</t></i></i>"})
    query = "for $x in stream('a')/r/i return count(stream('b')//i?[5])"
    with pytest.raises(WholeNeeded):
        Remembering(query, streams).answer()


def test_what_is_corrected_remembers_as_little() -> None:
    """Query 4 keeps the events of the last second, whatever came before."""
    events = "".join(f"<event><t>{time / 4}</t><frequency>{time % 3}</frequency></event>" for time in range(200))
    streams = given({"radar1": f"<r>{events}</r>", "radar2": f"<r>{events}</r>"})
    query = papers.RADAR.replace("triangulate($r/angle,$s/angle)", "$r/t, $s/t")
    asked = checked(query, streams).query
    known = asked_of(asked)
    assert known is not None
    recollection = Recollection(asked, known, streams)
    held = []
    for moment in Past(asked, streams).moments:
        recollection.take(moment.place.stream, moment.element)
        held.append(recollection.held)
    assert max(held) == 10


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("stream('s')/r/i#0", True),
        ("for $x in stream('s')/r/i?[1], $y in stream('t')/r/i#[2] return $x", True),
        ("(stream('s')/r/i#0, count(stream('s')/r/i))", False),
        ("stream('s')/r/i[v = stream('t')/r/i/v]#0", False),
        ("doc('s')/r/i#0", False),
        ("1 + 1", False),
    ],
)
def test_which_queries_are_corrected(query: str, expected: bool) -> None:
    """Those that read streams by asking for their past, and in no other way."""
    assert only_past(parse(query)) is expected
