"""The display: what it shows, the edits that lead there, and what it tells on the wire."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from anabranch.algebra.display.display import Display, Edit, Insert, Piece, Remove
from anabranch.algebra.display.publishing import Published, heartbeat
from anabranch.algebra.display.replay import Replay
from anabranch.errors import StateError
from anabranch.stream.elements import Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of
from history.editing import apply
from history.tokenized import events, moments, random_stream, written
from mass import some
from models.pipeline import display as model
from models.pipeline.events import EndRegion, Judge
from models.pipeline.qualifier import Qualifier
from models.pipeline.showing import Shown
from models.pipeline.tokens import Tokens


def node(text: str) -> Piece:
    return Piece(text)


def value(text: str) -> Piece:
    return Piece(text, begins=True, ends=True)


def edited(text: str) -> list[tuple[str, list[Edit], str]]:
    """Each event of a stream with the edits that come of it, and the text then, where there are some."""
    display = Shown()
    found = [(str(event), display.edit(event), display.text) for event in events(text)]
    return [each for each in found if each[1]]


# --- events -------------------------------------------------------------------------------------------------


def test_section_2() -> None:
    """Text is inserted and removed at positions as the paper's example goes by."""
    stream = """
    sS(0,0), sM(0,1), cD(1,x), eM(0,1), sR(1,2), cD(2,y), eR(1,2), sA(2,3), cD(3,z), eA(2,3), sB(1,3), cD(3,w), eB(1,3)
    """
    assert edited(stream) == [
        ("cD(1,x)", [Insert(0, "x")], "x"),
        ("sR(1,2)", [Remove(0, 1)], ""),
        ("cD(2,y)", [Insert(0, "y")], "y"),
        ("cD(3,z)", [Insert(1, "z")], "yz"),
        ("cD(3,w)", [Insert(0, "w")], "wyz"),
    ]


def test_remove_takes_a_length() -> None:
    """The paper's `sR` calls `remove(start, effective - start)`, of a method that takes two positions (LAWS 5.6).

    For a region at 3 with 2 characters that is `remove(3, 2)`: as positions nothing, or the wrong end.
    """
    ((_, edits, text),) = [
        each
        for each in edited("sS(0,0) cD(0,abc) sM(0,1) cD(1,de) eM(0,1) cD(0,f) sR(1,2) eR(1,2)")
        if each[0][1] == "R"
    ]
    assert (edits, text) == ([Remove(3, 2)], "abcf")


def test_open_elements_are_closed_on_display() -> None:
    """At every moment the display is well-formed: an element is there as a whole as soon as it begins."""
    assert [text for _, _, text in edited("sS(0,0) sE(0,a) sM(0,1) sE(1,b) cD(1,X) eE(1,b) eM(0,1) eE(0,a)")] == [
        "<a/>",
        "<a><b/></a>",
        "<a><b>X</b></a>",
    ]


def test_an_element_that_is_emptied() -> None:
    """What is deleted leaves an empty element, written as one, and it can be filled again."""
    stream = "sS(0,0) sE(0,a) sM(0,1) cD(1,x) eM(0,1) eE(0,a) sR(1,2) eR(1,2) sA(2,3) cD(3,y) eA(2,3)"
    assert [text for _, _, text in edited(stream)] == ["<a/>", "<a>x</a>", "<a/>", "<a>y</a>"]


def test_laws_29() -> None:
    """x; after z1; after z2; before w1; before w2; replace x by y: w1 w2 y z2 z1."""
    display = Shown()
    display.run(
        events("""
        sS(0,0) sM(0,1) cD(1,x) eM(0,1) sA(1,2) cD(2,z1) eA(1,2) sA(1,3) cD(3,z2) eA(1,3)
        sB(1,4) cD(4,w1) eB(1,4) sB(1,5) cD(5,w2) eB(1,5) sR(1,6) cD(6,y) eR(1,6)
        """)
    )
    assert display.text == "w1w2yz2z1"


