"""A stream by its partitions, for tests that merge them themselves."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents, Source
from anabranch.stream.tree import Element


def read_partitions(source: Source, limits: Limits) -> tuple[Element, tuple[Iterator[StreamElement | DeadLetter], ...]]:
    """The root of a stream, and its partitions, which must be read one after the other."""
    contents = Contents(source, limits)
    return contents.root, contents.partitions
