"""The tables of a user's TOML file: keys are taken one by one, and unknown keys are errors.

A misspelt key must not be a setting that silently does nothing.
Errors name the file, the table and, where possible, the line; the TOML library gives no lines, so the table's header
and the key below it are searched.
"""

from __future__ import annotations

import re
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeVar

from anabranch.errors import AnabranchError, UsageError, did_you_mean
from anabranch.kafka import KafkaCluster
from anabranch.storage import Location, Where, resolved
from anabranch.stream.limits import LEAST_STEPS
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import NO_PATH, Http, Source, domains_of, seconds_of
from anabranch.stream.reading.topic import Topic, message_format, upserted
from anabranch.stream.schema import Schema
from anabranch.stream.settings import size_of

_Value = TypeVar("_Value")
_HEADER = re.compile(r"\s*\[+\s*([^\]]*?)\s*\]+")

_LONGEST_TEXT = 64 << 20
"""The most bytes of a file of a user's; what never ends, as a device, is not read for ever."""


def read_tables(file: Path) -> Table:
    """The file as one table; `UsageError` where it cannot be read."""
    text = read_text(file)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise UsageError(f"'{file}': {message[:1].lower()}{message[1:]}") from None
    except RecursionError:
        raise UsageError(f"'{file}': tables or arrays stand too deep inside one another") from None
    return Table(file, "", values, text.splitlines())


def max_steps_of(table: Table) -> int:
    """The step limit of one evaluation that a table sets (LAWS 2.6)."""
    steps = table.whole("max_steps", LEAST_STEPS)
    if steps < LEAST_STEPS:
        raise table.wrong(f"'max_steps' must be at least {LEAST_STEPS:,}", key="max_steps")
    return steps


