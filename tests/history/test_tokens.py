"""Elements and regions that come piece by piece, interleaved, some without end (LAWS 5.11; history paper, 2)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import pytest

from anabranch.law.history import register
from anabranch.law.history import tokens as open_parts
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import Arriving, answer, arrivals
from anabranch.stream.elements import Place, StreamElement, StreamToken
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.wire import element_of, tree_of
from history.asking import Asked, elements, shown
from history.following import Asking, Followed
from history.in_tokens import TokenWriter, taken_apart, tokens
from history.tokenized import Applied, events, random_stream, written
from history.writing import Writer
from mass import Mass

SECTION_2 = """
sS(10,0), sM(0,1), cD(1,"x"), eM(0,1), sR(1,2), cD(2,"y"), eR(1,2), sA(2,3), cD(3,"z"), eA(2,3),
sB(1,3), cD(3,"w"), eB(1,3), eS(10,0)
"""
SECTION_3 = """
sM(1,2), sE(2,a),
now(1), sM(2,3), sE(3,b), cD(3,X), eE(3,b), eM(2,3),
now(2), sR(3,4), sE(4,b), cD(4,Y), eE(4,b), eR(3,4),
now(3), sR(3,4), sE(4,b), cD(4,Z), eE(4,b), eR(3,4), eE(2,a), eM(1,2),
now(4), sR(2,5), sE(5,a), sE(5,b), cD(5,W), eE(5,b), eE(5,a), eR(2,5)
"""


def reasons(text: str) -> list[str]:
    """Why elements of a stream are bad."""
    asked = Asked('count(stream("s")/root/*)', s=text)
    asked.answer()
    return [each.reason for each in asked.documents["s"].admission.dead]


# --- the paper's examples -----------------------------------------------------------------------------------


def test_an_element_in_tokens() -> None:
    """The first example of section 2: an element is there with what has come of it so far."""
    text = "".join(tokens(events('sS(10,3), sE(3,"name"), cD(3,"Smith"), eE(3,"name"), eS(10,3)'), base="3"))
    assert shown('stream("s")/root/name', text) == [("0", "<name/>"), ("0", "<name>Smith</name>")]


def test_the_example_of_section_2() -> None:
    """Case 120: x, then y in its place, z behind y, and w before x, which was replaced; token by token."""
    text = "".join(tokens(events(SECTION_2)))
    found = [each for _, each in shown('<o>{ stream("s")/root/text() }</o>', text)]
    assert found == ["<o/>", "<o>x</o>", "<o/>", "<o>y</o>", "<o>yz</o>", "<o>wyz</o>"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b", "1 <b/>, 1 <b>X</b>, 2 , 2 <b/>, 2 <b>Y</b>, 3 , 3 <b/>, 3 <b>Z</b>, 4 , 4 <b/>, 4 <b>W</b>"),
        ("a#1/b", "4 <b>Z</b>"),
        ("a#1/b#2", "4 <b>X</b>"),
        ("a/b#1", "2 <b>X</b>, 3 <b>Y</b>, 4 "),
        ("a/b#[1]", "1 <b/>, 1 <b>X</b>, 2 <b/><b>X</b>, 2 <b>Y</b><b>X</b>, 3 <b>Y</b>, 3 <b/><b>Y</b>, "
         "3 <b>Z</b><b>Y</b>, 4 , 4 <b/>, 4 <b>W</b>"),
    ],
)  # fmt: skip
def test_the_example_of_section_3(path: str, expected: str) -> None:
    """Case 121: what the paper shows at t1 to t4 (but for LAWS 5.4), and between these what has come so far."""
    text = "".join(tokens(events(SECTION_3), base="1"))
    assert ", ".join(f"{at} {each}" for at, each in shown(f'stream("s")/root/{path}', text)) == expected


# --- what is open -------------------------------------------------------------------------------------------


def test_elements_that_never_end() -> None:
    """Case 122: two elements below the root stay open for ever, in regions, and both grow."""
    text = """
    <s:start kind="mutable" id="1"/><s:open in="1"><stocks/></s:open>
    <s:start kind="mutable" id="2"/><s:open in="2"><funds/></s:open>
    <s:append in="1"><stock>ACME</stock></s:append><s:append in="2"><fund>A</fund></s:append>
    <s:open in="1"><stock/></s:open><s:append in="2"><fund>B</fund></s:append><s:append in="1">Initech</s:append>
    """
    query = '<n>{ count(stream("s")/root/stocks/stock), stream("s")/root/funds/fund/text() }</n>'
    assert [each for _, each in shown(query, text)] == [
        "<n>0</n>", "<n>1</n>", "<n>1A</n>", "<n>2A</n>", "<n>2AB</n>",
    ]  # fmt: skip
    assert Asked('stream("s")/root/*', s=text).answer() == (
        "<stocks><stock>ACME</stock><stock>Initech</stock></stocks><funds><fund>A</fund><fund>B</fund></funds>"
    )


def test_regions_that_open_and_close_inside_each_other() -> None:
    """Case 123: 2 starts inside 1 and ends behind it, and the element around both is closed before either."""
    text = """
    <s:open><a/></s:open><s:start kind="mutable" id="1"/><s:append in="1">x</s:append>
    <s:start kind="mutable" in="1" id="2"/><s:append in="2">y</s:append><s:append in="1">z</s:append>
    <s:close name="a"/><s:end id="1"/><s:append in="2">w</s:append><s:end id="2"/>
    """
    assert [each for _, each in shown('stream("s")/root/a', text)] == [
        "<a/>", "<a>x</a>", "<a>xy</a>", "<a>xyz</a>", "<a>xywz</a>",
    ]  # fmt: skip
    assert reasons(text) == []


def test_two_replacements_of_one_region_at_a_time() -> None:
    """Case 124: the later start shows; what the earlier one gets then never was, now or in any version."""
    text = """
    <s:start kind="mutable" id="1" at="1"/><s:append in="1"><b>X</b></s:append><s:end id="1"/>
    <s:start kind="replace" target="1" id="2" at="2"/><s:append in="2"><b>Y</b></s:append>
    <s:start kind="replace" target="1" id="3" at="3"/><s:append in="2"><b>never</b></s:append>
    <s:append in="3"><b>Z</b></s:append><s:end id="3"/><s:end id="2"/>
    """
    assert shown('stream("s")/root/b#[2]', text) == [
        ("1", "<b>X</b>"),
        ("2", "<b>Y</b><b>X</b>"),
        ("3", "<b>Z</b><b>Y</b><b>X</b>"),
    ]
    assert shown('stream("s")/root/b#1', text) == [("2", "<b>X</b>"), ("3", "<b>Y</b>")]


def test_lives_begin_when_things_come() -> None:
    """Case 125: a version lives from its start, and what came into it later lives from then."""
    text = """
    <s:start kind="mutable" id="1" at="1"/><s:append in="1" at="2"><b>X</b></s:append>
    <s:append in="1" at="5"><b>Y</b></s:append><s:end id="1" at="6"/>
    <s:start kind="replace" target="1" id="2" at="8"/><s:append in="2" at="9"><b>Z</b></s:append>
    """
    for asked, expected in (
        ("?6", "<b>X</b>"),
        ("?3", "<b>X</b><b>Y</b>"),
        ("?0.5", ""),
        ("?8", ""),
        ("?0", "<b>Z</b>"),
    ):
        assert Asked(f'stream("s")/root/b{asked}', s=text).answer() == expected, asked
    assert Asked('stream("s")/root/b?[1]', s=text).answer() == "<b>Z</b>"
    assert Asked('stream("s")/root/b?[2]', s=text).answer() == "<b>Z</b><b>X</b><b>Y</b>"


def test_lives_inside_an_element_that_takes_time() -> None:
    """LAWS 5.2 holds for whole elements, too: what is written behind a later update inside of it came with that."""
    text = """
    <s:mutable id="1" at="1"/><s:mutable id="2" at="1"/>
    <s:replace target="1" at="2"><b>X</b><s:replace target="2" at="5"/><b>Y</b></s:replace><s:punctuation at="9"/>
    """
    for asked, expected in (("?8", ""), ("?6", "<b>X</b>"), ("?4", "<b>X</b><b>Y</b>")):
        assert Asked(f'stream("s")/root/b{asked}', s=text).answer() == expected
        *_, last = Followed(f'stream("s")/root/b{asked}', s=text).run(put_away=True)
        assert last[1] == expected


def test_whole_elements_come_between() -> None:
    """Items and updates that are whole stand where they always do, whatever is open."""
    text = """
    <s:open><log/></s:open><i>1</i><s:append><e>1</e></s:append><i>2</i>
    <s:start kind="mutable" id="1"/><s:append in="1"><e><s:mutable id="2">2</s:mutable></e></s:append>
    <s:replace target="2">3</s:replace><s:close/><i>4</i><s:end id="1"/><s:upsert id="1"><e>5</e></s:upsert>
    """
    assert Asked('stream("s")/root/*', s=text).answer() == "<log><e>1</e><e>5</e></log><i>1</i><i>2</i><i>4</i>"


# --- what is bad --------------------------------------------------------------------------------------------

OPEN = '<s:start kind="mutable" id="1"/><s:open in="1"><a/></s:open>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<s:end id="1"/>', "no region called '1' is open"),
        ('<s:append in="7">x</s:append>', "no region called '7' is open"),
        ("<s:append><b/></s:append>", "no element is open in the stream: what is whole is an item"),
        ("<s:close/>", "no element is open in the stream"),
        ('<s:start kind="mutable" id="1"/><s:close in="1"/>', "no element is open in the region '1'"),
        (OPEN + '<s:close in="1" name="b"/>', "the element that is open is 'a', not 'b'"),
        (OPEN + '<s:end id="1"/>', "the element 'a' is still open in the region '1'"),
        (OPEN + '<s:start kind="mutable" id="1"/>', "the id '1' is that of a region that is still open"),
        (OPEN + '<s:mutable id="1"/>', "the id '1' is that of a region that is still open"),
        (OPEN + '<s:replace target="1"/>', "the region '1' is still open"),
        (OPEN + '<s:start kind="after" target="1" id="2"/>', "the region '1' is still open"),
        (OPEN + '<s:upsert id="1"><b/></s:upsert>', "the region '1' is still open"),
        ('<s:start kind="replace" target="1" id="2"/>', "no region is called '1'"),
        ('<s:start kind="mutable" in="4" id="2"/>', "no region called '4' is open"),
        (OPEN + '<s:append in="1" at="2"/><s:append in="1" at="1"/>',
         "its time 1 is before 2, the time of the element before it"),
        (OPEN + '<s:close in="1"/><s:end id="1"/><s:end id="1"/>', "no region called '1' is open"),
    ],
)  # fmt: skip
def test_bad_tokens(text: str, reason: str) -> None:
    """Case 126: each is set aside, with the reason, and changes nothing."""
    assert reasons(text) == [reason]
    *good, _ = elements(text)
    counts = [_count(given) for given in (elements(text), good)]
    assert counts[0] == counts[1]


def _count(given: list[StreamElement]) -> str:
    asked = Asked('<n>{ stream("s")/root/node() }</n>', s="")
    asked.streams["s"] = [given]
    return asked.answer()


def test_something_is_put_before_an_open_region() -> None:
    """History paper, section 2: sB may come as soon as its region has begun."""
    text = OPEN + '<s:start kind="before" target="1" id="2"/><s:append in="2"><b/></s:append>'
    assert reasons(text) == []
    assert Asked('stream("s")/root/*', s=text).answer() == "<b/><a/>"


def test_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither depth nor the number of open regions is the sender's to choose."""
    deep = "".join("<s:open><a/></s:open>" for _ in range(105))
    assert reasons(deep) == ["nested more than 100 deep"] * 5
    monkeypatch.setattr(open_parts, "MOST_OPEN", 3)
    many = "<s:open><a/></s:open>" + "".join(f'<s:start kind="mutable" id="{each}"/>' for each in range(5))
    assert reasons(many) == ["3 regions are open, and there may be no more"] * 2
    assert reasons(many + '<s:end id="0"/><s:start kind="mutable" id="9"/>') == reasons(many)


