"""Finite inputs: all of a stream, or a document, as one tree, with each item's time and place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from heapq import merge

from anabranch.errors import StreamError
from anabranch.reference.values import exact_number
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation, Region, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.parse import parse_item, parse_root
from anabranch.stream.path import Path
from anabranch.stream.split import DocumentSplitter
from anabranch.stream.tree import STREAM_NAMESPACE, Document, Element, descendants, renumber, string_value
from anabranch.stream.wire import element_of


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


@dataclass(frozen=True, slots=True)
class Input:
    """A document node, and for a stream its items as they arrived; LAWS 1.2 gives the order of partitions."""

    document: Document
    arrivals: tuple[Arrival, ...] = ()
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    time: Path | None = None
    """The declared time path."""
    late: bool = False
    """Whether the subscription came after the stream had begun; the input is what it sees (LAWS 3.6)."""
    endless: bool = False
    """Whether no query may wait for the end, as in a trunk that runs; see `rounds.py` for the interval join."""
    elements: tuple[Arrival | Signal, ...] = ()
    """All that arrived: the arrivals, and the punctuations in their places among them."""
    partitions: int = 1
    by_item: Mapping[Element, Arrival] = field(default_factory=dict, repr=False)

    @property
    def root(self) -> Element:
        root = next(each for each in self.document.children if isinstance(each, Element))
        return root


def document_input(document: Document) -> Input:
    """The input behind `doc("name")`."""
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
) -> tuple[Input, list[DeadLetter]]:
    """Read a stream to its end; gives the input and what was set aside on the way.

    Accents and updates are refused by name: a query over a stream that has them would need them.
    """
    dead: list[DeadLetter] = []
    sequences: list[list[Arrival | Signal]] = []
    for number, elements in enumerate(partitions):
        sequence: list[Arrival | Signal] = []
        now = Fraction(0)
        for element in elements:
            match element:
                case DeadLetter():
                    dead.append(element)
                case Item(tree, place):
                    refuse_regions(tree, place)
                    now = element_time(element, time, now)
                    sequence.append(Arrival(tree, now, number, place))
                case Punctuation():
                    now = element_time(element, time, now)
                    sequence.append(Signal(element, now, number))
                case _:
                    raise refuse_control(element)
        sequences.append(sequence)
    merged = tuple(merge(*sequences, key=lambda each: each.time))
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
        {arrival.item: arrival for arrival in arrivals},
    )
    return read, dead


def refuse_control(element: StreamElement) -> StreamError:
    """The error for a stream that carries what queries cannot yet follow."""
    kind = type(element).__name__.lower()
    return StreamError(
        f"stream '{element.place.stream}' carries {'an' if kind[0] in 'aeiou' else 'a'} {kind} "
        f"({element.place}), and queries over such streams are not answered yet",
        hint="take the control elements out of the stream, or wait for the release that follows them",
    )


def refuse_regions(tree: Element, place: Place) -> None:
    """Refuse an item with a mutable part or an update inside: what it shows depends on what follows."""
    for each in descendants(tree):
        if isinstance(each, Element) and each.name.uri == STREAM_NAMESPACE:
            raise refuse_control(Region(each.get("id") or "", (), place))


def element_time(element: Item | Punctuation, path: Path | None, before: Fraction) -> Fraction:
    """The time of an element (LAWS 1.3); `before` is that of the element before it."""
    if element.at is not None:
        return Fraction(element.at)
    for text in texts_at(element.tree, path) if path and isinstance(element, Item) else ():
        number = exact_number(text)
        if number is not None and number.is_finite():
            return Fraction(number)
    return before


def texts_at(item: Element, path: Path) -> list[str]:
    """The texts that a path names in an item."""
    nodes = [item]
    for step in path.steps:
        if step.startswith("@"):
            return [each.value for node in nodes for each in node.attributes if str(each.name) == step[1:]]
        nodes = [c for node in nodes for c in node.children if isinstance(c, Element) and str(c.name) == step]
    return [string_value(node) for node in nodes]


def text_input(
    xml: str, *, name: str = "stream", time: str | None = None, slack: str = "0", origin: str = "0"
) -> Input:
    """The input for a stream that is given as the text of a document; for tests and small things."""
    splitter = DocumentSplitter(Limits())
    cuts = (*splitter.feed(xml.encode()), *splitter.finish())
    root = parse_root(splitter.root or b"<root>")
    items = (element_of(parse_item(cut.raw, Limits(), root.namespaces), Place(name, "text", cut.start)) for cut in cuts)
    stream, _ = stream_input(
        root, [items], time=Path.parse(time) if time else None, slack=Decimal(slack), origin=Decimal(origin)
    )
    return stream