def read_text(file: Where) -> str:
    """The text of a user's file, without a byte order mark."""
    try:
        data = Location.of(file).read(0, _LONGEST_TEXT + 1)
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror}") from None
    if len(data) > _LONGEST_TEXT:
        raise UsageError(f"'{file}' has more than {_LONGEST_TEXT:,} bytes")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in data[:4]:
        raise UsageError(f"'{file}' is UTF-16 or UTF-32, not UTF-8", hint="save it as UTF-8")
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is not UTF-8: {error.reason} at byte {error.start}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass
class Table:
    """A table; `take` takes keys out, and `done` refuses the rest."""

    file: Path
    name: str
    values: dict[str, Any]
    lines: list[str] = field(repr=False)
    number: int = 0
    """Its index among tables of the same name, in a list of tables."""
    asked: set[str] = field(default_factory=set, repr=False)
    """The keys that were asked for, which are the known ones."""

    def wrong(self, message: str, *, key: str | None = None, hint: str | None = None) -> UsageError:
        """The error for a table, or for one of its keys."""
        line = self._line(key)
        table = f"[{self.name}]" if self.name else "the file"
        return UsageError(f"'{self.file}'{f', line {line}' if line else ''}, {table}: {message}", hint=hint)

    def _line(self, key: str | None) -> int | None:
        found = [] if self.name else [0]
        for number, text in enumerate(self.lines, 1):
            header = _HEADER.match(text)
            if header and header[1].replace('"', "").replace("'", "") == self.name:
                found.append(number)
        if len(found) <= self.number:
            return None
        start = found[self.number]
        if key is None:
            return start or None
        for number, text in enumerate(self.lines[start:], start + 1):
            if _HEADER.match(text):
                break
            if re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", text):
                return number
        return start or None

    def take(self, key: str, fits: Callable[[Any], bool], kind: str, default: Any) -> Any:
        """The value of a key, which must fit."""
        self.asked.add(key)
        if key not in self.values:
            return default
        value = self.values.pop(key)
        if not fits(value) or (isinstance(value, bool) and not kind.startswith("true")):
            raise self.wrong(f"'{key}' takes {kind}, not '{value}'", key=key)
        return value

    def text(self, key: str, default: _Value) -> str | _Value:
        """A text."""
        found: str | _Value = self.take(key, lambda value: isinstance(value, str), "text", default)
        return found

    def needed(self, key: str, hint: str) -> str:
        """A required text."""
        found = self.text(key, None)
        if found is None:
            raise self.missing(key, hint)
        return found

    def missing(self, key: str, hint: str) -> UsageError:
        """The error for a required key; it may be there, misspelt."""
        return self.wrong(f"'{key}' is missing", hint=self.misspelt(key) or hint)

    def misspelt(self, key: str) -> str | None:
        """The hint that a missing key is there under a similar name."""
        near = (each for each in self.values if abs(len(each) - len(key)) < 2 and did_you_mean(each, (key,)))
        return next((f"'{each}' is unknown, did you mean '{key}'?" for each in near), None)

    def path(self, key: str) -> Path | None:
        """A path on a disk, relative to the file."""
        found = self.where(key)
        if found is not None and found.path is None:
            raise self.wrong(f"'{key}' takes a path on a disk, not '{found}'", key=key)
        return None if found is None else found.path

    def where(self, key: str) -> Location | None:
        """A path, relative to the file, or an address in an object store."""
        text = self.text(key, None)
        return None if text is None else self._resolved(key, text)

    def named(self, key: str) -> Location | None:
        """The path or address of a key without taking it, if it is one."""
        text = self.values.get(key)
        return self._resolved(key, text) if isinstance(text, str) else None

    def _resolved(self, key: str, text: str) -> Location:
        if "\0" in text:
            raise self.wrong(f"'{key}' is no path: it has a character that no name has", key=key)
        try:
            return resolved(self.file.absolute().parent, text)
        except UsageError as error:
            raise self.wrong(error.message, key=key, hint=error.hint) from None

    def paths(self, key: str) -> list[Location]:
        """One path or address, or several."""
        value = self.take(key, _are_paths, "a path or a list of paths", [])
        found = [self._resolved(key, each) for each in ([value] if isinstance(value, str) else value)]
        if not found:
            raise self.missing(key, "it names a file or a directory")
        return found

    def whole(self, key: str, default: _Value) -> int | _Value:
        """A positive whole number."""
        found: int | _Value = self.take(
            key, lambda value: isinstance(value, int) and value > 0, "a positive number", default
        )
        return found

    def amount(self, key: str, default: _Value) -> float | _Value:
        """A positive number."""

        def fits(value: Any) -> bool:
            return isinstance(value, int | float) and 0 < value < float("inf")

        found: float | _Value = self.take(key, fits, "a positive number", default)
        return found

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        return bool(self.take(key, lambda value: isinstance(value, bool), "true or false", default))

    def table(self, key: str) -> Table:
        """A table in this one; an empty one where there is none."""
        value = self.take(key, lambda value: isinstance(value, dict), "a table", {})
        return self._inner(key, value)

    def tables(self, key: str) -> dict[str, Table]:
        """The tables in a table."""
        inside = self.table(key)
        for name, value in inside.values.items():
            if not isinstance(value, dict):
                raise inside.wrong(f"'{key}.{name}' takes a table", key=name)
        return {name: inside._inner(name, value) for name, value in inside.values.items()}

    def listed(self, key: str) -> list[Table]:
        """A list of tables, `[[key]]` each."""
        given = self.take(key, _are_tables, f"a list of tables, [[{key}]] each", [])
        return [self._inner(key, value, number) for number, value in enumerate(given)]

    def _inner(self, key: str, value: Mapping[str, Any], number: int = 0) -> Table:
        return Table(self.file, f"{self.name}.{key}" if self.name else key, dict(value), self.lines, number)

    def done(self) -> None:
        """Refuse keys that were not asked for."""
        for key in self.values:
            raise self.wrong(f"'{key}' is unknown", key=key, hint=did_you_mean(key, self.asked))


