"""Events: the history paper's section 2, and the way from the wire to events and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.stream.elements import Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of, write
from anabranch.stream.tree import Name
from history.tokenized import events, moments, random_stream, written
from mass import some
from models.pipeline.events import EndElement, Event, Id, Judge, StartElement, is_well_formed
from models.pipeline.showing import Shown
from models.pipeline.tokens import Elements, Tokens

HERE = Place("s", "0", 0)
S = 'xmlns:s="urn:anabranch:stream"'
SECTION_2 = """
sS(0,0), sM(0,1), cD(1,x), eM(0,1), sR(1,2), cD(2,y), eR(1,2), sA(2,3), cD(3,z), eA(2,3), sB(1,3), cD(3,w), eB(1,3),
eS(0,0)
"""


def element(text: str) -> StreamElement:
    return element_of(parse_item(text.encode(), Limits()), HERE)


def bare(given: StreamElement) -> str:
    """An element's text, but for where the control elements' namespace is declared."""
    return write(given).replace(f" {S}", "")


def shown(*texts: str) -> str:
    """What a stream of these elements comes to."""
    tokens, display = Tokens(), Shown()
    display.run(tokens.start())
    for text in texts:
        display.run(tokens.of(element(text)))
    return display.text


def test_an_element_as_the_paper_tokenizes_it() -> None:
    """`<name>Smith</name>` in stream 10 is five events of one id."""
    tokens = Tokens(stream=10)
    found = [*tokens.start(), *tokens.of(element("<name>Smith</name>")), *tokens.end()]
    assert [str(each).replace(",)", ",0)") for each in found] == [
        "sS(10,0)",
        "sE(,name)",
        "cD(,Smith)",
        "eE(,name)",
        "eS(10,0)",
    ]
    assert {each.id for each in found if hasattr(each, "id")} == {Id(10, "")}


def test_section_2() -> None:
    """The paper's example comes to `w y z`, in events and on the wire."""
    display = Shown()
    display.run(events(SECTION_2))
    assert display.text == "wyz"
    assert (
        shown(
            f'<s:mutable {S} id="1"><x/></s:mutable>',
            f'<s:replace {S} target="1" id="2"><y/></s:replace>',
            f'<s:after {S} target="2" id="3"><z/></s:after>',
            f'<s:before {S} target="1" id="3"><w/></s:before>',
        )
        == "<w/><y/><z/>"
    )


# --- well-formedness ----------------------------------------------------------------------------------------

ONE, OTHER = Id(0, "1"), Id(0, "2")


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("cD(1,x)", True),
        ("sE(2,a) eE(2,b) cD(2,x)", True),
        ("sE(1,a) cD(1,x) eE(1,a)", True),
        ("sE(1,a) sE(2,b) eE(1,a) eE(2,b)", True),
        ("sE(1,a) eE(1,a) sE(1,b) eE(1,b)", True),
        ("", True),
        ("sE(1,a)", False),
        ("eE(1,a)", False),
        ("sE(1,a) eE(1,b)", False),
        ("sE(1,a) sE(1,b) eE(1,a) eE(1,b)", False),
    ],
)
def test_well_formed(text: str, is_right: bool) -> None:
    """Elements of one id must nest; those of another do not matter."""
    assert is_well_formed(events(text), ONE) is is_right


