"""Finite inputs: all of a stream, or a document, as one tree, with each item's time and place.

A stream that evolves is read in the units of its start (`law/evolution/vantage.py`): its items are canonical, and so
is what punctuations say, so a query over them gives the canonical answer (LAWS 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from heapq import merge
from itertools import count

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.evolution.vantage import Change, Vantage
from anabranch.stream.admission import Admission
from anabranch.stream.elements import (
    Accent,
    DeadLetter,
    Item,
    Place,
    Punctuation,
    Region,
    StreamElement,
    StreamToken,
    Update,
)
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path, TimeScale, TimeUnit
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import Attribute, Document, Element, renumber
from anabranch.values.atomic import Untyped
from anabranch.values.placing import seconds_at
from anabranch.values.sequences import untyped

_ITEMS = Admission(updates=False)


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """An item with its time (LAWS 1.3) and the number of the partition it came in."""

    item: Element
    time: Fraction
    partition: int
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A punctuation in its place among the arrivals; it has a time as an item has, and shows how far a stream is."""

    punctuation: Punctuation
    time: Fraction
    partition: int


@dataclass(frozen=True, slots=True, eq=False)
class Evolved:
    """An accent in its place among the arrivals, or a dead letter that leaves paths in doubt (LAWS 4.5)."""

    change: Change
    time: Fraction
    partition: int
    behind: int = 0
    """The number of arrivals and punctuations of its stream in front of it, all partitions together."""


@dataclass(frozen=True, slots=True)
class Input:
    """A document node, and for a stream its items as they arrived; LAWS 1.2 gives the order of partitions."""

    document: Document
    arrivals: tuple[Arrival, ...] = ()
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    time: Path | None = None
    """The declared time path, with the unit of its numbers."""
    late: bool = False
    """Whether the subscription came after the stream had begun; the input is what it sees (LAWS 3.6)."""
    endless: bool = False
    """Whether no query may wait for the end, as in a trunk that runs; see `law/rounds/rounds.py` for the interval
    join."""
    elements: tuple[Arrival | Signal, ...] = ()
    """All that arrived: the arrivals, and the punctuations in their places among them."""
    partitions: int = 1
    changes: tuple[Evolved, ...] = ()
    """The accents of the stream, and the dead letters that leave paths in doubt."""
    by_item: Mapping[Element, Arrival] = field(default_factory=dict, repr=False)
    waiting: frozenset[int] = frozenset()
    """The partitions that have more to come; without any, the input has ended."""
    item_name: str | None = None
    """Of a stream of JSON, the name of its items."""
    retain: Fraction | None = None
    """For how many seconds a keyed join holds an item of it; None is for good (LAWS 3.5)."""

    def scale(self, path: Path | None) -> TimeScale:
        """The time scale of the values at a path of its items."""
        return TimeScale.of(path, self.time, self.slack, self.origin)

    @property
    def json_item(self) -> str | None:
        """The name of its items, where it is JSON; a document shows that by its records."""
        if self.item_name is not None:
            return self.item_name
        roots = (each for each in self.document.children if isinstance(each, Element))
        first = next((each for root in roots for each in root.children if isinstance(each, Element)), None)
        return None if first is None or first.mark is None else first.name.local

    @property
    def root(self) -> Element:
        root = next(each for each in self.document.children if isinstance(each, Element))
        return root


def document_input(document: Document, name: str = "") -> Input:
    """The input behind `doc("name")`.

    It stands before all streams in document order, and among others by its name, whenever it was read.
    """
    place = int.from_bytes(blake2b(name.encode(), digest_size=3).digest())
    renumber(document, count(-((place + 1) << 32)))
    return Input(document)


