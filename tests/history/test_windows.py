"""Windows over streams of updates: those of the document as it stands, after every moment (LAWS 5.10)."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from random import Random

import pytest

from anabranch.law.history.timeline import arrivals
from anabranch.stream.elements import DeadLetter
from history.asking import Asked, shown
from history.describing import describe
from history.following import Followed
from history.windowed import WindowWriter
from mass import Mass

WINDOW = 'for $w in stream("s")/root/i|t diff 10| return <w>{ count($w) }</w>'


def region(id: str, content: str) -> str:
    return f'<s:mutable id="{id}">{content}</s:mutable>'


def replaced(id: str, content: str) -> str:
    return f'<s:replace target="{id}">{content}</s:replace>'


def items(name: str, *values: object) -> str:
    """Items with one leaf, whose region is called by the number of the item."""
    found = (f"<i>{region(str(number), f'<{name}>{value}</{name}>')}</i>" for number, value in enumerate(values))
    return "".join(found)


def displays(query: str, stream: str) -> list[str]:
    """What the law and the machine show, one display after the other."""
    law = [text for _, text in shown(query, stream)]
    machine = [text for _, text in Followed(query, s=stream).run(put_away=True)]
    assert [text for at, text in enumerate(machine) if text != ["", *machine][at]] == law
    return law


def test_case_96() -> None:
    """A node moves to another window, and leaves it."""
    stream = region("a", "<i><t>1</t></i>") + region("b", "<i><t>12</t></i>")
    stream += replaced("b", "<i><t>5</t></i>") + replaced("b", "")
    assert displays(WINDOW, stream) == ["<w>1</w>", "<w>1</w><w>1</w>", "<w>2</w>", "<w>1</w>"]


def test_case_97() -> None:
    """Count windows hold nodes by their places in document order, and are shown where they are full."""
    stream = "".join(region(each, f"<i>{each}</i>") for each in "abcd")
    stream += '<s:before target="a"><i>x</i></s:before>' + replaced("b", "")
    found = displays('for $w in stream("s")/root/i|count 2| return <w>{ $w/text() }</w>', stream)
    assert [each.replace("</w><w>", " ")[3:-4] for each in found] == ["ab", "ab cd", "xa bc", "xa cd"]


def test_case_98() -> None:
    """Sessions are joined by what comes between them, and fall apart when it goes."""
    stream = "".join(region(str(each), f"<i><t>{each}</t></i>") for each in (0, 50, 100))
    stream += '<s:after target="0" id="new"><i><t>25</t></i></s:after>' + replaced("new", "")
    found = displays('for $w in stream("s")/root/i|t gap 30| return <w>{ $w/t/text() }</w>', stream)
    apart = "<w>0</w><w>50</w><w>100</w>"
    assert found[2:] == [apart, "<w>02550</w><w>100</w>", apart]


@pytest.mark.parametrize(("asked", "wrong", "mended"), [("sum($w/f)", "", "6"), ("count($w)", "3", "3")])
def test_case_99(asked: str, wrong: str, mended: str) -> None:
    """An error in a window sets it aside as long as it fails, and the dead letter names the entry at fault."""
    query = f'for $w in stream("s")/root/i|t diff 10| return {asked}'
    stream = items("f", 1, "abc", 3).replace("<i>", "<i><t>1</t>") + replaced("1", "<f>2</f>")
    asking = Asked(query, s=stream)
    found = [text for _, text in asking.timeline()]
    assert found[-1] == mended
    machine = Followed(query, s=stream)
    assert [text for _, text in machine.run(put_away=True)][2:] == [wrong, mended]
    letters = [(each.code, each.place.offset) for each in asking.dead]
    assert letters == ([("FORG0001", 1)] if wrong == "" else [])


def test_case_100() -> None:
    """Groups inside of a window are those of what it holds now, in the order of their first nodes."""
    query = (
        'for $w in stream("s")/root/i|t diff 10| for $o in $w group by $c := $o/c '
        "return <g c='{ $c }'>{ count($o) }</g>"
    )
    stream = items("c", "DE", "FR", "DE").replace("<i>", "<i><t>1</t>")
    stream += replaced("0", "<c>FR</c>") + replaced("1", "<c>IT</c>")
    found = [each.replace('<g c="', "").replace('">', " ").replace("</g>", ";") for each in displays(query, stream)]
    assert found[2:] == ["DE 2;FR 1;", "FR 2;DE 1;", "FR 1;IT 1;DE 1;"]


def test_case_101() -> None:
    """Nothing is late: a window before the others is shown, too."""
    query = 'for $w in stream("s")/root/i|t diff 10| return window-start($w)'
    assert displays(query, items("t", 100, 1)) == ["100", "0 100"]


# --- random cases ---------------------------------------------------------------------------------------------


def told(letters: Iterable[DeadLetter]) -> set[tuple[object, ...]]:
    """What is said of failures: codes, reasons and the places of the entries at fault."""
    return {(each.code, each.reason, frozenset((each.place, *(place for place, _ in each.others)))) for each in letters}


def compared(number: int) -> tuple[int, str]:
    """Follow a random query by the machine and by the law; gives the number of moments, and how the query splits."""
    random = Random(number)
    writer = WindowWriter(random)
    stream, query = writer.stream(random.randint(4, 14)), writer.query()
    followed, by_law = Followed(query, s=stream), Asked(query, s=stream)
    if number % 7 == 0:
        return sum(1 for _ in followed.run(put_away=True)), describe(followed.machine.part)
    list(by_law.timeline())
    moments, letters = 0, list[DeadLetter]()
    for each in arrivals(followed.law, followed.given):
        for change in followed.machine.take(each.stream, each.element, each.at, each.partition):
            letters += change.dead
            moments += 1
        list(followed.law[each.stream].take(each.element, each.at, each.partition))
        assert followed.machine.text == followed.by_law(), (query, stream)
    assert told(letters) == told(by_law.dead), (query, stream)
    return moments, describe(followed.machine.part)


def test_random_windows(mass: Mass) -> None:
    """After every moment the machine shows what the law does, and sets aside what the law does."""
    moments, ways = 0, set[str]()
    for number in mass.cases(2_000):
        found, way = compared(number)
        moments += found
        ways.add(way)
    assert moments > 4 * mass.done or mass.done < mass.total
    wanted = {f'{what} of "s", {how}' for what in ("each window", "groups of each window") for how in ("adjusted",)}
    assert ways >= wanted | {'each window of "s", with its content'} or mass.done < mass.total


# --- cost -----------------------------------------------------------------------------------------------------


@pytest.mark.mass
@pytest.mark.parametrize("window", ["t diff 100000", "t gap 100000"])
@pytest.mark.parametrize(
    "result", ["<w>{ sum($w/v), max($w/v) }</w>", "for $o in $w group by $k := $o/k return <g>{ sum($o/v) }</g>"]
)
def test_an_update_costs_what_it_changes(window: str, result: str) -> None:
    """Aggregates are adjusted: one entry is evaluated and the result of one window, however many nodes it holds."""
    query = f'for $w in stream("s")/root/i|{window}| return {result}'
    costs = set()
    for size in (10, 300):
        nodes = "".join(
            f"<i><t>{each}</t><k>{each % 3}</k>{region(str(each), f'<v>{each}</v>')}</i>" for each in range(size)
        )
        followed = Followed(query, s=nodes)
        for each in followed.given["s"][0]:
            list(followed.machine.take("s", each, Fraction(0)))
        before = followed.machine.evaluated
        (update,) = Followed(query, s=replaced("4", "<v>1000</v>")).given["s"][0]
        (change,) = followed.machine.take("s", update, Fraction(0))
        assert change.edits
        costs.add(followed.machine.evaluated - before)
    assert costs == {2}