def test_appending_to_two_open_elements_at_once() -> None:
    """Two elements grow at the same time, each in its own region, and text goes to where it belongs."""
    stream = """
    sS(0,0) sE(0,r) sM(0,1) sE(1,stocks) sM(0,2) sE(2,funds)
    cD(1,a) cD(2,b) cD(1,c) cD(2,d) eE(2,funds) eM(0,2) cD(1,e) eE(1,stocks) eM(0,1) eE(0,r) eS(0,0)
    """
    texts = [text for _, _, text in edited(stream)]
    assert texts[3:6] == [
        "<r><stocks>a</stocks><funds/></r>",
        "<r><stocks>a</stocks><funds>b</funds></r>",
        "<r><stocks>ac</stocks><funds>b</funds></r>",
    ]
    assert texts[-1] == "<r><stocks>ace</stocks><funds>bd</funds></r>"


@pytest.mark.parametrize("qualified", [False, True])
@pytest.mark.parametrize("seed", some(range(30)))
def test_the_display_after_every_event(seed: int, qualified: bool) -> None:
    """Text and edits are those of applying the updates to a tree; the state is read back every few events."""
    display, text = Shown(), ""
    stream = random_stream(seed, qualified=qualified)

    def take(event: object) -> None:
        nonlocal text
        text = apply(display.edit(event), text)  # type: ignore[arg-type]

    for number, (event, content) in enumerate(moments(stream, take)):
        assert display.text == text == written(content), str(event)
        assert display.display.length == len(text)
        if number % 7 == 0:
            kept = json.dumps(display.encode())
            display = Shown()
            display.decode(json.loads(kept))


# --- regions by name ----------------------------------------------------------------------------------------


def test_values_side_by_side_have_a_space_between_them() -> None:
    """The space comes when two values meet, wherever they stand, and goes when they part."""
    display = Display()
    display.element("r", "<r", "</r>")
    display.region("1", [value("1")], inside="r")
    display.region("3", [value("3")], inside="r")
    display.region("2", [], before="3")
    assert display.text == "<r>1 3</r>"
    display.rewrite("2", [node("<x/>")])
    assert display.text == "<r>1<x/>3</r>"
    display.rewrite("2", [value("")])
    assert display.text == "<r>1  3</r>"  # as XQuery has it: an empty value is one
    display.delete("1")
    assert display.text == "<r> 3</r>"
    display.rewrite("2", [Piece("<x/>7", ends=True)])
    assert display.text == "<r><x/>7 3</r>"


def test_a_value_alone_that_is_empty_leaves_an_empty_element() -> None:
    """No text is no content; two empty values are a space."""
    display = Display()
    display.element("r", "<r", "</r>")
    display.region("1", [value("")], inside="r")
    assert display.text == "<r/>"
    display.region("2", [value("")], inside="r")
    assert (display.text, apply(display.edits(), "")) == ("<r> </r>", "<r> </r>")


@pytest.mark.parametrize("seed", some(range(20)))
def test_values_and_nodes_anywhere(seed: int) -> None:
    """Random regions of values and nodes, moved, rewritten and deleted: spaces are as in one sequence.

    The edits are those of the paper's display, which has all versions of a region.
    """
    chance = random.Random(seed)
    display, paper, text = Display(), model.Display(), ""
    plain: list[tuple[str, list[Piece]]] = []
    for each in (display, paper):
        each.element("r", "<r", "</r>")
    for number in range(120):
        some = [
            chance.choice((node("<x/>"), value("1"), value(""), value("23"))) for _ in range(chance.choice((0, 1, 2)))
        ]
        at = chance.randrange(len(plain)) if plain else 0
        pieces = [model.Piece(each.text, each.begins, each.ends) for each in some]
        match chance.randrange(4):
            case 0 if plain:
                display.rewrite(plain[at][0], some)
                paper.rewrite(plain[at][0], pieces)
                plain[at] = plain[at][0], some
            case 1 if plain:
                display.delete(plain[at][0])
                paper.delete(plain.pop(at)[0])
            case 2 if plain:
                display.region(str(number), some, before=plain[at][0])
                paper.region(str(number), pieces, before=plain[at][0])
                plain.insert(at, (str(number), some))
            case _:
                display.region(str(number), some, inside="r")
                paper.region(str(number), pieces, inside="r")
                plain.append((str(number), some))
        edits = display.edits()
        assert edits == paper.edits()
        text = apply(edits, text)
        content = _sequence([piece for _, several in plain for piece in several])
        assert display.text == text == (f"<r>{content}</r>" if content else "<r/>")
        assert display.length == len(text)