def test_an_open_region_is_forgotten_as_ids_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAWS 5.8: one in a version that was replaced stays open as long as its id is known."""
    monkeypatch.setattr(register, "MOST_PAST", 4)
    text = """
    <s:mutable id="1"/><s:start kind="replace" target="1" id="2"/><s:replace target="1" id="3"/>
    <s:append in="2">x</s:append>
    """
    assert reasons(text) == []
    later = "".join(f'<s:replace target="1" id="n{each}"/>' for each in range(9))
    again = '<s:start kind="after" target="1" id="2"/><s:append in="2">y</s:append>'
    assert reasons(text + later + '<s:append in="2">x</s:append>') == ["no region called '2' is open"]
    assert reasons(text + later + again) == []
    assert Asked('<o>{ stream("s")/root/node() }</o>', s=text + later + again).answer() == "<o>y</o>"


def test_nothing_stays_of_what_was_open() -> None:
    """Ids of open ends are gone when all is complete: state follows the document, not the number of tokens."""
    document = EditedDocument(implied_root("root"))
    for number in range(200):
        text = f'<s:start kind="{"replace" if number else "mutable"}" {"target" if number else "id"}="1"' + (
            ' id="2"/>' if number else "/>"
        )
        own = "2" if number else "1"
        text += f'<s:open in="{own}"><a/></s:open><s:append in="{own}">{number}</s:append>'
        for element in elements(text + f'<s:close in="{own}"/><s:end id="{own}"/>'):
            assert list(document.take(element, document.admission.reached()))
    assert set(document.admission.register.of(0)) == {"1", "2"}
    assert document.admission.open[0].regions == {}


def test_tokens_are_written_as_they_are_read() -> None:
    """The wire gives every token back."""
    text = (
        OPEN
        + """
    <s:append in="1" at="2.5">x<b k="1"/></s:append><s:close in="1" name="a"/><s:close/><s:end id="1" at="3"/>
    <s:start kind="replace" target="1" id="2" at="4"/><s:start kind="mutable" in="2" id="3"/>
    """
    )
    for each in elements(text):
        assert isinstance(each, StreamToken)
        again = element_of(tree_of(each), Place("s", "text", 0))
        assert tree_of(again).get("at") == tree_of(each).get("at")
        assert isinstance(again, StreamToken)
        assert (again.kind, again.region, again.name, again.starts, again.target, again.at) == (
            each.kind, each.region, each.name, each.starts, each.target, each.at,
        )  # fmt: skip


# --- independent judges -------------------------------------------------------------------------------------


def test_as_the_updates_applied_naively(mass: Mass) -> None:
    """After every token of a random interleaved stream: what a plain list of section 2's events shows.

    All of it stands in an element below the root that never ends.
    """
    for seed in mass.cases(2_000):
        given = random_stream(seed, length=40)
        naive = Applied()
        asked = Asked('stream("s")/root/doc/node()', s="<s:open><doc/></s:open>" + "".join(tokens(given)))
        coming = arrivals(asked.documents, asked.streams)
        take_next(asked, coming)
        for event in given:
            naive.take(event)
            if next(tokens([event]), ""):
                take_next(asked, coming)
                assert answer(asked.query, asked.documents).text == written(naive.content()), seed
        assert asked.documents["s"].admission.dead == []


def take_next(asked: Asked, coming: Iterator[Arriving]) -> None:
    """Apply the next element."""
    each = next(coming)
    for _ in asked.documents["s"].take(each.element, each.at, each.partition):
        pass


def test_as_whole_elements(mass: Mass) -> None:
    """Taken apart into tokens of the same time, elements have shown, behind their last, all that they show whole.

    That holds for the past, too: versions, and their lives.
    It ends where an element replaces what is around itself: whole, all of it has come by then.
    """
    compared = 0
    for seed in mass.cases(4_000):
        random = Random(seed)
        text, query = Writer(random).stream(random.choice((3, 5, 8))), Writer(random).path("s", qualified=True)
        compared += as_whole(query, text)
    assert compared > mass.done or mass.done < 20


def as_whole(query: str, text: str) -> int:
    """Compare a stream with one that has its elements in tokens; gives how many elements were compared."""
    whole, apart = Asked(query, s=text), Asked(query, s="")
    coming, document = arrivals(whole.documents, whole.streams), apart.documents["s"]
    for number, pieces in enumerate(taken_apart(text)):
        take_next(whole, coming)
        for token in elements("".join(pieces)):
            at = document.admission.reached() if token.at is None else Fraction(token.at)
            assert list(document.take(token, at)), document.admission.dead
            if is_replaced_while_open(document):
                return number
        assert answer(whole.query, whole.documents).text == answer(apart.query, apart.documents).text, (text, query)
    assert whole.documents["s"].admission.dead == []
    return number + 1


def is_replaced_while_open(document: EditedDocument) -> bool:
    """Whether something is open in a version that was replaced."""
    found = document.admission.register
    open_regions = document.admission.open[0].regions if document.admission.open else {}
    open_ends = [part.end for parts in open_regions.values() for part in parts]
    return any(found.known[found.of(0)[end].chain].is_over for end in open_ends)


MORE_QUERIES = (
    '<o>{ (count(stream("s")//a))#[2] }</o>',
    'for $x in stream("s")/root/* return <r>{ (count($x//a))#1, (string($x))#[1] }</r>',
    '<o>{ (stream("s")//b)?1, (count(stream("s")//b))?[2] }</o>',
    'for $w in stream("s")/root/a|count 2| return <w>{ $w }</w>',
    'for $w in stream("s")//a|@k diff 2 step 1| return <w>{ count($w), sum($w/@k) }</w>',
    'for $w in stream("s")//b|@k gap 1| return <w>{ $w/@k }</w>',
)
"""The past of values, and windows over what is edited."""


@pytest.mark.parametrize("put_away", [False, True])
def test_production_shows_what_the_law_shows(put_away: bool, mass: Mass) -> None:
    """After every token, for random queries, also with the state put away and read again between any two."""
    for seed in mass.cases(4_000):
        random = Random(seed)
        streams: dict[str, str | list[str]] = {"s": TokenWriter(random).stream(random.choice((10, 20, 30)))}
        if seed % 5 == 0:
            streams["s"] = [TokenWriter(random).stream(12) for _ in range(2)]
        if seed % 4 == 0:
            streams["t"] = TokenWriter(random).stream(10)
        query = random.choice(MORE_QUERIES) if seed % 3 == 0 else Asking(random).any_query(*streams)
        assert list(Followed(query, **streams).run(put_away=put_away)), seed


def test_streams_of_tokens_are_hard_enough() -> None:
    """Most tokens of random streams are good, several regions are open at a time, and something shows."""
    good, bad, open_at_once = 0, 0, 0
    for seed in range(30):
        asked = Asked('stream("s")/root/node()', s=TokenWriter(Random(seed)).stream(30))
        for each in arrivals(asked.documents, asked.streams):
            good += 1
            for _ in asked.documents["s"].take(each.element, each.at, each.partition):
                pass
            parts = asked.documents["s"].admission.open.get(0)
            open_at_once = max(open_at_once, 0 if parts is None else len(parts.regions))
        bad += len(asked.documents["s"].admission.dead)
    assert good > 700
    assert bad > 10
    assert open_at_once > 3
