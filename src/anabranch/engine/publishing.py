"""Accents that a user publishes: checked first, then appended to the present files of a stream.

A directory gets a new file whose name follows directly after the newest one, so later files of its producer, under
ascending names, come after it; the file appears atomically.
A partition that is one file, or a directory whose newest document is not closed yet, is appended to instead.
Nothing is published within an element that is being written.
An accent that the stream does not accept, or that would not be valid there, is refused (LAWS 4.5).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anabranch.engine.reports.evolution import StreamCourse
from anabranch.errors import BadItem, StreamError, UsageError
from anabranch.spark.intake import folders, storage
from anabranch.spark.intake.folders import PartitionFiles
from anabranch.storage import Location
from anabranch.stream.elements import Accent, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading import json_items
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.reading.wire import element_of, write
from anabranch.stream.tree import STREAM_NAMESPACE

_NUMBERED = re.compile(r"(.*\.accent-)([0-9]{4})")
_LAST_NUMBER = 9_999
_TAIL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Publication:
    """An accent that may be published, and its place."""

    accent: Accent
    partition: int
    form: StreamForm
    """The format of the stream."""
    file: Location
    data: bytes
    is_new: bool
    """Whether it gets a file of its own; else the file is appended to."""

    def write(self) -> Location:
        """Publish it; gives its file."""
        if self.is_new:
            return _new_file(self.file, self.data)
        assert self.file.path is not None, "an object gets no more bytes"
        _append(self.file.path, self.data)
        return self.file


def publish(course: StreamCourse, text: str, partition: int) -> Location:
    """Append an accent to a partition; gives its file."""
    return publication(course, text, partition).write()


def publication(course: StreamCourse, text: str, partition: int) -> Publication:
    """An accent to be appended to a partition; refused where the stream cannot take it there."""
    source = course.source
    if source.answer:
        hint = "publish it into a stream that the answer depends on"
        raise StreamError(f"the stream '{source.name}' is the answer of '{source.answer}'", hint=hint)
    if source.http is not None:
        raise StreamError(
            f"the stream '{source.name}' is pushed, and only the endpoint of its run takes what comes into it",
            hint="send the accent there, as any item",
        )
    accent = read_accent(text, source)
    refusal = course.now(partition).apply(accent)
    if refusal is not None:
        raise StreamError(f"the accent is not valid here: {refusal.reason}")
    where = source.partitions[partition]
    there = folders.listing(str(where))
    form = course.form or _form(source, where, there)
    if form is None:
        raise StreamError(
            f"the stream '{source.name}' is empty, and nobody has said how it is written",
            hint='set its format, as in format = "lines"',
        )
    placed = partial(Publication, accent, partition, form)
    line = (json_items.to_json(accent) if form.format == "json" else write(accent)) + "\n"
    folder = where.is_folder() or (where.path is None and not where.exists())
    newest = where / max(there) if folder and there else where
    own = partial(placed, data=_whole(line, form), is_new=True)
    if folder and not there:
        return own(where / "0000.accent-0001")
    if there and storage.is_packed(str(newest)):
        if not folder:
            raise StreamError(f"'{newest}' is packed, and cannot be added to", hint="make the stream a directory")
        return own(_behind(newest))
    if form.format == "document" and there:
        if newest.path is None or not _is_open(newest.path):  # an object cannot be appended to
            if not folder:
                raise StreamError(
                    f"the document '{newest}' is closed, and nothing can stand behind its end",
                    hint="make the stream a directory; then the accent is a document of its own",
                )
            return own(_behind(newest))
        return placed(newest, line.encode(), is_new=False)
    lacks = _lacks_newline(newest, source, form)
    if folder:
        return own(_behind(newest))
    if newest.path is None:
        raise StreamError(f"'{newest}' is one object, and cannot be added to", hint="make the stream a folder")
    return placed(newest, ("\n" * lacks + line).encode(), is_new=False)


def read_accent(text: str, source: Source) -> Accent:
    """Parse an accent in XML, where the prefix `s` needs no declaration, or in JSON."""
    place = Place(source.name, "", 0)
    try:
        if text.lstrip().startswith("{"):
            element: StreamElement = json_items.parse_line(text.encode(), place, Limits(), source.item or "item")
        else:
            element = element_of(parse_item(text.strip().encode(), Limits(), {"s": STREAM_NAMESPACE}), place)
    except BadItem as error:
        raise StreamError(f"the accent cannot be read: {error.message}", hint=error.hint) from None
    if not isinstance(element, Accent):
        raise StreamError(
            f"this is an {type(element).__name__.lower()}, and no accent",
            hint="""as in <s:accent where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>""",
        )
    try:
        source.admission().check(element)
    except BadItem as error:
        raise StreamError(f"the stream '{source.name}' takes no such accent: {error.message}") from None
    return element


def _form(source: Source, where: Location, there: dict[str, int]) -> StreamForm | None:
    found = folders.form_of(source, [PartitionFiles(str(where), document=False).paths(there)], decide=True)
    return found or (None if source.format == "auto" else StreamForm(source.format, f"<{source.implied_root}/>"))


def _whole(line: str, form: StreamForm) -> bytes:
    """The content of a file with only this accent."""
    if form.format != "document":
        return line.encode()
    root = str(parse_root(form.root.encode()).name.local)
    return f"<{root}>\n{line}</{root}>\n".encode()


def _behind(newest: Location) -> Location:
    """The name directly after the newest."""
    found = _NUMBERED.fullmatch(newest.name)
    if found and int(found[2]) < _LAST_NUMBER:
        return newest.parent / f"{found[1]}{int(found[2]) + 1:04}"
    return newest.parent / f"{newest.name}.accent-0001"


def _new_file(at: Location, data: bytes) -> Location:
    try:
        while True:
            try:
                at.create(data)
                return at
            except FileExistsError:  # another accent was published, too
                at = _behind(at)
    except OSError as error:
        raise StreamError(f"cannot write '{at}': {error.strerror}") from None


def _append(path: Path, data: bytes) -> None:
    try:
        with path.open("ab", buffering=0) as file:
            file.write(data)  # in one write, so that other writers append before or after it
            os.fsync(file.fileno())
    except OSError as error:
        raise StreamError(f"cannot write '{path}': {error.strerror}") from None


def _is_open(path: Path) -> bool:
    """Whether a document is still open; an error where it ends within an item."""
    splitter = DocumentSplitter(Limits())
    with path.open("rb") as file:
        while piece := file.read(_TAIL_BYTES):
            splitter.feed(piece)
        size = file.tell()
    if splitter.carry.inside and splitter.carry.position < size:
        raise _unfinished(path)
    return splitter.carry.inside


def _lacks_newline(path: Location, source: Source, form: StreamForm) -> bool:
    """Whether a file of lines lacks a newline at its end; an error where its last line is incomplete."""
    found = path.stat()
    if found is None or not found.size:
        return False
    last = path.read(max(0, found.size - _TAIL_BYTES)).rpartition(b"\n")[2]
    if not last.strip():
        return bool(last)
    try:
        if form.format == "json":
            json_items.parse_line(last, Place(source.name, path.name, 0), Limits(), "item")
        else:
            parse_item(last, Limits(), {"s": STREAM_NAMESPACE})
    except BadItem:
        raise _unfinished(path) from None
    return True


def _unfinished(path: Path | Location) -> StreamError:
    return StreamError(
        f"'{path}' ends within an element, which somebody seems to be writing", hint="try again when it is complete"
    )


def partitions_of(source: Source, chosen: str | None) -> list[int]:
    """The partitions chosen by a user: by number from 0, 'all', or the only one."""
    count = len(source.partitions)
    if chosen == "all" or (chosen is None and count == 1):
        return list(range(count))
    if chosen is None:
        raise UsageError(
            f"the stream '{source.name}' has {count} partitions", hint=f"say --partition 0 to {count - 1}, or all"
        )
    if not chosen.isdecimal() or int(chosen) >= count:
        raise UsageError(f"the stream '{source.name}' has no partition '{chosen}'", hint=f"they are 0 to {count - 1}")
    return [int(chosen)]