def _sequence(pieces: list[Piece]) -> str:
    out, follows_value = "", False
    for piece in pieces:
        out += " " + piece.text if follows_value and piece.begins else piece.text
        follows_value = piece.ends
    return out


def test_time_hides_and_shows() -> None:
    """On the paper's display a region with `?[2]` loses expired versions, one with `?1` shows what is old enough."""
    display = model.Display()
    display.region("1", [model.Piece("x")], qualifier=Qualifier.parse("?[2]"))
    display.region("2", [model.Piece("X")], qualifier=Qualifier.parse("?1"))
    display.advance(Decimal(1))
    assert display.text == "xX"
    display.rewrite("1", [model.Piece("y")])
    display.rewrite("2", [model.Piece("Y")])
    assert display.text == "yxX"
    display.advance(Decimal(2))
    assert display.text == "yxY"
    display.edits()
    display.advance(Decimal(3))
    assert (display.text, display.edits()) == ("yY", [Remove(1, 1)])


def test_an_edit_costs_what_it_changes() -> None:
    """One of 5,000 regions is rewritten by two edits at its position."""
    display = Display()
    for number in range(5_000):
        display.region(str(number), [node("ab")])
    display.edits()
    display.rewrite("4000", [node("xyz")])
    assert display.edits() == [Remove(8_000, 2), Insert(8_000, "xyz")]


# --- the answer on the wire ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(10)))
def test_the_answer_as_a_stream(seed: int) -> None:
    """Whoever reads what is told, moment by moment, sees what is on display (LAWS 5.7), by the edits of the paper."""
    chance = random.Random(seed)
    display, tokens, reader, replay = Published(), Tokens(), Shown(), Replay()
    reader.run(tokens.start())
    display.element("r", "<r", "</r>")
    names: list[str] = []
    for number in range(40):
        for _ in range(chance.choice((1, 1, 2))):
            some = [
                chance.choice((node("<x/>"), node("<y>&lt;</y>"), value("1"))) for _ in range(chance.choice((0, 1, 2)))
            ]
            name = f"{number}" if chance.random() < 0.5 or not names else chance.choice(names)
            match chance.randrange(3):
                case 0 if name in names:
                    display.rewrite(name, some)
                case 1 if name in names:
                    display.delete(name)
                    names.remove(name)
                case _ if name not in names:
                    if names and chance.random() < 0.5:
                        display.region(name, some, before=chance.choice(names))
                    else:
                        display.region(name, some, inside=chance.choice(("r", None)))
                    names.append(name)
                case _:
                    display.write(some, inside="r")
        told = display.wire(Decimal(number))
        elements = [element_of(parse_item(text.encode(), Limits()), Place("answer", "0", 0)) for text in told]
        edits = [edit for each in elements for event in tokens.of(each) for edit in reader.edit(event)]
        (moment,) = replay.feed("".join((*told, heartbeat(Decimal(number)))))
        assert list(moment.edits) == edits
        assert replay.text == reader.text == display.text


def test_a_moment_without_changes_is_silent() -> None:
    """Nothing is told where nothing has changed; whoever tells moments ends each with a heartbeat."""
    display = Published()
    display.region("1", [node("<x/>")])
    assert len(display.wire(Decimal(1))) == 2
    assert display.wire(Decimal("2.5")) == []
    assert heartbeat(Decimal("2.5")) == '<s:punctuation xmlns:s="urn:anabranch:stream" at="2.5"/>\n'
    assert heartbeat(Decimal("2.5"), json=True) == '{"$punctuation": {"at": 2.5}}\n'