def stream_input(
    root: Element,
    partitions: Sequence[Iterable[StreamElement | DeadLetter]],
    *,
    time: Path | None = None,
    slack: Decimal | Fraction = Decimal(0),
    origin: Decimal | Fraction = Decimal(0),
    late: bool = False,
    endless: bool = False,
    vantages: Sequence[Vantage] | None = None,
    retain: Fraction | None = None,
) -> tuple[Input, list[DeadLetter]]:
    """Read a stream to its end; gives the input and what was set aside on the way.

    `vantages` say what values mean at the start of each partition; without them they are taken as written.
    It is a stream of items: regions and updates are bad in it (LAWS 5.1).
    """
    dead: list[DeadLetter] = []
    sequences: list[list[Arrival | Signal | Evolved]] = []
    for number, elements in enumerate(partitions):
        sequence: list[Arrival | Signal | Evolved] = []
        now = Fraction(0)
        vantage = vantages[number] if vantages else Vantage(Evolution())
        for each in elements:
            element = judged(_ITEMS.admitted(each), vantage.evolution)
            match element:
                case DeadLetter(doubts=doubts):
                    dead.append(element)
                    vantage.forget_units()
                    sequence += [Evolved(element, now, number)] if doubts else []
                case Item(tree, place):
                    tree = remeasured(tree, vantage.units(tree))
                    now = element_time(replace(element, tree=tree), time, now)
                    sequence.append(Arrival(tree, now, number, place))
                case Accent():
                    vantage.forget_units()
                    now = element_time(element, time, now)
                    sequence.append(Evolved(element, now, number))
                case Punctuation():
                    now = element_time(element, time, now)
                    vantage.forget_units()
                    sequence.append(Signal(vantage.told(element), now, number))
                case Region() | Update() | StreamToken():
                    raise AssertionError("a stream of items takes none")
        sequences.append(sequence)
    everything = tuple(merge(*sequences, key=lambda each: each.time))
    merged = tuple(each for each in everything if not isinstance(each, Evolved))
    arrivals = tuple(each for each in merged if isinstance(each, Arrival))
    document = Document()
    document.append(root)
    for arrival in arrivals:
        if len(sequences) > 1:  # they were read partition by partition, and document order is that of the merge
            renumber(arrival.item)
        root.append(arrival.item)
    read = Input(
        document,
        arrivals,
        Fraction(slack),
        Fraction(origin),
        time,
        late,
        endless,
        merged,
        len(sequences),
        tuple(_changes(everything)),
        {arrival.item: arrival for arrival in arrivals},
        retain=retain,
    )
    return read, dead


def in_order(streams: Sequence[Input]) -> Iterator[tuple[Arrival | Signal, Input]]:
    """What arrives in some streams, merged by time; a tie goes to the first of them (LAWS 1.2)."""
    marked = ([(element.time, element, stream) for element in stream.elements] for stream in streams)
    for _, element, stream in merge(*marked, key=lambda each: each[0]):
        yield element, stream


def element_time(element: Item | Accent | Punctuation, path: Path | None, before: Fraction) -> Fraction:
    """The time of an element (LAWS 1.3); `before` is that of the element before it."""
    if element.at is not None:
        return Fraction(element.at)
    for text in texts_at(element.tree, path) if path and isinstance(element, Item) else ():
        assert path is not None
        time = seconds_at(text, path)
        if time is not None:
            return time
    return before


def texts_at(item: Element, path: Path) -> list[Untyped]:
    """The texts that a path names in an item."""
    return [untyped(each) for each in nodes_at(item, path)]


def nodes_at(item: Element, path: Path) -> list[Element] | list[Attribute]:
    """The nodes that a path names in an item."""
    nodes = [item]
    for step in path.steps:
        if step.startswith("@"):
            return [each for node in nodes for each in node.attributes if str(each.name) == step[1:]]
        nodes = [c for node in nodes for c in node.children if isinstance(c, Element) and str(c.name) == step]
    return nodes


def text_input(
    xml: str,
    *,
    name: str = "stream",
    time: str | None = None,
    unit: TimeUnit | None = None,
    slack: str = "0",
    origin: str = "0",
) -> Input:
    """The input for a stream that is given as the text of a document; for tests and small things."""
    splitter = DocumentSplitter(Limits())
    cuts = (*splitter.feed(xml.encode()), *splitter.finish())
    root = parse_root(splitter.root or b"<root>")
    items = (element_of(parse_item(cut.raw, Limits(), root.namespaces), Place(name, "text", cut.start)) for cut in cuts)
    path = Path.parse(time).counting(unit) if time else None
    stream, _ = stream_input(root, [items], time=path, slack=Decimal(slack), origin=Decimal(origin))
    return stream


def _changes(elements: Iterable[Arrival | Signal | Evolved]) -> Iterator[Evolved]:
    """The changes among some elements, each with its place."""
    before = 0
    for each in elements:
        if isinstance(each, Evolved):
            yield replace(each, behind=before)
        else:
            before += 1
