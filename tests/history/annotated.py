"""The annotated document of a stream of updates, for Saxon: every version in a wrapper with its life.

Written from the history paper's section 5 and LAWS 5.2 and 5.3, over lxml trees, and nothing else; it shares no code
with the engine, and expects good input.
A chain is a `v:chain` of `v:version`s, the newest first; text outside of a chain is in a `v:text`; all of them, and all
elements, have the time of their coming as `v:st` and of their end as `v:et`, where they have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import count

from lxml import etree

STREAM = "{urn:anabranch:stream}"
LIFE = "{urn:life}"


class Annotated:
    """Follows one stream; `now` is the time of its latest element."""

    def __init__(self) -> None:
        self.root = etree.Element("root", nsmap={"v": "urn:life"})
        self.now = Decimal(0)
        self._complete = False
        self._chains: dict[str, etree._Element] = {}
        self._numbers = count(1)

    def take(self, element: etree._Element) -> Iterator[Decimal]:
        """Follow one child of the stream's root; gives the time at each moment, also of those inside of it."""
        self.now = Decimal(element.get("at") or element.get(f"{STREAM}at") or self.now)
        yield from self._node(element, self.root)
        self._complete = False
        yield self.now

    def _node(self, written: etree._Element, into: etree._Element) -> Iterator[Decimal]:
        kind = str(written.tag).removeprefix(STREAM) if str(written.tag).startswith(STREAM) else None
        if kind == "punctuation":
            return
        if kind is None:
            fresh = etree.SubElement(into, written.tag)
            for name, value in written.attrib.items():
                if not str(name).startswith(STREAM):
                    fresh.set(name, value)
            self._born(fresh)
            yield from self._content(written, fresh)
            return
        at = Decimal(written.get("at") or self.now)
        if at > self.now and self._complete:
            self._complete = False
            yield self.now
        self.now = at
        version = etree.Element(f"{LIFE}version")
        self._born(version)
        version.set("number", str(next(self._numbers)))  # only versions have one
        if kind == "replace":
            chain = self._chains[written.get("target") or ""]
            chain.insert(0, version)
        else:
            chain = etree.Element(f"{LIFE}chain")
            chain.append(version)
            if kind == "mutable":
                into.append(chain)
            elif kind == "before":
                self._chains[written.get("target") or ""].addprevious(chain)
            else:
                self._chains[written.get("target") or ""].addnext(chain)
        if (own := written.get("id")) is not None:
            self._chains[own] = chain
        yield from self._content(written, version)
        self._complete = True

    def _content(self, written: etree._Element, into: etree._Element) -> Iterator[Decimal]:
        self._text(written.text, into)
        for child in written:
            yield from self._node(child, into)
            self._text(child.tail, into)

    def _text(self, text: str | None, into: etree._Element) -> None:
        if text:
            wrapper = etree.SubElement(into, f"{LIFE}text")
            wrapper.text = text
            self._born(wrapper)

    def _born(self, element: etree._Element) -> None:
        element.set(f"{LIFE}st", str(self.now))

    def text(self, until: Decimal | None = None) -> str:
        """The document, lives cut, without what came too late to live; `until`: as of that time."""
        root = etree.fromstring(etree.tostring(self.root))
        _cut(root, until, None, None)
        return etree.tostring(root).decode()


def _cut(node: etree._Element, until: Decimal | None, end: str | None, number: int | None) -> None:
    """Cut lives to the life around them, which ended at a time, with the version of that number."""
    for child in list(node):
        born, own = child.get(f"{LIFE}st"), child.get("number")
        early = until is None or born is None or Decimal(born) <= until
        if not early or (number is not None and own is not None and int(own) > number):
            node.remove(child)
            continue
        if end is not None and born is not None:
            child.set(f"{LIFE}et", end)
        _cut(child, until, end, number)
        if own is not None:
            end, number = born, int(own)  # it has replaced the next one
