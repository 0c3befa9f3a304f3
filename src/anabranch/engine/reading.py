"""Finite streams read to their end, in the units of their start, with all that stands in them kept beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from anabranch.algebra.accents.evolution import Evolution
from anabranch.errors import UsageError
from anabranch.law import Input, document_input, stream_input
from anabranch.law.evolution.vantage import Vantage
from anabranch.predicate import Finite
from anabranch.stream.elements import DeadLetter, Item, Region, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_document
from anabranch.stream.reading.source import Contents, Source, mentioned, read
from anabranch.stream.tree import STREAM_NAMESPACE, Element, copy, descendants


@dataclass(frozen=True, slots=True)
class Read:
    """A finite stream as the law sees it, what was set aside, and all that stands in it, by partition."""

    input: Input
    dead: list[DeadLetter]
    source: Source
    root: Element
    """The root element, without items."""
    elements: Sequence[Sequence[StreamElement | DeadLetter]]


_LETTERS = ("\\u006", "\\u007")
"""How JSON may spell lower case letters."""
_NAMES = (STREAM_NAMESPACE, "&#", "$mutable", "$replace", "$before", "$after", "\\u002", *_LETTERS)
_WORDS = ("mutable", "target", *_LETTERS)
"""No region or update is written without one of each: XML may spell the namespace with references, not names."""


def looked_into(source: Source, limits: Limits) -> Source:
    """A finite stream, of updates if it holds a region (LAWS 5.1); most have to be searched only, not read."""
    found = mentioned(source, (*_NAMES, *_WORDS))
    may = not found.isdisjoint(_NAMES) and not found.isdisjoint(_WORDS)
    return replace(source, updates=may and any(map(_is_edited, read(replace(source, updates=True), limits))))


def _is_edited(element: StreamElement | DeadLetter) -> bool:
    match element:
        case Region() | Update():
            return True
        case Item(tree):
            return any(isinstance(each, Element) and each.name.uri == STREAM_NAMESPACE for each in descendants(tree))
        case _:
            return False


def read_stream(source: Source, limits: Limits) -> Read:
    """Read a stream to its end."""
    contents = Contents(source, limits)
    root = contents.root
    bare = copy(root)
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


def read_documents(paths: Mapping[str, FilePath]) -> dict[str, Input]:
    """Documents by name, for `doc()`."""
    return {name: document_input(parse_document(_bytes_of(path))) for name, path in paths.items()}


def _bytes_of(path: FilePath) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
