"""The kept part of a stream as plain data, entry by entry, and its restoration.

Either all of it is written or the changes since the last write.
Both have one form: removed entries and new ones with their places, the changed entries, each complete, the ids
(`ids.py`), and a small rest; restoring all is applying changes to nothing.
Changes may be applied twice: an entry is what the latest ones say, and its place is not taken twice, since the numbers
of entries grow and are never reused.

The place of a chain and its visibility follow from the tree, so neither is written.
An entry refers to the regions of the register by number.
The tree is no deeper than admission allows, so recursion is safe.

Fractions and large numbers are written in hexadecimal, which takes linear time and has no limit.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from anabranch.branch.document.entries import ChainPlace, DocumentEntries, DocumentEntry
from anabranch.branch.document.shared_nodes import NO_NAMESPACES, shared_element
from anabranch.law.history.chains import Chain, Content, DocumentMoment, Lived, Version
from anabranch.law.history.tokens import OpenPart, OpenParts
from anabranch.sharing.retention import Visibility
from anabranch.stream.elements import Place
from anabranch.stream.tree import Attribute, Child, Comment, Element, Instruction, MessageNotes, Name, Text
from anabranch.values.atomic import TEXT, OrderRank
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.written import read_mark, read_measure, write_mark, write_measure


def write_rank(rank: OrderRank) -> Any:
    """A rank of `order by` as plain data."""
    level, value = rank
    match value:
        case str():
            return [level, value]
        case Decimal():
            return [level, "decimal", str(value)]
        case Fraction():
            return [level, "fraction", write_fraction(value)]


def read_rank(data: Any) -> OrderRank:
    """The rank from `write_rank`."""
    match data:
        case [level, "decimal", text]:
            return level, Decimal(text)
        case [level, "fraction", text]:
            return level, read_fraction(text)
        case [0 | 1 as level, text]:
            return level, text
        case [_, text]:  # an earlier release nested it differently
            return TEXT, text
        case _:
            raise AssertionError(data)


_RARELY = 50_000
"""The number of new objects between two collections of garbage while elements are taken."""
Data: TypeAlias = Any
"""Numbers, texts, None, and lists and dictionaries of these."""


def encode(kept: DocumentEntries, *, whole: bool = True) -> Data:
    """All that is kept, or the changes since the last write: `[order, ids, rest, entries]`.

    `order` is a list of `[removed, runs]`; a run is an entry, and the new entries behind it in their order.
    """
    unsaved, places = kept.unsaved, kept.order
    if whole:
        numbers = list(places)
        order: list[Data] = [[[], [[None, numbers]]]]
    else:
        numbers = [number for number in unsaved.entries if number in kept.by_number]
        order = [[unsaved.removed, _runs(kept, [number for number in numbers if number >= unsaved.first])]]
    writer = _EntryWriter(kept)
    entries = [writer.row(number) for number in numbers]
    times = [[partition, write_fraction(time)] for partition, time in kept.admission.times.items()]
    clock = None if kept.clock is None else write_fraction(kept.clock)
    register = kept.register
    rest: list[Data] = [
        write_fraction(kept.now),
        clock,
        times,
        kept.next_number,
        register.next_number,
        register.next_past,
    ]
    if kept.admission.open or kept.begun is not None:
        rest.append([_open_parts(partition, parts) for partition, parts in kept.admission.open.items()])
    if kept.begun is not None:
        rest.append([kept.begun.number, write_fraction(kept.begun.now)])
    return [order, register.encode(whole=whole), rest, entries]


def _open_parts(partition: int, parts: OpenParts) -> Data:
    """What is open in a partition: by region, the open ends and the names of elements."""
    regions = [[region, *([part.end, part.name] for part in inside)] for region, inside in parts.regions.items()]
    return [partition, parts.next_end, regions]


def _read_open_parts(next_end: int, regions: list[Data]) -> OpenParts:
    return OpenParts({region: [OpenPart(*each) for each in inside] for region, *inside in regions}, next_end)


def _runs(kept: DocumentEntries, numbers: list[int]) -> list[Data]:
    runs: list[Data] = []
    for number in sorted(numbers, key=kept.order.before):
        previous = kept.order.previous(number)
        if runs and runs[-1][1][-1] == previous:
            runs[-1][1].append(number)
        else:
            runs.append([previous, [number]])
    return runs


def decode(kept: DocumentEntries, stream: str, data: Data) -> None:
    """Restore all, or apply changes to an earlier state."""
    order, ids, (now, clock, times, number, number_region, number_past, *more), entries = data
    kept.register.decode(*ids)
    kept.register.next_number, kept.register.next_past = number_region, number_past
    known = kept.next_number
    for removed, runs in order:
        for each in removed:
            _remove(kept, each)
        for previous, numbers in runs:
            for each in numbers:
                if each >= known:
                    kept.place(each, previous)
                previous = each
    reader = _RowReader(kept, stream)
    for row in sorted(entries, key=_is_end):
        reader.entry(row)
    kept.now, kept.next_number = read_fraction(now), number
    kept.clock = None if clock is None else read_fraction(clock)
    kept.admission.times.update({partition: read_fraction(time) for partition, time in times})
    kept.admission.open = {each: _read_open_parts(*written) for each, *written in (more[0] if more else ())}
    kept.next_version = max(kept.next_version, reader.versions)
    kept.begun = reader.moment(more[1]) if len(more) > 1 else None
    kept.moment = max(kept.moment, reader.moments)
    kept.settled()


def _remove(kept: DocumentEntries, number: int) -> None:
    if number in kept.order:
        kept.order.remove(number)
        entry = kept.discard(number)
        if entry is not None and entry.opened is not None:
            kept.held.pop(entry.opened, None)


def _is_end(row: Data) -> bool:
    """Whether a row is the mark at the end of a chain, which is read after the mark at its start."""
    return len(row) > 1 and isinstance(row[1], int)


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause the garbage collector while many long-lived objects are created."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def rare_gc() -> Iterator[None]:
    """Collect garbage rarely while elements are taken: each leaves little, and a document is large to look through."""
    before = gc.get_threshold()
    gc.set_threshold(_RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _EntryWriter:
    """Writes the entries of a document."""

    def __init__(self, kept: DocumentEntries) -> None:
        self._kept = kept
        self._times: dict[int, str] = {}
        """Times that were written, by the identity of the number: many nodes have one in common."""
        self._names: dict[Child, list[str]] = {}
        """What is written of elements that are nothing but a name, which entries share (`shared_nodes.py`)."""

    def row(self, number: int) -> Data:
        """The data of an entry; only its number for a mere place.

        The mark at the start of a chain has the chain, the mark at the end the number of the start.
        """
        entry = self._kept.by_number[number]
        if entry.content is not None:
            marks = [self._time(each) for each in entry.marks] if entry.marks else []
            return [number, self._content(entry.content, None, None, top=True), marks]
        if entry.opened is None:
            return [number]
        start = self._kept.held[entry.opened].entry
        return [number, self._content(entry.opened, None, None, top=True) if start == number else start]

    def _time(self, time: Fraction) -> str:
        """A time of the document, which lives longer than the writer."""
        written = self._times.get(id(time))
        if written is None:
            written = self._times[id(time)] = write_fraction(time)
        return written

    def _content(
        self, content: Content, around: Fraction | None, around_moment: DocumentMoment | None, *, top: bool = False
    ) -> Data:
        """The data of a node or chain: the time and the moment of a node only where they differ from those around it.

        The origin of a node is written only below the root (`top`), directly or in chains.
        """
        if isinstance(content, Lived):
            node, start, inner, moment = content.node, content.start, content.content, content.moment
            plain = node.value if type(node) is Text and node.measure is None else _node(node, content.namespaces)
            written = [plain, None if start is around or start == around else self._time(start)]
            noted = [] if moment is None else _moment(moment)
            is_later = not top and bool(noted) and moment != around_moment
            if inner or top or is_later:
                written.append(self._inside(inner, start, moment or around_moment))
            if top:
                written.append([content.place.partition, content.place.offset, *noted])
            elif is_later:
                written.append([noted])
            return written
        lives: list[Data] = []
        for version in content.versions:
            start, began, inner = version.start, version.moment, version.content
            if top:
                life = [self._content(each, start, began, top=True) for each in inner]
            else:
                life = self._inside(inner, start, began)
            data = [self._time(start), version.number, life]
            if version.mark is not None or began is not None:
                data.append(None if version.mark is None else write_mark(version.mark))
                data += () if began is None else _moment(began)
            lives.append(data)
        return [self._kept.register.number(content), lives]

    def _inside(self, content: list[Content], start: Fraction, moment: DocumentMoment | None) -> list[Data]:
        """The data of what is in a node or a version; mostly these are plain nodes that came with it."""
        found: list[Data] = []
        for each in content:
            if type(each) is Lived and each.start is start and (each.moment is None or each.moment is moment):
                node, inner = each.node, each.content
                name = self._names.get(node)
                if type(node) is Text and node.measure is None and not inner:
                    found.append([node.value, None])
                    continue
                if name is None and type(node) is Element and _is_plain(node):
                    name = self._names[node] = [node.name.local]
                if name is not None and not each.namespaces:
                    only = inner[0] if len(inner) == 1 else None
                    text = only.node if type(only) is Lived and only.start is start and only.moment is None else None
                    if type(text) is Text and text.measure is None:
                        found.append([name, None, [[text.value, None]]])
                    else:
                        found.append([name, None, self._inside(inner, start, moment)] if inner else [name, None])
                    continue
            found.append(self._content(each, start, moment))
        return found


def _moment(moment: DocumentMoment) -> list[Data]:
    return [moment.number, write_fraction(moment.now)]


def _is_plain(node: Element) -> bool:
    """Whether an element is nothing but a name without a namespace."""
    if node.attributes or node.mark is not None or node.message is not None:
        return False
    return not node.name.uri and not node.name.prefix


def _node(node: Child, namespaces: Mapping[str, str]) -> Data:
    match node:
        case Element(mark=None, message=None) if not namespaces and not node.attributes and not node.name.uri:
            return [node.name.local] if not node.name.prefix else [*_name(node.name), {}, []]
        case Element(message=None):
            attributes = list(map(_attribute, node.attributes))
            mark = [] if node.mark is None else [write_mark(node.mark)]
            return [*_name(node.name), dict(namespaces), attributes, *mark]
        case Element(message=message):
            assert message is not None
            attributes = list(map(_attribute, node.attributes))
            told = None if node.mark is None else write_mark(node.mark)
            return [*_name(node.name), dict(namespaces), attributes, told, [message.key, message.headers]]
        case Text(measure=None, kind=None):
            return node.value
        case Text(measure=measure, kind=None):
            assert measure is not None
            return ["measured", node.value, write_measure(measure)]
        case Text(measure=measure, kind=kind):
            return ["piece", node.value, kind, None if measure is None else write_measure(measure)]
        case Comment():
            return ["comment", node.value]
        case Instruction():
            return ["instruction", node.target, node.value]


def _attribute(attribute: Attribute) -> Data:
    written = [*_name(attribute.name), attribute.value]
    return written if attribute.measure is None else [*written, write_measure(attribute.measure)]


def _name(name: Name) -> list[str]:
    return [name.local, name.uri, name.prefix]


class _RowReader:
    def __init__(self, kept: DocumentEntries, stream: str) -> None:
        self._kept = kept
        self._stream = stream
        self._place = Place(stream, "", 0)
        self.versions = 0
        self.moments = 0
        """One more than the largest version number."""

    def entry(self, data: Data) -> None:
        """Restore an entry, replacing the known one."""
        kept, number = self._kept, data[0]
        before = kept.discard(number)
        match data[1:]:
            case []:
                kept.by_number[number] = DocumentEntry(None)
            case [int(start)]:
                chain = kept.by_number[start].opened
                assert chain is not None, "it is the mark at the start"
                kept.by_number[number] = DocumentEntry(None, chain)
                kept.held[chain].end = number
            case [written]:
                opened = None if before is None else before.opened
                end = None if opened is None else kept.held.pop(opened).end
                chain = self.chain(written, [], kept.sight, None, number)
                kept.by_number[number] = DocumentEntry(None, chain)
                held = kept.held[chain]
                held.top = True
                if end is not None:
                    held.end = end
                    kept.by_number[end] = DocumentEntry(None, chain)
            case [written, marks]:
                content = self.content(written, [], kept.sight, None, number, Fraction(0))
                if isinstance(content, Chain):
                    kept.held[content].top = True
                kept.by_number[number] = DocumentEntry(content)
                kept.remind(number, [read_fraction(each) for each in marks])

    def content(
        self,
        data: Data,
        host: list[Content],
        sight: Visibility,
        inside: tuple[Chain, Version] | None,
        entry: int,
        around: Fraction,
    ) -> Content:
        if data[0] is None or isinstance(data[0], int):
            return self.chain(data, host, sight, inside, entry)
        node, namespaces = _read_node(data[0])
        moment: DocumentMoment | None = None
        if len(data) > 3 and len(data[3]) == 1:  # it stands in an entry that came earlier
            moment = self.moment(data[3][0])
        elif len(data) > 3:
            partition, offset, *noted = data[3]
            self._place = Place(self._stream, partition, offset)
            moment = self.moment(noted)
        start = around if data[1] is None else read_fraction(data[1])
        lived = Lived(node, namespaces, start, self._place, moment=moment)
        below = sight.into(node.name.local) if isinstance(node, Element) else sight
        for each in data[2] if len(data) > 2 else ():
            lived.content.append(self.content(each, lived.content, below, inside, entry, lived.start))
        return lived

    def moment(self, noted: list[Data]) -> DocumentMoment | None:
        if not noted:
            return None
        number, now = noted
        self.moments = max(self.moments, number + 1)
        return DocumentMoment(number, read_fraction(now))

    def chain(
        self, data: Data, host: list[Content], sight: Visibility, inside: tuple[Chain, Version] | None, entry: int
    ) -> Chain:
        region, versions = data
        chain = self._kept.register.chain(region)
        chain.host, chain.versions = host, []
        unnamed = chain not in self._kept.register.known
        self._kept.held[chain] = ChainPlace(sight, entry, inside, is_unnamed=unnamed)
        for start, number, written, *more in versions:
            mark = read_mark(more[0]) if more and more[0] is not None else None
            version = Version(read_fraction(start), number, mark=mark, moment=self.moment(more[1:]))
            self.versions = max(self.versions, number + 1)
            chain.versions.append(version)
            for each in written:
                content = self.content(each, version.content, sight, (chain, version), entry, version.start)
                version.content.append(content)
        return chain


def _read_node(data: Data) -> tuple[Child, dict[str, str]]:
    match data:
        case str(text):
            return Text(text), NO_NAMESPACES
        case [local]:
            return shared_element(local, "", ""), NO_NAMESPACES
        case ["comment", text]:
            return Comment(text), {}
        case ["measured", text, [*measure]]:
            return Text(text, read_measure(measure)), {}
        case ["piece", text, kind, measure]:
            return Text(text, None if measure is None else read_measure(measure), kind), {}
        case ["instruction", target, text]:
            return Instruction(target, text), {}
        case [local, uri, prefix, namespaces, attributes, *rest]:
            mark, message = (*rest, None, None)[:2]
            element = Element(Name(local, uri, prefix), mark=None if mark is None else read_mark(mark))
            if message is not None:
                key, headers = message
                element.message = MessageNotes(key, tuple((name, value) for name, value in headers))
            for local, uri, prefix, value, *measure in attributes:
                element.set(Name(local, uri, prefix), value, read_measure(measure[0]) if measure else None)
            return element, namespaces
        case _:
            raise AssertionError(data)
