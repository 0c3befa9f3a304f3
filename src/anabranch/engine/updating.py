"""Queries over finite streams of updates, answered by the law in this process (`reference/history/`).

A query may read streams of items beside those of updates: they are documents that nobody edits.
Where some of its results stand, every moment is gone through (`arrivals/mixed.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.reference.answer import NoAnswer, Shown
from anabranch.reference.arrivals.mixed import mixed_displays, mixes
from anabranch.reference.arrivals.past import decimal, named
from anabranch.reference.calls import PythonFunction
from anabranch.reference.history.around import Around
from anabranch.reference.history.document import Document
from anabranch.reference.history.timeline import Arriving, answer, arrivals, displays
from anabranch.reference.inputs import Input, element_time
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.source import Contents, Source
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class Written:
    """A finite stream as it is written: its elements by partition, and what could not be read."""

    source: Source
    root: Element
    partitions: Sequence[Sequence[StreamElement]]
    dead: Sequence[DeadLetter]

    @property
    def items(self) -> int:
        return sum(isinstance(each, Item) for partition in self.partitions for each in partition)


def read_written(source: Source, limits: Limits) -> Written:
    """Read a stream to its end, and apply nothing."""
    contents = Contents(source, limits)
    root = contents.root
    found = [list(each) for each in contents.partitions]
    dead = [each for partition in found for each in partition if isinstance(each, DeadLetter)]
    good = [[each for each in partition if not isinstance(each, DeadLetter)] for partition in found]
    return Written(source, root, good, dead)


class Updating:
    """One query over streams of which some are edited; it is answered once, at the end or element by element."""

    def __init__(
        self,
        query: ast.Query,
        streams: Mapping[str, Written],
        documents: Mapping[str, Input],
        *,
        functions: Mapping[str, PythonFunction] | None,
        name: str,
        text: str,
        limits: Limits,
    ) -> None:
        self._query = query
        self._read = {each: streams[each] for each in named(query)}
        self._items = frozenset(name for name, read in self._read.items() if not read.source.updates)
        self._edited = {each: Document(read.root, limits) for each, read in self._read.items()}
        self._dead: list[DeadLetter] = []
        self.failure: DynamicError | None = None
        """Why the query fails as a whole at the latest moment that was gone through, if it does."""
        self._around: Around = {"functions": functions, "inputs": documents, "name": name, "text": text}

    @property
    def dead(self) -> list[DeadLetter]:
        """What was set aside: bad updates, and what failed in the query, each thing once."""
        return [*(letter for each in self._edited.values() for letter in each.dead), *self._dead]

    def answer(self) -> str:
        """The answer at the end; `NoAnswer` where the query fails as a whole then."""
        if self._mixed:
            last = deque(self._mixed_displays(), maxlen=1)
            if last and (error := last[0].error) is not None:
                raise NoAnswer(error, [letter for letter in self._dead if letter.reason == error.message])
            if last:
                return last[0].text
        for each in self._arriving():
            for _ in self._edited[each.stream].take(each.element, each.at, each.partition):
                pass
        found = answer(self._query, self._edited, **self._around)
        self._dead += dict.fromkeys(found.dead)
        return found.text

    def __iter__(self) -> Iterator[Shown]:
        """What is on display after every moment that changes it."""
        shown = ""
        for each in self._displays():
            self.failure = each.error
            if each.text != shown:
                yield each
                shown = each.text

    def _displays(self) -> Iterator[Shown]:
        if self._mixed:
            return self._mixed_displays()
        return displays(self._query, self._edited, self._arriving(), self._dead, **self._around)

    @property
    def _mixed(self) -> bool:
        """Whether it reads streams of both kinds so that there are results that stand."""
        return mixes(self._query, self._items)

    def _mixed_displays(self) -> Iterator[Shown]:
        return mixed_displays(self._query, self._edited, self._items, self._arriving(), self._dead, **self._around)

    def _arriving(self) -> Iterator[Arriving]:
        times = {name: read.source.time for name, read in self._read.items()}
        partitions: dict[str, list[Iterable[StreamElement]]] = {}
        for name, read in self._read.items():
            rising = partial(_rising, path=times[name]) if name in self._items else iter
            partitions[name] = [rising(each) for each in read.partitions]
        return arrivals(self._edited, partitions, times)


def _rising(elements: Iterable[StreamElement], path: Path | None) -> Iterator[StreamElement]:
    """The elements of a partition of items, where times may fall: time does not run back with them (LAWS 1.3)."""
    now = Fraction(0)
    for each in elements:
        if isinstance(each, Item | Accent | Punctuation):
            now = max(now, element_time(each, path, now))
            yield replace(each, at=Decimal(decimal(now)))
        else:
            yield each
