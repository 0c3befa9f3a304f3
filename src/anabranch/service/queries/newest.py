"""The newest elements of a site's streams as files of a folder: what a preview reads in place of the streams.

Partitions stay partitions, and elements stay as they are written; of a document the root stays around them.
What a stream has beside its elements, such as the timestamps of messages, is not in these files, and is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from anabranch.engine.reports.evolution import StreamCourse
from anabranch.engine.reports.sampling import MOST_BYTES, NewestPart, form_of, newest_parts
from anabranch.errors import UsageError
from anabranch.stream.elements import LONGEST_RAW
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.markup import start_tag_name
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.stream.tree import Element

_MOST_EDITS = 100_000
"""Elements of a stream of updates: later ones edit what earlier ones made."""


@dataclass(frozen=True, slots=True)
class CutLetter:
    """A piece of a stream that is no element, and why."""

    stream: str
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class NewestStream:
    """A stream of files with the newest elements of another, and what has to be said of it."""

    source: Source
    letters: tuple[CutLetter, ...]
    notes: tuple[str, ...]


def newest_stream(course: StreamCourse, items: int, folder: Path) -> NewestStream:
    """Write about so many of the newest elements of a stream into files of a new folder."""
    source = course.source
    if source.is_upserted:
        hint = "register it: its answer is right from the first message on"
        raise UsageError(f"messages of '{source.name}' are updates of their keys, and are not tried out", hint=hint)
    folder.mkdir()
    form = form_of(course)
    count = len(source.partitions)
    most = _MOST_EDITS if source.updates else max(1, -(-items // count))
    files: list[Path] = []
    letters: list[CutLetter] = []
    for partition in range(count):
        parts = list(_parts(source, partition, form, most))[::-1]
        letters += (_letter(source.name, cut) for part in parts for cut in part.cuts if cut.reason is not None)
        file = folder / f"partition-{partition}"
        file.write_bytes(b"".join(_written(part, form) for part in parts) if form else b"")
        files.append(file)
    return NewestStream(_read_from(source, form, files), tuple(letters), tuple(_notes(source, form)))


def _parts(source: Source, partition: int, form: StreamForm | None, most: int) -> Iterator[NewestPart]:
    try:
        yield from newest_parts(source, partition, form, most) if form else ()
    except UsageError:
        return  # there is no file yet


def _letter(stream: str, cut: Cut) -> CutLetter:
    return CutLetter(stream, cut.reason or "", cut.raw.decode(cut.encoding, "replace")[:LONGEST_RAW])


def _written(part: NewestPart, form: StreamForm | None) -> bytes:
    """The elements of a part as bytes of a file, in UTF-8."""
    good = [each for each in part.cuts if each.reason is None]
    if form is None or form.format != "document":
        return b"".join(_utf8(each.raw, each) + b"\n" for each in good)
    found = b""
    for root, inside in groupby(good, lambda each: (each.root, each.encoding)):
        several = list(inside)
        tag = _utf8(root[0] or b"<root>", several[0])
        name = start_tag_name(tag)
        found += tag + b"\n".join(_utf8(each.raw, each) for each in several) + b"</" + name + b">\n"
    return found


def _utf8(data: bytes, cut: Cut) -> bytes:
    return data if cut.encoding == "utf-8" else data.decode(cut.encoding, "replace").encode()


def _read_from(source: Source, form: StreamForm | None, files: list[Path]) -> Source:
    """The stream, read to its end from these files."""
    root: Element | None = parse_root(form.root.encode()) if form else None
    return replace(
        source,
        path=files[0],
        more=tuple(files[1:]),
        format=form.format if form else "lines",
        root=source.root or (root.name.local if root is not None else None),
        topic=None,
        http=None,
        answer="",
        heartbeat=None,
        ended=False,
        strict=False,
        replays="",
        copies="",
    )


def _notes(source: Source, form: StreamForm | None) -> Iterator[str]:
    if form is None:
        yield f"nothing has come in '{source.name}' yet"
    if source.is_stamped or source.accepts:
        yield f"the times at which elements of '{source.name}' came are not known here"
    if source.topic is None and source.http is None and form is not None:
        sizes = [file.stat() for each in source.partitions if each.exists() for file in source.files_of(each)[-1:]]
        longest = max((each.size for each in sizes if each is not None), default=0)
        if form.format == "document" and longest > MOST_BYTES:
            yield f"a document of '{source.name}' is long: its first items are read, not its newest"
        if source.updates and longest > MOST_BYTES:
            yield f"updates in '{source.name}' of what lies further back are set aside"
