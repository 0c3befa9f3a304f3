"""Finite streams read to their end, in the units of their start, with all their elements kept beside."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

from anabranch.algebra.accents.events import Announced, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.reactions.signature import Policy
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.checks.outputs import outputs_of
from anabranch.law import Input, document_input, stream_input
from anabranch.law.answer import NoAnswer, ShownAnswer
from anabranch.law.arrivals.mixed import mixed_displays, mixes
from anabranch.law.arrivals.past import named
from anabranch.law.calls import PythonFunction
from anabranch.law.evolution.canonical import canonical
from anabranch.law.evolution.vantage import Change, Vantage
from anabranch.law.history.changed import doubted_time
from anabranch.law.history.display_units import DisplayUnits, alters_in
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.evaluate import Around
from anabranch.law.history.timeline import Arriving, answer, arrivals, displays
from anabranch.law.inputs import element_time
from anabranch.predicate.writing import number_text
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import standing
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, Region, StreamElement, StreamToken, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Contents, Source, mentioned, read
from anabranch.stream.tree import STREAM_NAMESPACE, Element, copy, descendants


@dataclass(frozen=True, slots=True)
class Read:
    """A finite stream for the law, its dead letters, and all its elements, by partition."""

    input: Input
    dead: list[DeadLetter]
    source: Source
    root: Element
    """The root element, without items."""
    elements: Sequence[Sequence[StreamElement | DeadLetter]]


_LETTERS = ("\\u006", "\\u007")
"""How JSON may spell lower case letters."""
_KEYS = ("$mutable", "$replace", "$before", "$after", "$upsert", "$open", "$start")
_NAMES = (STREAM_NAMESPACE, "&#", *_KEYS, "\\u002", *_LETTERS)
_WORDS = ("mutable", "target", "upsert", "open", "start", *_LETTERS)
"""No region, update or token that could be good is written without one of each: XML may spell the namespace with
references, not names, and the first token of all opens or starts something.
"""


def looked_into(source: Source, limits: Limits) -> Source:
    """A finite stream, of updates if it contains a region (LAWS 5.1); most are only searched, not read."""
    found = mentioned(source, (*_NAMES, *_WORDS))
    may = not found.isdisjoint(_NAMES) and not found.isdisjoint(_WORDS)
    return replace(source, updates=may and any(map(_is_edited, read(replace(source, updates=True), limits))))


def _is_edited(element: StreamElement | DeadLetter) -> bool:
    match element:
        case Region() | Update() | StreamToken():
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
    vantages = [Vantage(Evolution.of(source)) for _ in contents.partitions]
    found: list[list[StreamElement | DeadLetter]] = [[] for _ in contents.partitions]
    parts = zip(contents.partitions, vantages, found, strict=True)
    read, dead = stream_input(
        root,
        [_noted(contents, each, vantage.evolution, into) for each, vantage, into in parts],
        time=source.time,
        slack=source.slack,
        origin=source.origin,
        vantages=vantages,
        retain=source.retain,
    )
    if contents.format == "json":
        read = replace(read, item_name=source.item_name)
    return Read(read, dead, source, bare, found)


def _noted(
    contents: Contents,
    elements: Iterable[StreamElement | DeadLetter],
    evolution: Evolution,
    into: list[StreamElement | DeadLetter],
) -> Iterator[StreamElement | DeadLetter]:
    """The elements of a partition, which are also collected; items may have paths that its accents announced."""
    contents.announced = lambda path, tree: evolution.state(path, tree).carried is True
    for each in elements:
        into.append(each)
        yield each


def read_documents(sources: Mapping[str, DocumentSource]) -> dict[str, Input]:
    """Documents by name, for `doc()`."""
    return {name: document_input(each.parse(each.read()), name) for name, each in sources.items()}


# --- streams that are edited ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenStream:
    """A finite stream as written: its elements by partition, and its dead letters."""

    source: Source
    root: Element
    partitions: Sequence[Sequence[StreamElement | DeadLetter]]
    """Of dead letters only those that leave paths in doubt."""
    dead: Sequence[DeadLetter]
    is_json: bool = False

    @property
    def items(self) -> int:
        return sum(isinstance(each, Item) for partition in self.partitions for each in partition)


def read_written(source: Source, limits: Limits) -> WrittenStream:
    """Read a stream to its end, without applying updates."""
    contents = Contents(source, limits)
    root = contents.root
    found = [list(_judged(source, contents, each)) for each in contents.partitions]
    dead = [each for partition in found for each in partition if isinstance(each, DeadLetter)]
    told = [[each for each in partition if not isinstance(each, DeadLetter) or each.doubts] for partition in found]
    return WrittenStream(source, root, told, dead, contents.format == "json")


def _judged(
    source: Source, contents: Contents, elements: Iterable[StreamElement | DeadLetter]
) -> Iterator[StreamElement | DeadLetter]:
    """The elements of a partition, judged by the accents before them (LAWS 4.5).

    Of a stream of updates these are the accents; its document judges the others (`law/history/admission.py`).
    """
    evolution = Evolution.of(source)
    contents.announced = lambda path, tree: evolution.state(path, tree).carried is True
    judges = Accent | DeadLetter if source.updates else object
    return (judged(each, evolution) if isinstance(each, judges) else each for each in elements)


class Updating:
    """One query over streams of which some are edited; it is answered once, at the end or moment by moment."""

    def __init__(
        self,
        query: ast.Query,
        streams: Mapping[str, WrittenStream],
        documents: Mapping[str, Input],
        *,
        functions: Mapping[str, PythonFunction] | None,
        name: str,
        text: str,
        limits: Limits,
        policy: Policy = "accumulate",
    ) -> None:
        self._query = query
        self._read = {each: streams[each] for each in named(query)}
        self._items = frozenset(name for name, read in self._read.items() if not read.source.updates)
        self._edited = {each: _document(read, limits) for each, read in self._read.items()}
        self._dead: list[DeadLetter] = []
        self.failure: DynamicError | None = None
        """Why the query fails as a whole at the latest moment, if it does."""
        roots = {each: read.root.namespaces for each, read in self._read.items()}
        taken_apart = standing(query, functions or {}, text)
        lineage = lineage_of(taken_apart, tuple(functions or ()), roots, is_display=not self._items)
        self._units = DisplayUnits()
        self._follower = Follower(lineage, policy, {each: read.source for each, read in self._read.items()})
        self.aborted: str | None = None
        """Why it ended before its streams did (LAWS 4.5)."""
        json = {each: read.source.item_name for each, read in self._read.items() if read.is_json}
        json |= {each: own for each, found in documents.items() if (own := found.json_item) is not None}
        form = outputs_of(query).form(json)
        retained = [read.source.retain for read in self._read.values()]
        self._around: Around = {
            "functions": functions,
            "inputs": documents,
            "name": name,
            "text": text,
            "form": form,
            "scales": {each: read.source.scale for each, read in self._read.items()},
            "retain": min((each for each in retained if each is not None), default=None),
            "retained": {each: read.source.retain for each, read in self._read.items()},
        }

    @property
    def dead(self) -> list[DeadLetter]:
        """The dead letters: bad updates, and failures of the query, each once."""
        return [*(letter for each in self._edited.values() for letter in each.admission.dead), *self._dead]

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
        found = answer(self._query, self._edited, self._units, **self._around)
        self._dead += dict.fromkeys(found.dead)
        return found.text

    def __iter__(self) -> Iterator[ShownAnswer]:
        """The display after every moment that changes it."""
        shown = ""
        for each in self._displays():
            self.failure = each.error
            if each.text != shown:
                yield each
                shown = each.text

    def _displays(self) -> Iterator[ShownAnswer]:
        if self._mixed:
            return self._mixed_displays()
        return displays(self._query, self._edited, self._arriving(), self._dead, self._units, **self._around)

    @property
    def _mixed(self) -> bool:
        """Whether it reads streams of both kinds and has results that stand."""
        return mixes(self._query, self._items)

    def _mixed_displays(self) -> Iterator[ShownAnswer]:
        return mixed_displays(self._query, self._edited, self._items, self._arriving(), self._dead, **self._around)

    def _arriving(self) -> Iterator[Arriving]:
        """The arriving elements, up to a change that the query cannot survive."""
        times = {each: read.source.time for each, read in self._read.items()}
        partitions: dict[str, list[Iterable[StreamElement | DeadLetter]]] = {}
        for name, written in self._read.items():
            rising = partial(_rising, written.source) if name in self._items else iter
            partitions[name] = [rising(each) for each in written.partitions]
        return arrivals(self._edited, partitions, times, self._ends)

    def _ends(self, stream: str, partition: int, change: Change) -> bool:
        """Whether a change of a stream ends the query."""
        accents = self._follower.hear(Announced(stream, partition, change))
        if self._follower.lineage.is_display:
            self._units.alter(alters_in(accents))
        self.aborted = self._follower.aborted or doubted_time(self._read[stream].source, change)
        return self.aborted is not None


def _document(read: WrittenStream, limits: Limits) -> EditedDocument:
    """The document of a stream at its beginning."""
    document = EditedDocument(read.root, limits)
    for partition in range(len(read.partitions)):
        document.admission.evolutions[partition] = Evolution.of(read.source)
    return document


def _rising(source: Source, elements: Iterable[StreamElement | DeadLetter]) -> Iterator[StreamElement | DeadLetter]:
    """The elements of a partition of items, with times that do not run back, of canonical values (LAWS 1.3, 4.1)."""
    now = Fraction(0)
    evolution = Evolution.of(source)
    for each in elements:
        if isinstance(each, Item | Accent | Punctuation):
            meant = replace(each, tree=canonical(each.tree, evolution)) if isinstance(each, Item) else each
            now = max(now, element_time(meant, source.time, now))
            yield replace(each, at=Decimal(number_text(now)))
        else:
            yield each
        if isinstance(each, Accent | DeadLetter):
            judged(each, evolution)
