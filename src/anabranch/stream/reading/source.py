"""Streams as they are declared; and those in files, read to their end: a file, a gzip file, or a directory of them.

`read` gives the content of a stream in order: elements, and dead letters where something had to be set aside
(LAWS 2.5).
It opens only the files that the source names, and holds one item and one chunk in memory, so the size of a stream does
not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from typing import Literal

from anabranch.errors import AnabranchError, StreamError, UsageError
from anabranch.storage import Location, Where
from anabranch.storage.location import DISK
from anabranch.stream.admission import Admission
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path, TimeScale, TimeUnit
from anabranch.stream.reading.gzip import MAGIC, PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.json_names import is_name
from anabranch.stream.reading.markup import BOM, ByteWindow, check_width
from anabranch.stream.reading.parse import implied_root, parse_root
from anabranch.stream.reading.reader import ElementReader, Format
from anabranch.stream.reading.split import Cut, DocumentSplitter, LineSplitter
from anabranch.stream.reading.topic import Topic
from anabranch.stream.schema import Schema
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element

NO_PATH = Location.of("/")
"""The path of a stream that is in no file."""
_CHUNK = 1 << 20
_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Http:
    """A stream that programs push over HTTP, `engine.stream("orders", Http())`."""

    backlog: int = 256 << 20
    """The bytes that may wait to be read; while there are more, requests are refused."""

    def __post_init__(self) -> None:
        if self.backlog < 1:
            raise UsageError("'backlog' must be at least 1 byte")


@dataclass(frozen=True, slots=True)
class Source:
    """A stream as registered: where it comes from, its format, and its time (LAWS 1.3, 3.1, 3.2)."""

    name: str
    path: Where
    format: Literal["auto"] | Format = "auto"
    schema: Schema | None = None
    root: str | None = None
    """The name of the root where the files have none; by default the schema's, else 'root'."""
    item: str | None = None
    """The name of items that have none of their own; by default 'item'."""
    time: Path | None = None
    """The path of items' times, with the unit of its numbers."""
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    """Both in seconds where numbers at the time path are times; else in the unit of a window's reference."""
    strict: bool = False
    """Set items aside that have a path which the schema does not declare."""
    more: tuple[Where, ...] = ()
    """Further partitions, each a file or directory; `path` is the first."""
    domains: tuple[tuple[Path, tuple[str, ...]], ...] = ()
    """By path, the values that items have there: every item one of them."""
    updates: bool = False
    """A stream of updates: what has passed may be edited (LAWS 5.1)."""
    retain: Fraction | None = None
    """For how many seconds unchanged entries stay in the document of a stream of updates (LAWS 3.6), or a join by
    keys holds an item (LAWS 3.5); None is for good."""
    ended: bool = False
    """Whether its files are complete: it ends at their present end, while other streams go on."""
    heartbeat: Decimal | None = None
    """The idle seconds after which a run sends a heartbeat into a partition; None for never."""
    evolves: bool = True
    """Whether it may have accents; in a stream declared to have none they are bad (LAWS 4.5)."""
    time_unit: TimeUnit | None = None
    """The unit of its time path, which comparisons of paths ignore, and of streams do not."""
    answer: str = ""
    """The subscription whose answer it is, where it is one of the same site (LAWS 3.12)."""
    topic: Topic | None = None
    """The topic that it comes from, where it is in no file."""
    http: Http | None = None
    """That it is pushed over HTTP; `path` is the folder of its spool then, which only a run reads."""
    replays: str = ""
    """The subscription that alone reads it, from its beginning, where it is another stream once more."""
    copies: str = ""
    """The stream that it is once more: both have its order log."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Location.of(self.path))
        object.__setattr__(self, "more", tuple(map(Location.of, self.more)))
        for what, name in (("root", self.root), ("item", self.item)):
            if name is not None and not is_name(name):
                raise UsageError(f"'{what}' takes the name of an element, not '{name}'", hint="as in orders")
        if self.http is not None and self.format == "auto":
            if self.schema is not None:
                raise UsageError(
                    "a pushed stream with a DTD is one of XML, and its format must be said",
                    hint='use format = "document", or "lines" for one item on each line',
                )
            object.__setattr__(self, "format", "json")
        if self.time is not None:
            unit = self.time_unit or self.time.unit
            object.__setattr__(self, "time", self.time.counting(unit))
            object.__setattr__(self, "time_unit", unit)
        if self.heartbeat is not None and self.updates:
            raise UsageError("a stream of updates can be sent no 'heartbeat' yet", hint="write them into the stream")
        if self.heartbeat is not None and self.is_divided and not self.is_timed:
            raise UsageError(
                "a stream of several partitions is sent a 'heartbeat' only if it declares a 'time'",
                hint="without one its partitions do not wait for one another",
            )

    @property
    def partitions(self) -> tuple[Location, ...]:
        """Its partitions, each one sequence (LAWS 1.1): their files, or the names of a topic's partitions."""
        if self.topic is not None:
            return tuple(Location(DISK, self.topic.label(number)) for number in range(self.topic.count))
        return tuple(map(Location.of, (self.path, *self.more)))

    @property
    def logged_as(self) -> str:
        """The name of the stream whose order log it has."""
        return self.copies or self.name

    @property
    def is_divided(self) -> bool:
        """Whether it has several partitions, or may come to have them: a topic can gain some at any time."""
        return bool(self.more) or (self.topic is not None and self.topic.may_grow)

    @property
    def is_timed(self) -> bool:
        """Whether its elements have times of their own, by which its partitions are merged (LAWS 1.2)."""
        return self.time is not None or self.is_stamped

    @property
    def is_stamped(self) -> bool:
        """Whether the timestamps of messages are the times of its elements (LAWS 1.3)."""
        return self.time is None and self.topic is not None and self.topic.timestamps

    @property
    def is_upserted(self) -> bool:
        """Whether its messages are updates of their keys (LAWS 5.9)."""
        return self.topic is not None and bool(self.topic.upserts)

    @property
    def is_merged(self) -> bool:
        """Whether its order differs from that in which its ranges are read (LAWS 1.2)."""
        return self.is_divided and self.is_timed

    def counting(self, partitions: int) -> Source:
        """The stream with so many partitions, where it is a topic of which more are known now."""
        if self.topic is None or partitions <= self.topic.count:
            return self
        return replace(self, topic=replace(self.topic, count=partitions))

    def scale(self, path: Path | None) -> TimeScale:
        """The time scale of the values at a path of its items."""
        return TimeScale.of(path, self.time, self.slack, self.origin)

    @property
    def keys(self) -> dict[str, str]:
        """The paths of its partitions by the keys that offsets and states use."""
        return {f"{self.name}/{number}": str(path) for number, path in enumerate(self.partitions)}

    @property
    def beats_by_time(self) -> bool:
        """Whether its heartbeats follow the times of its items."""
        return self.heartbeat is not None and self.is_timed

    @property
    def accepts(self) -> bool:
        """Whether its elements have the moment at which they were accepted, since it is pushed and declares no time."""
        return self.http is not None and self.time is None

    @property
    def item_name(self) -> str:
        """The name of items that have none of their own."""
        return self.item or "item"

    @property
    def checked_schema(self) -> Schema | None:
        """The schema that items must conform to; None unless the stream is strict."""
        return self.schema if self.strict else None

    def admission(self, *, accents: bool = True) -> Admission:
        """The elements that it accepts; `accents` says whether the engine follows them."""
        merged = self.is_timed or not self.is_divided
        fixed = (*(path for path, _ in self.domains), *([] if self.time is None else [self.time]))
        return Admission.of(updates=self.updates, evolves=self.evolves, merged=merged, accents=accents, fixed=fixed)

    @property
    def implied_root(self) -> str:
        """The name of the root where the files have none."""
        return self.root or (self.schema.root if self.schema else "root")

    @property
    def files(self) -> tuple[Location, ...]:
        """The files of all partitions, partition by partition; a topic has none."""
        return tuple(file for file, _ in self._all_listed())

    @property
    def size(self) -> int:
        """The bytes of its files now."""
        return sum(size for _, size in self._all_listed())

    def files_of(self, partition: Location) -> list[Location]:
        """The files of one partition, in reading order; what is pushed lies in no file of the user's."""
        return [file for file, _ in self._listed(partition)]

    def _all_listed(self) -> Iterator[tuple[Location, int]]:
        for partition in () if self.topic else self.partitions:
            yield from self._listed(partition)

    def _listed(self, partition: Location) -> list[tuple[Location, int]]:
        """The files of one partition, in reading order, with their sizes."""
        if self.http is not None:
            return []
        try:
            if partition.is_folder():
                there = partition.list().items()
                return [(partition / name, stat.size) for name, stat in there if not name.startswith(".")]
            found = partition.stat()
        except OSError as error:
            raise UsageError(f"the stream '{self.name}': cannot read '{partition}': {error.strerror}") from None
        if found is None:
            raise UsageError(f"the stream '{self.name}' has no file or directory '{partition}'")
        return [(partition, found.size)]