def test_what_is_hidden_comes_back_whole() -> None:
    """A reader is told that nothing is there, then everything anew; ids of elements' ends are never taken twice."""
    display, tokens, reader = Published(), Tokens(), Shown()
    judge = Judge()
    display.element("r", '<r xmlns:p="u"', "</r>", namespaces=(("p", "u"),))
    display.region("1", [node("<p:x/>")], inside="r")
    display.region("2", [node("<y/>")])

    def tell(hidden: bool) -> str:
        for text in display.wire(Decimal(1), hidden=hidden):
            told = [*tokens.of(element_of(parse_item(text.encode(), Limits()), Place("answer", "0", 0)))]
            assert [judge.take(each) for each in told] == [None] * len(told), text
            reader.run(told)
        return reader.text

    reader.run(tokens.start())
    judge.take(tokens.start()[0])
    assert tell(hidden=True) == ""
    assert tell(hidden=False) == '<r xmlns:p="u"><p:x/></r><y/>'
    for _ in range(2):
        assert tell(hidden=True) == ""
        display.region("3", [node("<z/>")], inside="r")
        assert tell(hidden=False) == '<r xmlns:p="u"><p:x/><z/></r><y/>'
        display.delete("3")
        assert tell(hidden=False) == '<r xmlns:p="u"><p:x/></r><y/>'
    display.region("4", [node("<w/>")])
    assert tell(hidden=False) == '<r xmlns:p="u"><p:x/></r><y/><w/>'
    display.delete("4")  # what leaves as the answer is hidden was known, and what comes was not
    display.region("5", [node("<v/>")])
    assert tell(hidden=True) == ""
    assert tell(hidden=False) == '<r xmlns:p="u"><p:x/></r><y/><v/>'


def test_json_on_the_wire() -> None:
    """An answer in JSON is told in control objects, with its results in arrays; a reader takes them as they stand."""
    display, replay = Published(json=True), Replay()
    display.region("1", [Piece('{"a": "\\"content\\": ["}\n[1, [2.50]]\n')])
    display.region("2", [Piece("null\n")], before="1")
    told = display.wire(Decimal("1.5"))
    assert told == [
        '{"$mutable": {"id": "end", "at": 1.5}}\n',
        '{"$before": {"target": "end", "id": "2", "at": 1.5, "content": [null]}}\n',
        '{"$before": {"target": "end", "id": "1", "at": 1.5, "content": [{"a": "\\"content\\": ["}, [1, [2.50]]]}}\n',
    ]
    (moment,) = replay.feed("".join((*told, heartbeat(Decimal(2), json=True))))
    assert (moment.at, replay.text) == (Decimal(2), display.text)
    display.rewrite("1", [])
    display.delete("2")
    told = display.wire(Decimal(3))
    assert told == [
        '{"$replace": {"target": "2", "at": 3}}\n',
        '{"$replace": {"target": "1", "id": "1", "at": 3}}\n',
    ]
    assert len(list(replay.feed("".join((*told, heartbeat(Decimal(3), json=True)))))) == 1
    assert replay.text == display.text == ""


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"$before": {"at": 1}}', '{"$odd": {"at": 1}}', '{"$replace": {"at": "x"}}']
)
def test_a_damaged_log(line: str) -> None:
    """A line that the engine has not written is named."""
    with pytest.raises(StateError, match="the answer log is damaged"):
        list(Replay().feed(f'{{"$punctuation": {{"at": 1}}}}\n{line}\n'))


def test_the_paper_display_needs_no_end_of_region() -> None:
    """Ends of regions change nothing on display: all is there already."""
    display = Shown()
    for event in random_stream(5):
        edits = display.edit(event)
        assert not (edits and isinstance(event, EndRegion))
