"""The law of update streams beside the law of items, and beside itself: random streams and queries."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from xml.sax.saxutils import escape, quoteattr

import pytest
from lxml import etree

from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law import Answer, evaluate, text_input
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import answer
from anabranch.stream.elements import Item
from history.asking import Asked, elements
from history.comparing import case
from mass import enough, some
from oracle import generate

BAD = (
    '<s:replace target="unknown" at="1000"><a>9</a></s:replace>',
    '<s:after target="unknown"/>',
    '<a s:at="0">9<s:mutable id="new"><b/></s:mutable><s:replace target="unknown" id="newer"/></a>',
    '<s:mutable id="new"><a>9</a><s:replace target="new"/></s:mutable>',
    '<b>9<s:before target="unknown" at="1000"/></b>',
)


@pytest.mark.mass
def test_without_updates_nothing_is_new() -> None:
    """A stream of items as a document is answered like a stream of items, dead letters and all."""
    found: list[Answer] = []
    for number in range(80):
        one = generate.case("items", number)
        query = check(parse(one.query), one.query, inputs=dict.fromkeys(one.inputs)).query
        inputs = {name: text_input(text, name=name) for name, text in one.inputs.items()}
        documents = {name: EditedDocument(each.root) for name, each in inputs.items()}
        for name, given in inputs.items():
            for each in given.arrivals:
                list(documents[name].take(Item(each.item, each.place), each.time))
        try:
            expected = evaluate(query, inputs)
        except DynamicError:
            continue
        found.append(answer(query, documents))
        assert (found[-1].text, found[-1].dead) == (expected.text, expected.dead), one
    assert len(found) > 70
    assert sum(bool(each.dead) for each in found) > 5


def test_an_edited_stream_is_answered_anew() -> None:
    """However a stream came to be what it is, by regions, replacements, insertions and deletions, that shows."""
    compared = 0
    for number in some(range(60)):
        one = generate.case("items", number)
        query = check(parse(one.query), one.query, inputs=dict.fromkeys(one.inputs)).query
        inputs = {name: text_input(text, name=name) for name, text in one.inputs.items()}
        documents = {name: EditedDocument(each.root) for name, each in inputs.items()}
        for name, text in one.inputs.items():
            for each in elements(Edits(Random(number)).stream(etree.fromstring(text)), name):
                list(documents[name].take(each, Fraction(0)))
            assert not documents[name].admission.dead
        try:
            expected = evaluate(query, inputs)
        except DynamicError:
            continue
        found = answer(query, documents)
        compared += 1
        assert found.text == expected.text, (number, one)
        assert sorted(each.reason for each in found.dead) == sorted(each.reason for each in expected.dead)
    assert compared > enough(40)


class Edits:
    """Writes a stream so that it becomes a given one only at its end."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ids = 0
        self.later: list[str] = []

    def stream(self, root: etree._Element) -> str:
        items = "".join(self.node(self.element(each), f"<{each.tag}>1</{each.tag}>") for each in root)
        return items + "".join(reversed(self.later))  # what stands inside another comes after it

    def element(self, element: etree._Element) -> str:
        attributes = "".join(f" {name!s}={quoteattr(str(value))}" for name, value in element.items())
        content = self.text(element.text)
        for child in element:
            content += self.node(self.element(child), "<a>1</a>") + self.text(child.tail)
        return f"<{element.tag}{attributes}>{content}</{element.tag}>"

    def text(self, text: str | None) -> str:
        return self.node(escape(text), "1") if text else ""

    def node(self, written: str, other: str) -> str:
        """A node, or something that becomes it; `other` is what may stand in its place before."""
        self.ids += 1
        key = f"e{self.ids}"
        match self.random.randint(0, 9):
            case 0:
                return f'<s:mutable id="{key}">{written}</s:mutable>'
            case 1:
                self.later.append(f'<s:replace target="{key}">{written}</s:replace>')
                return f'<s:mutable id="{key}">{other}</s:mutable>'
            case 2:
                kind = self.random.choice(("before", "after"))
                self.later.append(f'<s:{kind} target="{key}">{written}</s:{kind}>')
                return f'<s:mutable id="{key}"/>'
            case 3:
                self.later.append(f'<s:replace target="{key}"/>')
                return f'{written}<s:mutable id="{key}">{other}</s:mutable>'
            case _:
                return written


def test_bad_elements_change_nothing() -> None:
    """Set aside with their places, and the rest is exact, moment by moment."""
    for number in some(range(40)):
        query, streams = case(number)
        clean, mixed = Asked(query, **streams), Asked(query, **streams)
        random = Random(number)
        for name, (given,) in mixed.streams.items():
            bad = Asked("1", **{name: "".join(random.sample(BAD, 2))}).streams[name][0]
            for each in bad:
                given.insert(random.randint(0, len(given)), each)
        assert mixed.timeline() == clean.timeline(), (query, streams)
        assert [len(each.admission.dead) for each in mixed.documents.values()] == [2] * len(streams)