@dataclass(frozen=True, slots=True)
class StreamForm:
    """The format of a stream, and its root element as text, without the items: its first bytes decide both for good."""

    format: Format
    root: str


@dataclass(frozen=True, slots=True)
class KnownStream:
    """A stream as declared, and the form that was found; tasks and branches work with it."""

    source: Source
    form: StreamForm

    @staticmethod
    def of(source: Source, form: StreamForm | None = None) -> KnownStream:
        """A stream whose form is known, or one without bytes yet, which is treated as lines below the implied root."""
        return KnownStream(source, form or StreamForm("lines", serialize(implied_root(source.implied_root))))

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def json_items(self) -> Mapping[str, str]:
        """The name of its items by its own, where it is a stream of JSON (LAWS 7.3); else nothing."""
        return {self.name: self.source.item_name} if "json" in (self.form.format, self.source.format) else {}

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The prefixes that the root declares."""
        return _declared_by(self.form.root)

    def root(self) -> Element:
        """A new root element, without items."""
        return parse_root(self.form.root.encode())


@lru_cache
def _declared_by(root: str) -> Mapping[str, str]:
    """The prefixes that a root declares; parsed once for all subscriptions."""
    return parse_root(root.encode()).namespaces


_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_LONGEST = 10**12


def seconds_of(given: object, key: str = "retain") -> Decimal:
    """A time as users write it, in seconds or with a unit, as in '90 min'; UsageError where it is invalid."""
    amount, unit = str(given).strip(), "s"
    for each in _UNITS:
        if amount.endswith(each):
            amount, unit = amount.removesuffix(each).strip(), each
            break
    try:
        found = Decimal(amount) * _UNITS[unit]
    except ArithmeticError:
        found = Decimal("NaN")
    if isinstance(given, bool) or not found.is_finite() or not 0 < found <= _LONGEST:
        raise UsageError(f"'{key}' takes a number of seconds, or a time, not '{given}'", hint="as in 3600 or '1 h'")
    return found


def domains_of(given: Mapping[str, Iterable[object]]) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """Declared domains, `{"s": [1, 2]}`, as a source has them; UsageError where they are invalid."""
    found: list[tuple[Path, tuple[str, ...]]] = []
    for path, values in given.items():
        if not isinstance(values, list | tuple) or not values:
            raise UsageError(f"the domain of '{path}' is no list of values", hint="as in { s = [1, 2] }")
        if any(isinstance(each, bool) or not isinstance(each, str | int | float | Decimal) for each in values):
            raise UsageError(f"the domain of '{path}' holds something that is neither text nor a number")
        try:
            found.append((Path.parse(path), tuple(str(each) for each in values)))
        except StreamError as error:
            raise UsageError(error.message, hint=error.hint) from None
    return tuple(found)


def mentioned(source: Source, words: Iterable[str]) -> set[str]:
    """Which of some ASCII words the bytes of a stream contain; much faster than parsing it."""
    found: set[str] = set()
    sought = {word: word.encode() for word in words}
    longest = max(map(len, sought.values()))
    for file in source.files:
        before = b""
        for piece in _pieces(file):
            if isinstance(piece, bytes):
                held = before + piece
                found |= {word for word, letters in sought.items() if letters in held}
                before = held[-longest:]
            if len(found) == len(sought):
                return found
    return found


def read(source: Source, limits: Limits) -> Contents:
    """Start reading a stream, partition by partition."""
    return Contents(source, limits)


class Contents:
    """The content of a stream, in order and once; only the iterating caller changes it."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self.format = source.format if source.format != "auto" else self._detected_format()
        """The format of the stream; one without readable content counts as a document."""
        self._split = DocumentSplitter if self.format == "document" else LineSplitter
        self._implied_root = implied_root(source.implied_root)
        root = None if self.format == "document" else self._implied_root
        self._reader = ElementReader(
            source.name, self.format, limits, root, source.item_name, source.checked_schema, source.admission()
        )
        self._reader.announced = lambda path, tree: self.announced(path, tree)
        self.announced: Callable[[Path, Element], bool] = lambda path, tree: False
        """Whether an item of a strict stream may have a path that the schema does not declare (LAWS 4.5)."""
        self.partitions = tuple(_Ahead(self._read(source.files_of(each))) for each in source.partitions)
        """The content of each partition; the format and the root are those of the first readable one."""
        self._all = chain.from_iterable(self.partitions)

    def _detected_format(self) -> Format:
        schema = self._source.schema
        heads = (piece for file in self._source.files for piece in islice(_pieces(file), 1))
        readable = (each for each in heads if isinstance(each, bytes) and is_readable(each))
        return next((detect(head[:_HEAD], schema.root if schema else None) for head in readable), "document")

    @property
    def root(self) -> Element:
        """The root element: the first readable one of the stream, or the implied one."""
        for partition in self.partitions:
            while not self._reader.root and partition.look_further():
                pass
        return self._reader.root or self._implied_root

    def __iter__(self) -> Iterator[StreamElement | DeadLetter]:
        return self

    def __next__(self) -> StreamElement | DeadLetter:
        return next(self._all)

    def _read(self, files: Iterable[Location]) -> Iterator[StreamElement | DeadLetter]:
        for file in files:
            splitter = self._split(self._limits)
            damage: DeadLetter | None = None
            position = 0
            for piece in _pieces(file):
                if isinstance(piece, Damage):
                    damage = DeadLetter(Place(self._source.name, file.name, position), piece.reason, "")
                else:
                    position += len(piece)
                    yield from self._elements(splitter.feed(piece), splitter, file)
            yield from self._elements(splitter.finish(), splitter, file)
            if damage:
                yield damage

    def _elements(
        self, cuts: list[Cut], splitter: DocumentSplitter | LineSplitter, file: Location
    ) -> Iterator[StreamElement | DeadLetter]:
        if self._reader.root is None and isinstance(splitter, DocumentSplitter) and splitter.first:
            self._reader.enter(*splitter.first)  # also where the root has no items, and another follows
        yield from self._reader.elements(cuts, file.name)


