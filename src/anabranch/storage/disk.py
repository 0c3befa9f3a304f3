"""Storage on a disk, or on what is mounted like one: files that survive kill -9 and a power cut.

A file is written under a hidden name, synced, and then given its name: by a rename where it may replace another, by a
link where it must be the first.
A writer that was killed leaves its hidden file until `sweep`.
Names in folders are synced, too; a batch of files that tasks wrote is settled in one go, in parallel.
Removals are not synced: a file that comes back after a power cut is one that nothing refers to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import get_native_id
from types import TracebackType
from typing import TypeVar

from anabranch.storage.interface import Data, Stat

T = TypeVar("T")

BEGUN = re.compile(r"\..+\.[0-9]+", re.DOTALL)
"""The hidden names of files that are being written."""


@dataclass(frozen=True, slots=True)
class DiskStorage:
    """Files; a key is an absolute path."""

    synced: bool = True
    """Without it, files survive the end of a process and no power cut."""

    def name(self, key: str) -> str:
        return key

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        with Path(key).open("rb") as file:
            if start:
                file.seek(start)
            return file.read(-1 if length is None else length)

    def stat(self, key: str) -> Stat | None:
        try:
            found = os.stat(key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _stat(found)

    def is_folder(self, key: str) -> bool:
        return os.path.isdir(key)

    def names(self, folder: str, *, below: bool = False, after: str = "") -> Sequence[str]:
        return sorted(_names(folder, "", below, after))

    def list(self, folder: str) -> Mapping[str, Stat]:
        found: dict[str, Stat] = {}
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # removed meanwhile
                    if entry.is_file():
                        found[entry.name] = _stat(entry.stat())
        return dict(sorted(found.items()))

    def put(self, key: str, data: Data) -> None:
        path = Path(key)
        fresh = self._written(path, data)
        os.replace(fresh, path)
        self._sync(path.parent)

    def create(self, key: str, data: Data) -> None:
        path = Path(key)
        fresh = self._written(path, data)
        try:
            os.link(fresh, path)
        finally:
            fresh.unlink()
        self._sync(path.parent)

    def writer(self, key: str) -> FileWriter:
        return FileWriter(Path(key), self)

    def delete(self, keys: Collection[str]) -> None:
        for key in keys:
            with suppress(FileNotFoundError):
                os.unlink(key)
        for folder in {os.path.dirname(key) for key in keys}:
            with suppress(OSError):  # unless something is in it
                os.rmdir(folder)

    def settle(self, folders: Collection[str]) -> None:
        there = [folder for folder in folders if os.path.isdir(folder)]
        if there and self.synced:
            with ThreadPoolExecutor(len(there)) as threads:  # a disk takes them in one go
                list(threads.map(sync, there))

    def sweep(self, folder: str) -> None:
        for path in Path(folder).glob(".*"):
            if BEGUN.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def in_folder(self, path: Path, work: Callable[[], T]) -> T:
        """Do something with a file, whose folder is made if it is missing."""
        try:
            return work()
        except FileNotFoundError:
            missing = [each for each in path.parents if not each.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            for folder in missing:
                self._sync(folder.parent)
            return work()

    def _written(self, path: Path, data: Data) -> Path:
        """A new file beside `path` that holds the data, on the disk."""
        fresh = path.with_name(f".{path.name}.{get_native_id()}")
        try:
            with self.in_folder(fresh, lambda: fresh.open("wb")) as file:
                file.write(data)
                file.flush()
                if self.synced:
                    os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            raise
        return fresh

    def _sync(self, folder: Path) -> None:
        if self.synced:
            sync(folder)


class FileWriter:
    """Writes a file under its own name, which nobody else uses; the file is created with the writer."""

    def __init__(self, path: Path, storage: DiskStorage) -> None:
        self._path = path
        self._synced = storage.synced
        self._file = storage.in_folder(path, lambda: path.open("xb"))

    def write(self, data: Data, /) -> None:
        self._file.write(data)

    def read(self, start: int, length: int) -> bytes:
        self._file.flush()
        with self._path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._file.flush()
            if self._synced:
                os.fsync(self._file.fileno())


def make_folder(path: Path) -> None:
    """Make a folder, with those that it is in, so that its name survives a power cut.

    All names on its path are synced, also of folders that exist: who made one may have been killed before it was.
    """
    path.mkdir(parents=True, exist_ok=True)
    for folder in path.parents:
        with suppress(PermissionError):  # far up it is not ours, and has been there for long
            sync(folder)


def sync(path: str | Path) -> None:
    """Sync the names in a folder, or the bytes of a file, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _stat(found: os.stat_result) -> Stat:
    version = found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size
    return Stat(found.st_size, version, max(found.st_ctime, found.st_mtime))


def _names(folder: str, prefix: str, below: bool, after: str) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if not entry.is_dir():
                if name > after:
                    yield name
            elif below and (f"{name}/" > after or after.startswith(f"{name}/")):
                yield from _names(entry.path, f"{name}/", below, after)
