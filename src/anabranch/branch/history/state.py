"""What a query keeps of a stream as plain data, entry by entry, and the rest apart; and taken back.

Where a chain stands and what the query sees of it follow from the place in the tree, so neither is written.
An entry says which ids its regions have; those whose regions are gone, and which still may not be taken, are with the
rest.
The tree is no deeper than the judge allows, so going down in it is safe.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import Any, TypeAlias

from anabranch.branch.history.entries import Entries, Entry, Held
from anabranch.branch.history.written import read_fraction, write_fraction
from anabranch.reference.history.chains import Chain, Content, Lived, Version
from anabranch.reference.history.judging import Named
from anabranch.sharing.history import Sight
from anabranch.stream.elements import Place
from anabranch.stream.tree import Child, Comment, Element, Instruction, Name, Text

Data: TypeAlias = Any
"""Numbers, texts, None, and lists and dictionaries of those."""
_Ids: TypeAlias = Mapping[Chain, list[Data]]


def encode(kept: Entries) -> tuple[list[Data], Data]:
    """All entries in their order, and the rest."""
    ids: dict[Chain, list[Data]] = {}
    gone: list[Data] = []
    for partition, names in kept.names.items():
        for name, named in names.items():
            if named.chain in kept.held:
                ids.setdefault(named.chain, []).append([partition, name, named.mutable])
            else:
                gone.append([partition, name, named.mutable, named.chain.depth, named.chain.between])
    entries = [[number, *_entry(kept, number, kept.by_number[number], ids)] for number in kept.order]
    times = [[partition, write_fraction(time)] for partition, time in kept.times.items()]
    clock = None if kept.clock is None else write_fraction(kept.clock)
    return entries, [write_fraction(kept.now), clock, times, gone, kept.next_number]


def decode(kept: Entries, stream: str, entries: Sequence[Data], rest: Data) -> None:
    """Put what was kept into something that keeps nothing yet."""
    now, clock, times, gone, number = rest
    kept.now, kept.next_number = read_fraction(now), number
    kept.clock = None if clock is None else read_fraction(clock)
    kept.times.update({partition: read_fraction(time) for partition, time in times})
    for partition, name, mutable, depth, between in gone:
        kept.names.setdefault(partition, {})[name] = Named(Chain(depth, between), mutable)
    reader = _Reader(kept, stream)
    for data in entries:
        reader.entry(data)
    kept.number_versions(count(reader.versions))


@contextmanager
def undisturbed() -> Iterator[None]:
    """While much is made that all stays, the collector of garbage would only look at it again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _entry(kept: Entries, number: int, entry: Entry, ids: _Ids) -> Iterator[Data]:
    """What is written of an entry; a mark at a start has its chain, the one at the end the start's number."""
    if entry.content is not None:
        place = next(_places(entry.content), None)
        yield _content(entry.content, ids)
        yield [write_fraction(each) for each in entry.marks]
        yield None if place is None else [place.partition, place.offset]
        return
    assert entry.opened is not None
    start = kept.held[entry.opened].entry
    yield _content(entry.opened, ids) if start == number else start


def _places(content: Content) -> Iterator[Place]:
    match content:
        case Lived(place=place):
            yield place
        case Chain(versions=versions):
            for version in versions:
                for each in version.content:
                    yield from _places(each)


def _content(content: Content, ids: _Ids, around: Fraction | None = None) -> Data:
    """What is written of a node or chain; the time of a node only where it is not that of what is around it."""
    match content:
        case Lived(node, namespaces, start, _, inside):
            written = [_node(node, namespaces), None if start == around else write_fraction(start)]
            return [*written, [_content(each, ids, start) for each in inside]] if inside else written
        case Chain(depth, between, _, versions):
            lives = [
                [write_fraction(each.start), each.number, [_content(inner, ids, each.start) for inner in each.content]]
                for each in versions
            ]
            return [depth, between, ids.get(content, []), lives]


def _node(node: Child, namespaces: Mapping[str, str]) -> Data:
    match node:
        case Element(name=Name(local, "", "")) if not namespaces and not node.attributes:
            return [local]
        case Element():
            attributes = [[*_name(each.name), each.value] for each in node.attributes]
            return [*_name(node.name), dict(namespaces), attributes]
        case Text():
            return node.value
        case Comment():
            return ["comment", node.value]
        case Instruction():
            return ["instruction", node.target, node.value]


def _name(name: Name) -> list[str]:
    return [name.local, name.uri, name.prefix]


class _Reader:
    def __init__(self, kept: Entries, stream: str) -> None:
        self._kept = kept
        self._stream = stream
        self._place = Place(stream, "", 0)
        self._opened: dict[int, Chain] = {}
        self.versions = 0
        """One more than the number of any version."""

    def entry(self, data: Data) -> None:
        kept, number = self._kept, data[0]
        kept.order.append(number, 1)
        match data[1:]:
            case [int(start)]:
                chain = self._opened[start]
                kept.by_number[number] = Entry(None, chain)
                kept.held[chain].end = number
            case [[_, _, _, _] as written]:
                host: list[Content] = []
                chain = self._opened[number] = self.chain(written, host, kept.sight, None, number)
                kept.held[chain].top = True
                kept.by_number[number] = Entry(None, chain)
            case [written, marks, place]:
                self._place = Place(self._stream, "", 0) if place is None else Place(self._stream, *place)
                content = self.content(written, [], kept.sight, None, number, Fraction(0))
                if isinstance(content, Chain):
                    kept.held[content].top = True
                kept.by_number[number] = Entry(content)
                kept.remind(number, [read_fraction(each) for each in marks])

    def content(
        self,
        data: Data,
        host: list[Content],
        sight: Sight,
        inside: tuple[Chain, Version] | None,
        entry: int,
        around: Fraction,
    ) -> Content:
        if len(data) == 4:
            return self.chain(data, host, sight, inside, entry)
        node, namespaces = _read_node(data[0])
        lived = Lived(node, namespaces, around if data[1] is None else read_fraction(data[1]), self._place)
        below = sight.into(node.name.local) if isinstance(node, Element) else sight
        for each in data[2] if len(data) > 2 else ():
            lived.content.append(self.content(each, lived.content, below, inside, entry, lived.start))
        return lived

    def chain(
        self, data: Data, host: list[Content], sight: Sight, inside: tuple[Chain, Version] | None, entry: int
    ) -> Chain:
        depth, between, ids, versions = data
        chain = Chain(depth, between, host)
        self._kept.held[chain] = Held(sight, entry, inside)
        for partition, name, mutable in ids:
            self._kept.names.setdefault(partition, {})[name] = Named(chain, mutable)
        for start, number, written in versions:
            version = Version(read_fraction(start), number)
            self.versions = max(self.versions, number + 1)
            chain.versions.append(version)
            for each in written:
                content = self.content(each, version.content, sight, (chain, version), entry, version.start)
                version.content.append(content)
        return chain


def _read_node(data: Data) -> tuple[Child, dict[str, str]]:
    match data:
        case str(text):
            return Text(text), {}
        case [local]:
            return Element(Name(local)), {}
        case ["comment", text]:
            return Comment(text), {}
        case ["instruction", target, text]:
            return Instruction(target, text), {}
        case [local, uri, prefix, namespaces, attributes]:
            element = Element(Name(local, uri, prefix))
            for *name, value in attributes:
                element.set(Name(*name), value)
            return element, namespaces
        case _:
            raise AssertionError(data)