class _Ahead:
    """An iterator that can read ahead: elements that were read ahead are given first."""

    def __init__(self, rest: Iterator[StreamElement | DeadLetter]) -> None:
        self._rest = rest
        self._ahead: deque[StreamElement | DeadLetter] = deque()

    def look_further(self) -> bool:
        """Read one element ahead; whether there was one."""
        following = next(self._rest, None)
        if following is not None:
            self._ahead.append(following)
        return following is not None

    def __iter__(self) -> Iterator[StreamElement | DeadLetter]:
        return self

    def __next__(self) -> StreamElement | DeadLetter:
        return self._ahead.popleft() if self._ahead else next(self._rest)


def first_format(source: Source) -> Format | None:
    """The format of a stream, as declared or by its first bytes; None where nothing can be read yet."""
    try:
        if source.format != "auto":
            return source.format
        return Contents(source, Limits()).format if source.size else None
    except (AnabranchError, OSError):
        return None  # what cannot be read is somebody else's business


def is_readable(head: bytes) -> bool:
    """Whether the front of a file has content, in a supported encoding."""
    try:
        check_width(head[:4])
    except StreamError:
        return False
    return bool(head.strip())


def detect(head: bytes, schema_root: str | None) -> Format:
    """The format of a stream by its first bytes; 64 KiB are plenty.

    XML whose first element is closed and followed by another has an item per line; where the schema names the root,
    the first element decides alone.
    """
    if head.removeprefix(BOM).lstrip().startswith(b"{"):
        return "json"
    window = ByteWindow(0)
    window.append(head)
    first = b""
    depth = at = 0
    while (at := window.find(b"<", at, window.end)) >= 0:
        token = window.token(at, window.end, prolog=not depth) or window.broken(at, window.end)
        if token.kind in ("open", "empty", "broken") and token.name:
            if first and depth == 0:
                return "lines"
            if not first and schema_root is not None:
                return "document" if token.name.decode("utf-8", "replace") == schema_root else "lines"
            first = first or token.name
            depth += token.kind != "empty" and token.name == first
        elif token.kind == "close" and token.name == first:  # other elements may be broken, and are ignored
            depth -= 1
        at = token.end
    return "document"


def _pieces(file: Location) -> Iterator[bytes | Damage]:
    """A file's bytes, unpacked; the first piece is long enough for `detect`, or all there is."""
    try:
        with file.open() as opened:
            packed = opened.read(len(MAGIC)) == MAGIC
            opened.seek(0)
            chunks = iter(lambda: opened.read(PACKED_CHUNK if packed else _CHUNK), b"")
            yield from gunzip(chunks) if packed else chunks
    except OSError as error:
        raise StreamError(f"cannot read '{file}': {error.strerror}") from None