@given(st.recursive(st.just(""), lambda inner: st.lists(inner, max_size=3).map(lambda some: f"({''.join(some)})")))
def test_well_formed_sequences_are_those_of_the_rules(brackets: str) -> None:
    """What the four rules generate is well-formed for its id, mixed with anything of another; cut short it is not."""
    name = Name("a")
    mine: list[Event] = [StartElement(ONE, name) if each == "(" else EndElement(ONE, name) for each in brackets]
    mixed = [each for event in mine for each in (StartElement(OTHER, name), event)]
    assert is_well_formed(mixed, ONE)
    assert not brackets or not is_well_formed(mine[:-1], ONE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sM(9,1)", "no region '9' has passed"),
        ("sM(0,1) eM(0,1) sM(1,2)", "the region '1' is closed"),
        ("sM(0,1) sR(1,2)", "the region '1' is still open"),
        ("sM(0,1) sA(1,2)", "the region '1' is still open"),
        ("sM(0,1) sM(0,1)", "the region '1' is still open"),
        ("sM(0,1) eM(0,1) sR(1,1)", "'1' is the id of a mutable region"),
        ("sM(0,1) sM(0,2) eM(0,2) eR(0,1)", "no such region '1' is open"),
        ("sM(0,1) sE(1,a) eM(0,1)", "'a' is still open in '1'"),
        ("sE(0,a) eE(0,b)", "no 'b' is open in '0'"),
        ("cD(1,x)", "no region '1' is open"),
        ("sE(0,a) eS(0,0)", "'a' is still open in '0'"),
    ],
)
def test_what_is_wrong_with_a_stream(text: str, reason: str) -> None:
    """The judge says what is wrong with the last event, and nothing of those before it."""
    judge = Judge()
    verdicts = [judge.take(event) for event in events(f"sS(0,0) {text}")]
    assert verdicts == [None] * (len(verdicts) - 1) + [reason]


@pytest.mark.parametrize(
    "text",
    [
        SECTION_2,
        "sS(0,0) sM(0,1) sB(1,2) eB(1,2) eM(0,1) eS(0,0)",
        "sS(0,0) sM(0,1) eM(0,1) sR(1,2) eR(1,2) sR(1,2) eR(1,2) eS(0,0)",
        "sS(0,0) sM(0,1) sM(0,2) cD(1,x) cD(2,y) eM(0,1) eM(0,2) eS(0,0)",
    ],
)
def test_what_is_right(text: str) -> None:
    """An insertion before a region that is open, an id used again, interleaved regions: all of it is legal."""
    judge = Judge()
    assert {judge.take(event) for event in events(text)} == {None}


# --- the wire -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '<a x="1&lt;"><b>1</b><!-- note --><?target data?>2</a>',
        f'<a {S}><s:mutable id="1">x<s:mutable id="2"/></s:mutable><s:replace target="2" id="3">y</s:replace></a>',
        f'<s:mutable {S} id="1"><a/><b/></s:mutable>',
        f'<s:mutable {S} id="1"><a xmlns="urn:x" xmlns:p="urn:p"><p:b p:c="1"/></a></s:mutable>',
    ],
)
def test_there_and_back(text: str) -> None:
    """Events of an element, put together again, are the element."""
    tokens, elements = Tokens(), Elements(HERE)
    (found,) = elements.run([*tokens.start(), *tokens.of(element(text))])
    assert bare(found) == bare(element(text))


def test_updates_and_times_there_and_back() -> None:
    """Times come as heartbeats between elements and on the regions within; ids stay."""
    texts = [
        f'<s:punctuation {S} at="1.5"/>',
        f'<a {S}><s:mutable id="1" at="2">x</s:mutable><s:replace target="1" id="2" at="3"/></a>',
        f'<s:punctuation {S} at="4"/>',
        f'<s:after {S} target="1" id="3"><b/></s:after>',
    ]
    tokens, elements = Tokens(), Elements(HERE)
    given = [event for text in texts for event in tokens.of(element(text))]
    assert [bare(each) for each in elements.run(given)] == [bare(element(text)) for text in texts]


@pytest.mark.parametrize("seed", some(range(40)))
def test_an_answer_can_be_a_stream(seed: int) -> None:
    """A random update stream, written to the wire and read again, comes to the same (LAWS 5.7)."""
    given = random_stream(seed, interleaved=False)
    tokens, elements, display = Tokens(), Elements(HERE), Shown()
    display.run(tokens.start())
    for each in elements.run(given):
        display.run(tokens.of(element(write(each))))
    *_, (_, content) = moments(given, lambda _: None)
    assert display.text == written(content)
