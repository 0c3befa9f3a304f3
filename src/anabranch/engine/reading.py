"""Finite streams read to their end, in the units of their start, with all that stands in them kept beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from anabranch.algebra.accents.evolution import Evolution
from anabranch.predicate import Finite
from anabranch.reference import Input, stream_input
from anabranch.reference.evolving.vantage import Vantage
from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.source import Contents, Source
from anabranch.stream.tree import Element, copy


@dataclass(frozen=True, slots=True)
class Read:
    """A finite stream as the law sees it, what was set aside, and all that stands in it, by partition."""

    input: Input
    dead: list[DeadLetter]
    source: Source
    root: Element
    """The root element, without items."""
    elements: Sequence[Sequence[StreamElement | DeadLetter]]


def read_stream(source: Source, limits: Limits) -> Read:
    """Read a stream to its end."""
    contents = Contents(source, limits)
    root = contents.root
    bare = copy(root)
    assert isinstance(bare, Element)
    vantages = [Vantage(beginning(source)) for _ in contents.partitions]
    found: list[list[StreamElement | DeadLetter]] = [[] for _ in contents.partitions]
    parts = zip(contents.partitions, vantages, found, strict=True)
    read, dead = stream_input(
        root,
        [_noted(contents, each, vantage.evolution, into) for each, vantage, into in parts],
        time=source.time,
        slack=source.slack,
        origin=source.origin,
        vantages=vantages,
    )
    return Read(read, dead, source, bare, found)


def beginning(source: Source) -> Evolution:
    """The evolution of a partition at its beginning."""
    domains = {path: Finite(frozenset(texts)) for path, texts in source.domains}
    return Evolution(None if source.schema is None else source.schema.declares, domains)


def _noted(
    contents: Contents,
    elements: Iterable[StreamElement | DeadLetter],
    evolution: Evolution,
    into: list[StreamElement | DeadLetter],
) -> Iterator[StreamElement | DeadLetter]:
    """The elements of a partition, which are kept; what its accents have announced, items may carry."""
    contents.announced = lambda path, tree: evolution.state(path, tree).carried is True
    for each in elements:
        into.append(each)
        yield each
