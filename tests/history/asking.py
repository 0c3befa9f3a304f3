"""Streams of updates written as text, and what the law answers over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Unpack

from anabranch.language import ast, check, parse
from anabranch.law.answer import ShownAnswer
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.evaluate import Around
from anabranch.law.history.timeline import Arriving, answer, arrivals, displays
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import implied_root, parse_item
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import STREAM_NAMESPACE, Element


def elements(text: str, name: str = "s") -> list[StreamElement]:
    """The elements in a text that is the content of a root element; `s:` is the prefix of control elements."""
    content = parse_item(f"<root xmlns:s='{STREAM_NAMESPACE}'>{text}</root>".encode(), Limits())
    children = [each for each in content.children if isinstance(each, Element)]
    return [element_of(each, Place(name, "text", number)) for number, each in enumerate(children)]


class Asked:
    """A query and streams, each one text, or several for partitions; the streams' roots are called `root`."""

    def __init__(self, query: str, **streams: str | list[str]) -> None:
        self.streams = {
            name: [elements(text, name) for text in ([given] if isinstance(given, str) else given)]
            for name, given in streams.items()
        }
        self.query = check(parse(query), query, inputs=dict.fromkeys(streams), edited=tuple(streams)).query
        self.documents = {name: EditedDocument(implied_root("root")) for name in streams}
        self.dead: list[DeadLetter] = []

    def timeline(self) -> list[tuple[Fraction, str]]:
        """What is on display, and since when."""
        coming = arrivals(self.documents, self.streams)
        shown = timeline(self.query, self.documents, coming, self.dead, name="q")
        return [(each.at, each.text) for each in shown]

    def answer(self) -> str:
        """The answer at the end."""
        for each in arrivals(self.documents, self.streams):
            for _ in self.documents[each.stream].take(each.element, each.at, each.partition):
                pass
        found = answer(self.query, self.documents, name="q")
        self.dead += found.dead
        return found.text


def ask(query: str, text: str) -> str:
    """The answer at the end of one stream `s`."""
    return Asked(query, s=text).answer()


def shown(query: str, text: str) -> list[tuple[str, str]]:
    """What is on display over one stream `s`, with times as text."""
    return [(str(at), answer) for at, answer in Asked(query, s=text).timeline()]


def timeline(
    query: ast.Query,
    documents: Mapping[str, EditedDocument],
    arriving: Iterable[Arriving],
    dead: list[DeadLetter],
    **around: Unpack[Around],
) -> Iterator[ShownAnswer]:
    """What is on display after every moment that changes it."""
    before = ""
    for each in displays(query, documents, arriving, dead, **around):
        if each.text != before:
            before = each.text
            yield each