def _are_paths(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


class TimingReader(Protocol):
    """Reads the settings of a stream's time: its path and unit, its slack, and its origin."""

    def __call__(
        self, path: str | None, unit: str | None, slack: Any, origin: Any
    ) -> tuple[ItemPath | None, Fraction, Fraction]: ...


def documents_of(tables: Mapping[str, Table], streams: Collection[str]) -> dict[str, DocumentSource]:
    """The documents behind `doc()`, each a table with the path of a file; `streams` are names already in use."""
    found: dict[str, DocumentSource] = {}
    for name, table in tables.items():
        if name in streams:
            raise table.wrong(f"'{name}' is a stream already", hint="a document needs a name of its own")
        path = table.where("path")
        if path is None:
            raise table.missing("path", "it names the file of the document")
        found[name] = DocumentSource(path, table.text("root", "root"), table.text("item", "item"))
        table.done()
    return found


def _topic_of(table: Table) -> tuple[Topic, str]:
    """The topic that a table of a stream names, and the format of what its messages hold."""
    brokers, name = table.needed("brokers", "as in '127.0.0.1:9092'"), table.needed("topic", "the name of a topic")
    start = table.take("start", lambda value: True, "anything", "earliest")
    settings = table.take("kafka", lambda value: isinstance(value, dict), "a table of settings", {})
    partitions, timestamps = table.whole("partitions", None), table.flag("timestamps", default=True)
    try:
        cluster = KafkaCluster.of(brokers, settings, table.file.absolute().parent)
        topic = Topic.of(cluster, name, start=start, partitions=partitions, timestamps=timestamps)
        return message_format(topic, table.text("format", "auto"))
    except UsageError as error:
        raise table.wrong(error.message, hint=error.hint) from None


class StreamFolders(Protocol):
    """Gives the folders of streams that the run itself fills."""

    def answer_stream(self, stream: str) -> Location:
        """The folder of a stream that is an answer."""

    def spool(self, stream: str) -> Location:
        """The folder of a stream that is pushed."""


_SOURCES = ("files", "kafka", "http", "answer")


def source_of(
    name: str, table: Table, timing: TimingReader, folders: StreamFolders | None = None, *, is_here: bool = True
) -> Source:
    """A stream as registered; without `folders` it can only be read from files.

    The files of a stream that is not read here need not be there.
    """
    kind = table.text("source", "files")
    if kind not in _SOURCES:
        raise table.wrong(f"the source '{kind}' is unknown", key="source", hint=f"use {', '.join(_SOURCES)}")
    if folders is None and kind != "files":
        raise table.wrong(f"the source '{kind}' cannot be read here yet", key="source", hint="only 'files' can")
    answer, http = "", None
    topic: Topic | None = None
    if folders is not None and kind == "answer":
        answer = table.needed("of", "the subscription whose answer it is")
        path, more, form = folders.answer_stream(name), list[Location](), "document"
    elif folders is not None and kind == "http":
        http, path, more, form = _pushed(table), folders.spool(name), [], table.text("format", "auto")
    elif kind == "kafka":
        path, more = NO_PATH, []
        topic, form = _topic_of(table)
    else:
        path, *more = table.paths("path")
        for each in (path, *more):
            if is_here and each.path is not None and not each.path.exists():  # an object store has no empty folders
                raise table.wrong(f"there is no '{each}'", key="path", hint="make the directory first")
        form = table.text("format", "auto")
    if form not in ("auto", "lines", "document", "json"):
        raise table.wrong(f"the format '{form}' is unknown", key="format", hint="use lines, document or json")
    dtd, time = table.where("dtd"), (table.text("time", None), table.text("time_unit", None))
    slack = table.take("slack", lambda value: True, "a number, or a duration such as PT5S", None)
    origin = table.take("origin", lambda value: True, "a number, or a dateTime such as 2026-01-01T00:00:00Z", None)
    retain = table.take("retain", lambda value: True, "anything", None)
    known = lambda value: isinstance(value, bool) or value == "upsert"  # noqa: E731
    updates = table.take("updates", known, "true, false or 'upsert'", False)
    envelope = table.text("envelope", None) if kind == "kafka" else None
    heartbeat = table.take("heartbeat", lambda value: True, "anything", None)
    domains = table.take("domains", lambda value: isinstance(value, dict), "a table of lists, as in { s = [1, 2] }", {})
    try:
        if updates == "upsert":
            topic = upserted(topic, envelope, form)
        elif envelope is not None:
            raise UsageError("an 'envelope' needs updates = 'upsert'")
        return Source(
            name,
            path,
            form,  # type: ignore[arg-type]  # just checked
            Schema.read_dtd(dtd) if dtd is not None else None,
            table.text("root", None),
            table.text("item", None),
            *timing(*time, slack, origin),
            table.flag("strict"),
            tuple(more),
            domains_of(domains),
            bool(updates),
            None if retain is None else Fraction(seconds_of(retain)),
            heartbeat=None if heartbeat is None else seconds_of(heartbeat, "heartbeat"),
            answer=answer,
            topic=topic,
            http=http,
        )
    except AnabranchError as error:
        raise table.wrong(error.message, hint=error.hint) from None


def _pushed(table: Table) -> Http:
    return Http(sized(table, "backlog", Http().backlog))


def sized(table: Table, key: str, default: int) -> int:
    """A number of bytes, or a size such as '256 MB'."""
    given = table.take(key, lambda value: isinstance(value, int | str), "a number of bytes or a size", default)
    try:
        return size_of(given, key)
    except UsageError as error:
        raise table.wrong(error.message, key=key, hint=error.hint) from None
