"""The files in the folders of a stream: their names, sizes and formats.

These functions only look at the disk, or into an object store; they know no epochs.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.errors import StreamError
from anabranch.spark.intake import storage
from anabranch.spark.intake.order import FileStretch
from anabranch.spark.intake.ranges import Waiting
from anabranch.storage import Location
from anabranch.stream.limits import Limits
from anabranch.stream.reading.gzip import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.parse import implied_root, parse_root
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source, StreamForm, detect, is_readable
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.serialize import serialize

_FRONT_BYTES = 1 << 16
"""How many bytes of a stream are read to find its format."""


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """The files of one partition, which is a directory or a single file."""

    where: str
    document: bool

    def path(self, file: str) -> str:
        """A file's path; a partition that is a single file has only this one."""
        return f"{self.where}/{file}" if _is_folder(self.where) else self.where

    def paths(self, there: Iterable[str]) -> list[str]:
        """The paths of some files."""
        return [self.path(name) for name in there]

    def line_end(self, file: str, position: int, limit: int) -> int:
        return storage.line_end(self.path(file), position, limit)

    def last_line_end(self, file: str, position: int, limit: int) -> int:
        return storage.last_line_end(self.path(file), position, limit)


def listing(path: str) -> dict[str, int]:
    """The files of a partition that are not empty, in order of their names, with their sizes."""
    try:
        if storage.is_address(path):
            return _objects(path)
        if not os.path.isdir(path):
            size = os.path.getsize(path)
            return {os.path.basename(path): size} if size else {}
        with os.scandir(path) as entries:
            found = {each.name: size for each in entries if (size := _size(each))}
    except FileNotFoundError:
        return {}  # not there yet, or removed meanwhile
    except OSError as error:
        raise StreamError(f"cannot read '{path}': {error.strerror}") from None
    return dict(sorted(found.items()))


def _size(entry: os.DirEntry[str]) -> int:
    """The size of a file that is read; 0 for all else, such as one that was moved away since it was listed."""
    if entry.name.startswith("."):  # a file that is written there, and renamed when it is whole
        return 0
    try:
        return entry.stat().st_size if entry.is_file() else 0
    except FileNotFoundError:
        return 0


def _objects(address: str) -> dict[str, int]:
    """The files of a partition in an object store: the objects in a folder, or the one of this name."""
    at = Location.of(address)
    there = at.list()
    if there:
        _folders[address] = True
        return {name: stat.size for name, stat in there.items() if stat.size and not name.startswith(".")}
    found = at.stat()
    _folders[address] = found is None
    return {at.name: found.size} if found is not None and found.size else {}


_folders: dict[str, bool] = {}
"""By address: whether it was a folder when it was last looked at."""


def _is_folder(path: str) -> bool:
    if not storage.is_address(path):
        return os.path.isdir(path)
    if path not in _folders:
        _folders[path] = Location.of(path).is_folder()
    return _folders[path]


def modified(path: str) -> Hashable | None:
    """Changes when a file is modified; None if it does not exist."""
    try:
        if storage.is_address(path):
            found = Location.of(path).stat()
            return None if found is None else found.version
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StreamError(f"cannot read '{path}': {error.strerror}") from None


def waiting(held: Sequence[FileStretch], there: Mapping[str, int], files: PartitionFiles) -> list[Waiting]:
    """The next stretches to begin: new files, and new bytes of files that had ended."""
    ends = {stretch.file: stretch.end for stretch in held}
    found: list[Waiting] = []
    for name, size in there.items():
        if name not in ends:
            found.append(Waiting(name, 0, size))
        elif (end := ends[name]) is not None and size != end:
            if size < end:
                raise StreamError(
                    f"'{files.path(name)}' has become shorter: {size:,} bytes, of which {end:,} were read",
                    hint="a stream's files may only grow",
                )
            found.append(Waiting(name, end, size))
    return found


# --- how a stream is written ------------------------------------------------------------------------------


def form_of(source: Source, partitions: Iterable[Sequence[str]], *, decide: bool) -> StreamForm | None:
    """The format of a stream, from the first bytes of its files; None while more bytes could change it.

    The first readable file with content tells the format, and the first readable root is the stream's root; what stands
    before them is bad, and set aside when it is read (LAWS 2.5).
    """
    implied = serialize(implied_root(source.implied_root))
    known = None if source.format == "auto" else source.format
    schema_root = source.schema.root if source.schema else None
    detected, holds = known, False
    for paths in partitions:
        for path in paths:
            if detected is not None and detected != "document":
                return StreamForm(detected, implied)
            head = front(path)
            holds = holds or known is not None or bool(head.strip())
            if not is_readable(head):
                continue
            certain = decide or len(paths) > 1 or len(head) >= _FRONT_BYTES
            detected = detected or _detected(head, schema_root, certain)
            if detected == "document" and (tag := _first_root(_unpacked(path) if decide else (head,))) is not None:
                return StreamForm(detected, serialize(parse_root(*tag)))
            decide = decide or len(head) >= _FRONT_BYTES
    if detected is not None and detected != "document":
        return StreamForm(detected, implied)
    return StreamForm("document", implied) if decide and holds else None


def _detected(front: bytes, schema_root: str | None, certain: bool) -> Format | None:
    """The format by the first bytes; a single line could still be a short document or the first of many lines."""
    form = detect(front, schema_root)
    return form if certain or form != "document" or schema_root is not None or b"\n" in front.strip() else None


def _first_root(pieces: Iterable[bytes]) -> tuple[bytes, str] | None:
    """The first root of a readable document, as its start tag and encoding."""
    splitter = DocumentSplitter(Limits())
    for piece in pieces:
        splitter.feed(piece)
        if splitter.first is not None:
            return splitter.first
    return None


def front(path: str) -> bytes:
    """The first bytes of a file, unpacked."""
    return next(_unpacked(path), b"")[:_FRONT_BYTES]


def _unpacked(path: str) -> Iterator[bytes]:
    """The bytes of a file, up to the first that cannot be unpacked."""
    limit = storage.size_of(path)
    if not storage.is_packed(path):
        return storage.pieces(path, 0, limit, _FRONT_BYTES)
    unpacked = gunzip(storage.pieces(path, 0, limit, PACKED_CHUNK))
    return (piece for piece in unpacked if not isinstance(piece, Damage))
