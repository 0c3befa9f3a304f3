"""Groups, different values and results by their places over streams of updates (LAWS 3.8, 3.10, 5.5).

They are kept up to date entry by entry; the law evaluates them anew after every moment, and so does Saxon.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from unittest import mock

import pytest
from lxml import etree

from anabranch.branch.display import continuous
from anabranch.branch.display.parts import splits
from anabranch.branch.display.split import Splitter
from anabranch.errors import AnabranchError
from anabranch.law.history.timeline import arrivals
from anabranch.stream.elements import DeadLetter
from anabranch.stream.tree import STREAM_NAMESPACE
from history.asking import Asked
from history.describing import describe
from history.following import Followed
from history.grouped import GroupAsker
from history.hosting import Case, Law, replayed
from history.test_windows import region, replaced, told
from history.test_windows_saxon import PlainDocument, SoundWriter, judged
from history.windowed import WindowWriter
from mass import Mass, enough, some
from oracle.saxon import canonical
from spark.bare import BareTrunk


def stream_of(*items: str) -> str:
    """Items in regions that are called by their numbers."""
    return "".join(region(str(number), f"<i>{each}</i>") for number, each in enumerate(items))


def shown(query: str, stream: str) -> list[str]:
    """What is on display behind each element, by the machine, with its state put away, and the law."""
    return [text for _, text in Followed(query, s=stream).run(put_away=True)]


def test_a_group_stands_where_its_first_item_does() -> None:
    """It moves, changes and vanishes with its items (LAWS 3.8)."""
    query = 'for $i in stream("s")/root/i group by $k := $i/k return <g k="{ $k }">{ count($i), sum($i/v) }</g>'
    stream = stream_of("<k>a</k><v>1</v>", "<k>b</k><v>2</v>", "<k>a</k><v>3</v>")
    stream += replaced("0", "<i><k>c</k><v>4</v></i>") + replaced("1", "") + replaced("2", "<i><k>c</k><v>x</v></i>")
    stream += replaced("2", "<i><k>a</k><k>c</k></i>") + replaced("2", "<i><v>7</v></i>")
    assert shown(query, stream)[2:] == [
        '<g k="a">2 4</g><g k="b">1 2</g>',
        '<g k="c">1 4</g><g k="b">1 2</g><g k="a">1 3</g>',
        '<g k="c">1 4</g><g k="a">1 3</g>',
        "",  # a sum of words makes the whole fail
        '<g k="c">1 4</g>',  # an item with two keys is set aside
        '<g k="c">1 4</g><g k="">1 7</g>',
    ]


def test_case_230() -> None:
    """What an item was, beside what it is: groups over a document look back from the present."""
    query = 'for $i in stream("s")/root/i group by $k := $i/k return <g k="{ $k }">{ sum($i/v), sum($i/v#1) }</g>'
    values = (f"<i><k>{key}</k>{region(f'v{at}', f'<v>{at + 1}</v>')}</i>" for at, key in enumerate("aab"))
    stream = "".join(values) + replaced("v0", "<v>5</v>") + replaced("v2", "<v>4</v>")
    assert shown(query, stream)[2:] == [
        '<g k="a">3 0</g><g k="b">3 0</g>',
        '<g k="a">7 1</g><g k="b">3 0</g>',
        '<g k="a">7 1</g><g k="b">4 3</g>',
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('(stream("s")/root/i)[2]', ["<i>b</i>", "<i>a</i>", "<i>a</i>", "<i>a</i>"]),
        (
            'for $i at $n in stream("s")/root/i return $n || $i',
            ["1a 2b 3c", "1x 2a 3b 4c", "1x 2a 3c", "1x 2a 3d"],
        ),
        ('for $i in stream("s")/root/i count $n return $n || $i', ["1a 2b 3c", "1x 2a 3b 4c", "1x 2a 3c", "1x 2a 3d"]),
        ('(stream("s")/root/i#[1])[last()]', ["<i>c</i>"] * 4),
        ('head(stream("s")/root/i), subsequence(stream("s")/root/i, 3)', [
            "<i>a</i><i>c</i>", "<i>x</i><i>b</i><i>c</i>", "<i>x</i><i>c</i>", "<i>x</i><i>d</i>"
        ]),
        ('for $i allowing empty in stream("s")/root/i[. > "b"] return <e>{ $i }</e>', [
            "<e><i>c</i></e>", "<e><i>x</i></e><e><i>c</i></e>", "<e><i>x</i></e><e><i>c</i></e>",
            "<e><i>x</i></e><e><i>d</i></e>",
        ]),
    ],
)  # fmt: skip
def test_case_232(query: str, expected: list[str]) -> None:
    """The nodes of a document have places, those that they have now (LAWS 3.10)."""
    stream = "".join(region(str(number), f"<i>{each}</i>") for number, each in enumerate("abc"))
    stream += '<s:before target="0"><i>x</i></s:before>' + replaced("1", "") + replaced("2", "<i>d</i>")
    assert shown(query, stream)[-len(expected) :] == expected


def test_different_values_stand_where_they_come_first() -> None:
    """What leaves gives its place to the next that is equal, spelled as that is."""
    query = 'distinct-values(for $i in stream("s")/root/i return ($i/v, $i/w * 1))'
    stream = stream_of("<v>a</v>", "<w>1</w><v>b</v>", "<v>a</v><w>1.0</w>") + replaced("0", "<i><v>c</v></i>")
    stream += replaced("1", "<i><w>2</w></i>") + replaced("2", "")
    assert shown(query, stream) == ["a", "a b 1", "a b 1", "c b 1 a", "c 2 a 1", "c 2"]


def test_the_first_results_are_others_when_one_falls() -> None:
    """Results that were behind the first two are there again, in their order."""
    query = '(for $i in stream("s")/root/i order by $i/v descending return <r>{ data($i/v) }</r>)[position() <= 2]'
    stream = stream_of("<v>5</v>", "<v>7</v>", "<v>6</v>") + replaced("1", "<i><v>1</v></i>") + replaced("2", "")
    found = [each.replace("</r><r>", " ")[3:-4] for each in shown(query, stream)]
    assert found == ["5", "7 5", "7 6", "6 5", "5 1"]


# --- random cases -------------------------------------------------------------------------------------------


def random_case(number: int) -> Followed | None:
    """A query and its stream; None where the query is refused."""
    random = Random(number)
    stream, query = WindowWriter(random).stream(random.randint(4, 12)), GroupAsker(random).query()
    try:
        return Followed(query, s=stream)
    except AnabranchError:
        return None


def compared(number: int) -> bool:
    """Follow a random query by the machine and by the law; gives whether it is kept up to date entry by entry."""
    followed = random_case(number)
    if followed is None:
        return False
    if number % 3 == 0:
        assert sum(1 for _ in followed.run(put_away=True)) > 0
        return splits(followed.machine.part)
    letters = list[DeadLetter]()
    for each in arrivals(followed.law, followed.given):
        for change in followed.machine.take(each.stream, each.element, each.at, each.partition):
            letters += change.dead
        list(followed.law[each.stream].take(each.element, each.at, each.partition))
        assert followed.machine.text == followed.by_law(), number
    random = Random(number)
    stream, query = WindowWriter(random).stream(random.randint(4, 12)), GroupAsker(random).query()
    by_law = Asked(query, s=stream)
    list(by_law.timeline())
    due, found = told(by_law.dead), told(letters)
    fails = any(not each.raw for each in by_law.dead)  # where all of it fails, the law tells nothing of single items
    assert due <= found if fails else due == found, number
    return splits(followed.machine.part)


def test_random_queries(mass: Mass) -> None:
    """After every moment the machine shows what the law does, and sets aside what the law does."""
    adjusted = sum(compared(number) for number in mass.cases(3_000))
    assert adjusted > mass.done / 2 or mass.done < 100


def test_a_few_random_queries() -> None:
    """The same, of each kind."""
    for number in some(range(60)):
        compared(number)


@pytest.mark.parametrize(
    ("query", "how"),
    [
        ('for $i in stream("s")/root/i group by $k := $i/k return <g>{ $k, max($i/v) }</g>', 'groups of "s"'),
        ('distinct-values(stream("s")/root/i/k)', 'different values of each entry of "s"'),
        (
            '(for $i in stream("s")/root/i order by $i/v descending return $i/v)[position() <= 3]',
            'some of each entry of "s", kept in order',
        ),
        (
            '(for $i in stream("s")/root/i group by $k := $i/k order by count($i) return $k)[last()]',
            'some of groups of "s"',
        ),
        ('count(distinct-values(stream("s")/root/i/k))', None),
    ],
)
def test_an_update_costs_what_it_changes(query: str, how: str | None) -> None:
    """One entry is evaluated, and what is said of its groups, however many entries there are."""
    costs = set()
    for size in (10, 200):
        values = (f"<k>{each % 5}</k>{region(f'v{each}', f'<v>{each}</v>')}" for each in range(size))
        followed = Followed(query, s="".join(f"<i>{each}</i>" for each in values))
        assert how is None or describe(followed.machine.part) == how
        for each in followed.given["s"][0]:
            list(followed.machine.take("s", each, Fraction(0)))
        before = followed.machine.evaluated
        (update,) = Followed(query, s=replaced("v4", "<v>1000</v>")).given["s"][0]
        list(followed.machine.take("s", update, Fraction(0)))
        costs.add(followed.machine.evaluated - before)
    assert len(costs) == 1
    assert costs.pop() <= 3


@pytest.mark.mass
def test_on_a_trunk(tmp_path: Path) -> None:
    """After every moment a trunk shows what the law shows, however it was cut into epochs and shards."""
    cases: dict[str, Case] = {}
    for number in range(25):
        stream = WindowWriter(Random(number)).stream(8)
        query = GroupAsker(Random(f"trunk {number}")).query()
        try:
            Followed(query, s=stream)
        except AnabranchError:
            continue
        query = query.replace('"s"', f'"s{number}"').replace("'s'", f"'s{number}'")
        cases[f"q{number}"] = Case(query, {f"s{number}": [stream]})
    sources = {name: each.sources(tmp_path) for name, each in cases.items()}
    every = [each for several in sources.values() for each in several]
    trunk = BareTrunk(tmp_path / "state", every, Random(1), finite=True)
    trunk.strands = 2
    trunk.run({name: each.query for name, each in cases.items()}, [300, 1_000, 5_000], [1, 2, 3])
    assert len(cases) > 15
    for name, case in cases.items():
        assert replayed(trunk.log, name) == Law.of(case, sources[name]).shown, case


def test_a_state_of_an_earlier_release_goes_on() -> None:
    """What was evaluated anew as a whole then is so now; a display goes on as it has begun."""
    whole = partial(Splitter, by_groups=False)
    for number in some(range(30)):
        followed = random_case(number)
        if followed is None:
            continue
        assert isinstance(followed.machine, continuous.ContinuousQuery)
        halves: list[bool] = []
        with mock.patch.object(continuous, "Splitter", lambda *given, by_groups=True: whole(*given)):
            followed.machine = followed.fresh()
        for at, each in enumerate(arrivals(followed.law, followed.given)):
            if at == 3:
                data = followed.machine.encode()
                followed.machine = followed.fresh()
                followed.machine.decode(data)
                halves.append(splits(followed.machine.part))
                assert followed.machine.text == followed.by_law()
            list(followed.machine.take(each.stream, each.element, each.at, each.partition))
            list(followed.law[each.stream].take(each.element, each.at, each.partition))
            assert followed.machine.text == followed.by_law(), number


# --- Saxon --------------------------------------------------------------------------------------------------

FIRST = "count($i[1]/preceding-sibling::*)"
"""Where a group stands; the order of groups is left open by the language."""
JUDGED = {
    'for $i in stream("s")/root/i group by $k := $i/k return <g k="{ $k }">{ count($i), max($i/v) }</g>': (
        f"for $i in $items group by $k := string($i/k[1]) order by {FIRST} "
        "return <g k='{ $k }'>{ count($i), max($i/v/number()) }</g>"
    ),
    'for $i in stream("s")/root/i where $i/v > 2 group by $k := $i/k let $n := sum($i/v) order by $n descending '
    "return <g>{ $n }</g>": (
        "for $i in $items where $i/v/number() > 2 group by $k := string($i/k[1]) let $n := sum($i/v) "
        f"order by $n descending, {FIRST} return <g>{{ $n }}</g>"
    ),
    'for $i in stream("s")/root/i group by $b := count($i/k) return <g>{ $b, distinct-values($i/v) }</g>': (
        f"for $i in $items group by $b := count($i/k) order by {FIRST} "
        "return <g>{ $b, distinct-values($i/v/string()) }</g>"
    ),
    '<d>{ distinct-values(stream("s")/root/i/v) }</d>': "<d>{ distinct-values($items/v/string()) }</d>",
    '<d>{ subsequence((for $i in stream("s")/root/i order by $i/t, $i/v return <o>{ $i/t, $i/v }</o>), 2, 3) }</d>': (
        "<d>{ subsequence((for $i in $items order by $i/t/number(), $i/v/number() "
        "return <o>{ $i/t, $i/v }</o>), 2, 3) }</d>"
    ),
    '<d>{ (stream("s")/root/i)[position() > 1][position() < 4] }</d>': (
        "<d>{ $items[position() > 1][position() < 4] }</d>"
    ),
    'for $i at $n in stream("s")/root/i[v > 2] count $c return <o n="{ $n }">{ $c, $i/v }</o>': (
        "for $i at $n in $items[v/number() > 2] count $c return <o n='{ $n }'>{ $c, $i/v }</o>"
    ),
    '<d>{ head(stream("s")/root/i/v), tail(stream("s")/root/i/k), (stream("s")/root/i)[last()]/t }</d>': (
        "<d>{ head($items/v), tail($items/k), $items[last()]/t }</d>"
    ),
    '<d>{ (for $i in stream("s")/root/i return <o>{ $i/k }</o>)[last()] }</d>': (
        "<d>{ (for $i in $items return <o>{ $i/k }</o>)[last()] }</d>"
    ),
}


@pytest.mark.parametrize("query", JUDGED)
def test_saxon_agrees(query: str) -> None:
    """After every element of random streams the machine shows what Saxon makes of the plain document."""
    compared = 0
    for number in some(range(10)):
        random = Random(f"{query} {number}")
        stream = SoundWriter(random).stream(random.randint(4, 10))
        followed, document = Followed(query, s=stream), PlainDocument()
        written = list(etree.fromstring(f'<root xmlns:s="{STREAM_NAMESPACE}">{stream}</root>'))
        shown: set[str] = set()
        for each, element in zip(arrivals(followed.law, followed.given), written, strict=True):
            list(followed.machine.take(each.stream, each.element, each.at, each.partition))
            list(followed.law[each.stream].take(each.element, each.at, each.partition))
            document.take(element)
            theirs = judged(JUDGED[query], document.text)
            assert canonical(followed.machine.text) == theirs, (query, stream, document.text)
            shown.add(theirs)
        compared += len(shown) > 2
    assert compared > enough(2)
